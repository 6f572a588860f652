//! The actions of an input batch.

use std::fmt;
use std::time::Duration;

use tether_base::clipped_text::first_chars;

use super::targets::DialogAnswer;
use crate::vocabulary::MouseButton;

/// One action of a batch.
#[derive(Clone, Debug)]
pub struct InputAction {
    /// What to do.
    pub kind: ActionKind,
    /// How long to wait until it can be done.
    pub timeout: Duration,
}

/// What an action does. Its `Display` form is part of the batch's outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// Clicks `count` times.
    Click { at: ActionTarget, button: MouseButton, count: u32 },
    /// Moves the mouse there.
    Hover { at: ActionTarget },
    /// Drags with the left button.
    Drag { from: ActionTarget, to: ActionTarget },
    /// Turns the wheel by (dx, dy) CSS pixels; without distances, brings the element into view.
    Scroll { at: Option<ActionTarget>, by: Option<(f64, f64)> },
    /// Types text into an element (a ref), or into the focused one.
    Type { into: Option<String>, text: String },
    /// Presses key chords, separated by spaces, with an element (a ref) focused.
    Press { at: Option<String>, keys: String, count: u32 },
    /// Sets fields (refs) to values: texts, options, dates, `true` or `false`.
    Fill { fields: Vec<(String, String)> },
    /// Selects the options with these labels or values, and no others.
    Select { at: String, values: Vec<String> },
    /// Checks a box, or unchecks it.
    Check { at: String, checked: bool },
    /// Pastes text into an element (a ref), or into the focused one.
    Paste { into: Option<String>, text: String },
    /// Gives files of the workspace to a file input, or to what opens the dialog for files.
    Upload { at: String, files: Vec<String> },
    /// Drops files of the workspace on an element.
    DropFiles { at: ActionTarget, files: Vec<String> },
    /// Presses the left button for some time.
    LongPress { at: ActionTarget, hold: Duration },
    /// Answers the next dialog of this batch.
    Dialog(DialogAnswer),
    /// Waits for the page.
    Wait(WaitCondition),
}

/// Where an action is done.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionTarget {
    /// An element.
    Ref(String),
    /// CSS pixels from the top left of the viewport.
    Point(f64, f64),
}

/// What a wait ends with.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitCondition {
    /// The page shows this text.
    TextShown(String),
    /// The element (a ref) is hidden or removed.
    ElementGone(String),
    /// The action's timeout has passed.
    TimeElapsed,
}

impl ActionKind {
    /// The ref of the element that determines on which page the action is done.
    pub fn page_ref(&self) -> Option<&str> {
        match self {
            ActionKind::Click { at: ActionTarget::Ref(name), .. }
            | ActionKind::Hover { at: ActionTarget::Ref(name) }
            | ActionKind::Drag { from: ActionTarget::Ref(name), .. }
            | ActionKind::Scroll { at: Some(ActionTarget::Ref(name)), .. }
            | ActionKind::Wait(WaitCondition::ElementGone(name)) => Some(name),
            ActionKind::LongPress { at: ActionTarget::Ref(name), .. }
            | ActionKind::DropFiles { at: ActionTarget::Ref(name), .. }
            | ActionKind::Select { at: name, .. }
            | ActionKind::Check { at: name, .. }
            | ActionKind::Upload { at: name, .. } => Some(name),
            ActionKind::Fill { fields } => fields.first().map(|(name, _)| name.as_str()),
            ActionKind::Type { into: name, .. }
            | ActionKind::Press { at: name, .. }
            | ActionKind::Paste { into: name, .. } => name.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for ActionTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActionTarget::Ref(name) => f.write_str(name),
            ActionTarget::Point(x, y) => write!(f, "{x},{y}"),
        }
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActionKind::Click { at, button, count } => {
                let button = match button {
                    MouseButton::Left => "",
                    MouseButton::Middle => "middle ",
                    MouseButton::Right => "right ",
                };
                let times = match count {
                    1 => String::new(),
                    2 => "double ".to_owned(),
                    count => format!("{count} times "),
                };
                write!(f, "{times}{button}click {at}")
            }
            ActionKind::Hover { at } => write!(f, "hover {at}"),
            ActionKind::Drag { from, to } => write!(f, "drag {from} to {to}"),
            ActionKind::Scroll { at, by } => {
                f.write_str("scroll")?;
                at.as_ref().map_or(Ok(()), |at| write!(f, " {at}"))?;
                by.map_or(Ok(()), |(dx, dy)| write!(f, " by {dx},{dy}"))
            }
            ActionKind::Type { into, text } => {
                let short = first_chars(text, 40);
                let dots = if short.len() < text.len() { "…" } else { "" };
                write!(f, "type {short:?}{dots}")?;
                into.as_ref().map_or(Ok(()), |name| write!(f, " into {name}"))
            }
            ActionKind::Press { at, keys, count } => {
                write!(f, "press {keys}")?;
                at.as_ref().map_or(Ok(()), |name| write!(f, " in {name}"))?;
                if *count == 1 { Ok(()) } else { write!(f, " {count} times") }
            }
            // The values may be secret.
            ActionKind::Fill { fields } => {
                let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                write!(f, "fill {}", names.join(", "))
            }
            ActionKind::Select { at, values } => write!(f, "select {values:?} in {at}"),
            ActionKind::Check { at, checked } => write!(f, "{} {at}", if *checked { "check" } else { "uncheck" }),
            ActionKind::Paste { into, text } => {
                write!(f, "paste {} characters", text.chars().count())?;
                into.as_ref().map_or(Ok(()), |name| write!(f, " into {name}"))
            }
            ActionKind::Upload { at, files } => write!(f, "upload {files:?} to {at}"),
            ActionKind::DropFiles { at, files } => write!(f, "drop {files:?} on {at}"),
            ActionKind::LongPress { at, hold } => write!(f, "press {at} for {} ms", hold.as_millis()),
            ActionKind::Dialog(answer) => {
                write!(f, "{} the next dialog", if answer.accept { "accept" } else { "dismiss" })?;
                answer.text.as_ref().map_or(Ok(()), |text| write!(f, " with {:?}", first_chars(text, 40)))
            }
            ActionKind::Wait(WaitCondition::TextShown(text)) => write!(f, "wait for {text:?}"),
            ActionKind::Wait(WaitCondition::ElementGone(name)) => write!(f, "wait until {name} is gone"),
            ActionKind::Wait(WaitCondition::TimeElapsed) => f.write_str("wait"),
        }
    }
}
