//! What can be done in a page: the words of an input batch.

use std::fmt;
use std::time::Duration;

/// One action of a batch.
#[derive(Clone, Debug)]
pub struct InputAction {
    pub kind: ActionKind,
    /// How long it may wait until it can be done.
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    Click {
        at: ActionTarget,
        button: MouseButton,
        count: u32,
    },
    Hover {
        at: ActionTarget,
    },
    Drag {
        from: ActionTarget,
        to: ActionTarget,
    },
    /// By the wheel; without distances, the element is brought into view.
    Scroll {
        at: Option<ActionTarget>,
        by: Option<(f64, f64)>,
    },
    /// Into an element, or where the focus is.
    Type {
        into: Option<String>,
        text: String,
    },
    /// Chords, one after the other.
    Press {
        at: Option<String>,
        keys: String,
        count: u32,
    },
    Wait(WaitCondition),
}

/// A place in the page.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionTarget {
    Ref(String),
    /// CSS pixels from the top left of what is visible.
    Point(f64, f64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseButton {
    #[default]
    Left,
    Middle,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WaitCondition {
    /// The page shows this text.
    TextShown(String),
    /// The element is hidden, or gone.
    ElementGone(String),
    /// This much time has passed.
    TimeElapsed,
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
                let short: String = text.chars().take(40).collect();
                let dots = if short.len() < text.len() { "…" } else { "" };
                write!(f, "type {short:?}{dots}")?;
                into.as_ref().map_or(Ok(()), |name| write!(f, " into {name}"))
            }
            ActionKind::Press { at, keys, count } => {
                write!(f, "press {keys}")?;
                at.as_ref().map_or(Ok(()), |name| write!(f, " in {name}"))?;
                if *count == 1 { Ok(()) } else { write!(f, " {count} times") }
            }
            ActionKind::Wait(WaitCondition::TextShown(text)) => write!(f, "wait for {text:?}"),
            ActionKind::Wait(WaitCondition::ElementGone(name)) => write!(f, "wait until {name} is gone"),
            ActionKind::Wait(WaitCondition::TimeElapsed) => f.write_str("wait"),
        }
    }
}
