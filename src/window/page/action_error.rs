//! Why an action could not be done, and how that is told.

use std::time::Duration;

use super::element_refs::{lock_unpoisoned, stale_ref_error};
use super::input_action::InputAction;
use super::page_client::{PageClient, PageError};
use super::run_actions::ActionOutcome;
use crate::error::{Error, ErrorKind};

/// Why an action cannot be done.
pub enum ActionError {
    /// The element is there, but not fit.
    NotActionable {
        name: String,
        target: Option<String>,
        fail: String,
        by: Option<String>,
        what: Option<String>,
    },
    /// Its document is gone.
    DocumentGone(String),
    Trouble(PageError),
    User(Error),
}

impl From<PageError> for ActionError {
    fn from(trouble: PageError) -> Self {
        ActionError::Trouble(trouble)
    }
}

impl From<Error> for ActionError {
    fn from(error: Error) -> Self {
        ActionError::User(error)
    }
}

impl ActionError {
    /// Whether waiting may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, ActionError::NotActionable { fail, .. } if fail != "removed")
    }
}

impl PageClient {
    /// The error of a batch.
    pub fn batch_error(
        &self,
        obstacle: ActionError,
        action: &InputAction,
        count: usize,
        done: &[ActionOutcome],
    ) -> Error {
        let error = self.action_user_error(obstacle);
        let mut text = error.doing;
        if count > 1 {
            text = format!("action {} of {count} failed: {text}", done.len() + 1);
        }
        let source = error.source.map(|source| source.to_string());
        let mut because = source.unwrap_or_else(|| format!("it was to {}", action.kind));
        let notes = lock_unpoisoned(&self.shared.targets).take_notices();
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

    pub fn action_user_error(&self, obstacle: ActionError) -> Error {
        let (name, target, fail, by, what) = match obstacle {
            ActionError::User(error) => return error,
            ActionError::Trouble(trouble) => return self.user_error(trouble),
            ActionError::DocumentGone(name) => {
                return stale_ref_error(&name, "its document is gone: the page was left or reloaded");
            }
            ActionError::NotActionable { name, target, fail, by, what } => (name, target, fail, by, what),
        };
        let element = target.map_or(name.clone(), |target| format!("{name} {target}"));
        let what = what.unwrap_or_default();
        let text = match fail.as_str() {
            "removed" => return stale_ref_error(&name, "the element was removed from the page"),
            "covered" => format!("{element} is covered by {} {what}", by.unwrap_or_default()),
            "hidden" if !what.is_empty() => format!("{element} is hidden: {what}"),
            "hidden" => format!("{element} is hidden"),
            "disabled" => format!("{element} is disabled"),
            "moving" => format!("{element} does not stop moving"),
            "outside" => format!("{element} cannot be brought into view"),
            "focus" => format!("{element} cannot take the focus"),
            other => format!("{element} cannot be acted on: {other}"),
        };
        Error::new(ErrorKind::Other, text)
            .hint("a new snapshot shows what is on the page now; a larger `timeoutMs` waits longer")
    }
}

/// The error of a wait that was in vain.
pub fn wait_timed_out(what: String, left: Duration) -> Error {
    let after = humantime::format_duration(Duration::from_millis(left.as_millis() as u64));
    Error::new(ErrorKind::TimedOut, format!("{what} after {after}")).hint("a larger `timeoutMs` waits longer")
}

/// The error of a key that no keyboard has.
pub fn unknown_key(name: &str) -> Error {
    Error::usage(format!("there is no key {name:?}"))
        .hint("keys are called as in the DOM: `Control+Shift+P`, `Enter`, `ArrowDown`, `F5`, `a`; chords are separated by spaces")
}
