//! Why an action could not be done, and how that is told.

use std::time::Duration;

use super::actions::Action;
use super::core::{Core, Trouble};
use super::input::Step;
use super::refs::{lock, stale};
use crate::error::{Error, Kind};

/// Why an action cannot be done.
pub enum Obstacle {
    /// The element is there, but not fit.
    Unfit {
        name: String,
        target: Option<String>,
        fail: String,
        by: Option<String>,
        what: Option<String>,
    },
    /// Its document is gone.
    Left(String),
    Trouble(Trouble),
    Told(Error),
}

impl From<Trouble> for Obstacle {
    fn from(trouble: Trouble) -> Self {
        Obstacle::Trouble(trouble)
    }
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Obstacle::Told(error)
    }
}

impl Obstacle {
    /// Whether waiting may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Obstacle::Unfit { fail, .. } if fail != "removed")
    }
}

impl Core {
    /// The error of a batch.
    pub fn failed(&self, obstacle: Obstacle, action: &Action, count: usize, done: &[Step]) -> Error {
        let error = self.obstacle(obstacle);
        let mut text = error.doing;
        if count > 1 {
            text = format!("action {} of {count} failed: {text}", done.len() + 1);
        }
        let source = error.source.map(|source| source.to_string());
        let mut because = source.unwrap_or_else(|| format!("it was to {}", action.does));
        let notes = lock(&self.shared.view).take_notices();
        for note in notes {
            because.push_str(&format!("; {note}"));
        }
        if !done.is_empty() {
            let done: Vec<&str> = done.iter().map(|step| step.did.as_str()).collect();
            because.push_str(&format!("; done before: {}", done.join("; ")));
        }
        let mut failed = Error::new(error.kind, text).because(because);
        failed.hints = error.hints;
        failed
    }

    pub fn obstacle(&self, obstacle: Obstacle) -> Error {
        let (name, target, fail, by, what) = match obstacle {
            Obstacle::Told(error) => return error,
            Obstacle::Trouble(trouble) => return self.explain(trouble),
            Obstacle::Left(name) => return stale(&name, "its document is gone: the page was left or reloaded"),
            Obstacle::Unfit { name, target, fail, by, what } => (name, target, fail, by, what),
        };
        let element = target.map_or(name.clone(), |target| format!("{name} {target}"));
        let what = what.unwrap_or_default();
        let text = match fail.as_str() {
            "removed" => return stale(&name, "the element was removed from the page"),
            "covered" => format!("{element} is covered by {} {what}", by.unwrap_or_default()),
            "hidden" if !what.is_empty() => format!("{element} is hidden: {what}"),
            "hidden" => format!("{element} is hidden"),
            "disabled" => format!("{element} is disabled"),
            "moving" => format!("{element} does not stop moving"),
            "outside" => format!("{element} cannot be brought into view"),
            "focus" => format!("{element} cannot take the focus"),
            other => format!("{element} cannot be acted on: {other}"),
        };
        Error::new(Kind::Other, text)
            .hint("a new snapshot shows what is on the page now; a larger `timeoutMs` waits longer")
    }
}

/// The error of a wait that was in vain.
pub fn waited(what: String, left: Duration) -> Error {
    let after = humantime::format_duration(Duration::from_millis(left.as_millis() as u64));
    Error::new(Kind::TimedOut, format!("{what} after {after}")).hint("a larger `timeoutMs` waits longer")
}

/// The error of a key that no keyboard has.
pub fn unknown_key(name: &str) -> Error {
    Error::usage(format!("there is no key {name:?}"))
        .hint("keys are called as in the DOM: `Control+Shift+P`, `Enter`, `ArrowDown`, `F5`, `a`; chords are separated by spaces")
}
