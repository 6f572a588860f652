//! Why an action on the page failed, and the user-facing error for it.

use std::time::Duration;

use tether_base::error::{Error, ErrorKind};

use super::element_refs::stale_ref_error;
use super::injected_script::ElementCheck;
use super::page_error::PageError;

/// Why an action failed.
pub enum ActionError {
    /// The element exists, but cannot be acted on.
    NotActionable {
        /// Its ref.
        name: String,
        /// The ref of the covering element.
        by: Option<String>,
        /// The failed check.
        found: Box<ElementCheck>,
    },
    /// The document of this ref no longer exists.
    DocumentGone(String),
    /// A command failed.
    Page(PageError),
    /// Already explained to the user.
    User(Error),
}

impl From<PageError> for ActionError {
    fn from(error: PageError) -> Self {
        ActionError::Page(error)
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
        matches!(self, ActionError::NotActionable { found, .. } if found.fail.as_deref() != Some("removed"))
    }

    /// The user-facing error; `port` is the window's CDP port.
    pub fn into_error(self, port: u16) -> Error {
        let (name, by, found) = match self {
            ActionError::User(error) => return error,
            ActionError::Page(error) => return error.into_error(port),
            ActionError::DocumentGone(name) => {
                return stale_ref_error(&name, "its document is gone: the page was left or reloaded");
            }
            ActionError::NotActionable { name, by, found } => (name, by, *found),
        };
        let element = found.target.map_or(name.clone(), |target| format!("{name} {target}"));
        let what = found.what.unwrap_or_default();
        let text = match found.fail.unwrap_or_default().as_str() {
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
            .hint("a new snapshot shows the current state of the page; a larger `timeoutMs` waits longer")
    }
}

/// The error of a wait whose condition was not met; `state` is what is still the case.
pub fn wait_timed_out(state: String, waited: Duration) -> Error {
    let waited = humantime::format_duration(Duration::from_millis(waited.as_millis() as u64));
    Error::new(ErrorKind::TimedOut, format!("{state} after {waited}")).hint("a larger `timeoutMs` waits longer")
}

/// The error of an unknown key name.
pub fn unknown_key(name: &str) -> Error {
    Error::usage(format!("there is no key {name:?}"))
        .hint("keys are named as in the DOM: `Control+Shift+P`, `Enter`, `ArrowDown`, `F5`, `a`; chords are separated by spaces")
}
