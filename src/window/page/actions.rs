//! What can be done in a page: the words of an input batch.

use std::fmt;
use std::time::Duration;

/// One action of a batch.
#[derive(Clone, Debug)]
pub struct Action {
    pub does: Does,
    /// How long it may wait until it can be done.
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    Click {
        at: At,
        button: Button,
        count: u32,
    },
    Hover {
        at: At,
    },
    Drag {
        from: At,
        to: At,
    },
    /// By the wheel; without distances, the element is brought into view.
    Scroll {
        at: Option<At>,
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
    Wait(Until),
}

/// A place in the page.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    Ref(String),
    /// CSS pixels from the top left of what is visible.
    Point(f64, f64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// The page shows this text.
    Shows(String),
    /// The element is hidden, or gone.
    Gone(String),
    /// This much time has passed.
    Passed,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Ref(name) => f.write_str(name),
            At::Point(x, y) => write!(f, "{x},{y}"),
        }
    }
}

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Does::Click { at, button, count } => {
                let button = match button {
                    Button::Left => "",
                    Button::Middle => "middle ",
                    Button::Right => "right ",
                };
                let times = match count {
                    1 => String::new(),
                    2 => "double ".to_owned(),
                    count => format!("{count} times "),
                };
                write!(f, "{times}{button}click {at}")
            }
            Does::Hover { at } => write!(f, "hover {at}"),
            Does::Drag { from, to } => write!(f, "drag {from} to {to}"),
            Does::Scroll { at, by } => {
                f.write_str("scroll")?;
                at.as_ref().map_or(Ok(()), |at| write!(f, " {at}"))?;
                by.map_or(Ok(()), |(dx, dy)| write!(f, " by {dx},{dy}"))
            }
            Does::Type { into, text } => {
                let short: String = text.chars().take(40).collect();
                let dots = if short.len() < text.len() { "…" } else { "" };
                write!(f, "type {short:?}{dots}")?;
                into.as_ref().map_or(Ok(()), |name| write!(f, " into {name}"))
            }
            Does::Press { at, keys, count } => {
                write!(f, "press {keys}")?;
                at.as_ref().map_or(Ok(()), |name| write!(f, " in {name}"))?;
                if *count == 1 { Ok(()) } else { write!(f, " {count} times") }
            }
            Does::Wait(Until::Shows(text)) => write!(f, "wait for {text:?}"),
            Does::Wait(Until::Gone(name)) => write!(f, "wait until {name} is gone"),
            Does::Wait(Until::Passed) => f.write_str("wait"),
        }
    }
}
