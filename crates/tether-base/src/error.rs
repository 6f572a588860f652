//! The one user-facing error: what failed, because of what, what to do next.
//!
//! Modules use precise enums (`thiserror`) inside; their exported functions return an [`Error`].
//! The [`ErrorKind`] alone decides the exit code, the JSON-RPC code and MCP's `isError`.
//! Depends only on `display_text`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::display_text::{escape_line, escape_text, mark_breaks};

/// A result whose error is the user-facing [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of a failure; it decides the exit code and the JSON-RPC error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorKind {
    /// Bad arguments, or bad settings.
    Usage,
    /// No such session, window, file.
    NotFound,
    /// The build command failed, or hung and was stopped.
    BuildFailed,
    /// The workspace's commands have not been trusted.
    NotTrusted,
    /// An adapter or another program that is needed is not installed.
    MissingTool,
    /// A deadline passed.
    TimedOut,
    /// The caller cancelled the request, or disconnected.
    Cancelled,
    /// Everything else.
    Other,
}

impl ErrorKind {
    /// The exit code of the command line (design §7).
    pub fn exit_code(self) -> u8 {
        self.codes().0
    }

    /// The JSON-RPC 2.0 error code; -32602 is "invalid params", -32800 the LSP's "request cancelled",
    /// the others are in the range that the specification leaves to servers.
    pub fn rpc_code(self) -> i64 {
        self.codes().1
    }

    fn codes(self) -> (u8, i64) {
        match self {
            ErrorKind::Usage => (2, -32602),
            ErrorKind::NotFound => (3, -32001),
            ErrorKind::BuildFailed => (4, -32002),
            ErrorKind::NotTrusted => (5, -32003),
            ErrorKind::MissingTool => (6, -32004),
            ErrorKind::TimedOut => (124, -32005),
            ErrorKind::Cancelled => (1, -32800),
            ErrorKind::Other => (1, -32000),
        }
    }
}

/// What failed (`doing`), because of what (`source`), and the commands that may cure it (`hints`).
///
/// ```text
/// cannot reach the debug window on port 9222
///   because: connection refused
///   hint: `tether start` launches a new one
/// ```
#[derive(Debug, thiserror::Error)]
pub struct Error {
    /// Decides the exit code, and the code of JSON-RPC.
    pub kind: ErrorKind,
    /// A lowercase fragment that names the subject: "cannot reach the debug window on port 9222".
    pub doing: String,
    /// `None` when `doing` says it all.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Each a command that the reader can run, or a setting to change.
    pub hints: Vec<String>,
}

impl Error {
    /// An error without cause and hints.
    pub fn new(kind: ErrorKind, doing: impl Into<String>) -> Self {
        Error { kind, doing: doing.into(), source: None, hints: Vec::new() }
    }

    /// An error of kind [`ErrorKind::Usage`].
    pub fn usage(doing: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, doing)
    }

    /// An error of kind [`ErrorKind::Other`].
    pub fn other(doing: impl Into<String>) -> Self {
        Self::new(ErrorKind::Other, doing)
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The chain of causes below `doing`, outermost first.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next = self.source.as_deref().map(|s| s as &dyn std::error::Error);
        while let Some(cause) = next {
            // The text of our own errors includes their causes, which the loop adds itself.
            causes.push(cause.downcast_ref::<Error>().map_or_else(|| cause.to_string(), |ours| ours.doing.clone()));
            next = cause.source();
        }
        causes
    }

    /// The hints, and those of the causes that are errors of ours.
    fn all_hints(&self) -> Vec<String> {
        let below = self.source.as_deref().and_then(|cause| cause.downcast_ref::<Error>()).map(Error::all_hints);
        self.hints.iter().cloned().chain(below.unwrap_or_default()).collect()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its subject is a name: one line, whatever is in it.
        f.write_str(&escape_line(&self.doing))?;
        for cause in self.causes() {
            // A cause may have lines (the tail of a build's output): none of them reads as one of this error.
            write!(f, "\n  because: {}", mark_breaks(&escape_text(cause.trim_end())))?;
        }
        for hint in self.all_hints() {
            write!(f, "\n  hint: {}", escape_line(&hint))?;
        }
        Ok(())
    }
}

/// Adds the failed action to a lower error.
pub trait ErrorContext<T> {
    /// Wraps the error as [`ErrorKind::Other`], with `doing` naming the subject.
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> ErrorContext<T> for Result<T, E> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::other(doing()).because(cause))
    }
}

/// The error as it travels in the `data` of a JSON-RPC error object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The receiver exits with its code.
    pub kind: ErrorKind,
    /// As in [`Error::doing`].
    pub doing: String,
    /// The texts of the causes, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// Those of the causes are among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl From<&Error> for ErrorData {
    fn from(error: &Error) -> Self {
        ErrorData { kind: error.kind, doing: error.doing.clone(), because: error.causes(), hints: error.all_hints() }
    }
}

impl From<ErrorData> for Error {
    fn from(data: ErrorData) -> Self {
        let source =
            data.because.into_iter().rev().fold(None, |inner, text| Some(Box::new(RemoteCause { text, inner })));
        Error { kind: data.kind, doing: data.doing, source: source.map(|s| s as _), hints: data.hints }
    }
}

/// A cause that came over the wire: only its text is left.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct RemoteCause {
    text: String,
    #[source]
    inner: Option<Box<RemoteCause>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_because_of_another_one_of_ours_has_each_cause_and_hint_once() {
        let inner = Error::other("cannot run npm").because("it is not there").hint("install it");
        let outer = Error::other("cannot install x").because(inner).hint("try again");
        let text = "cannot install x\n  because: cannot run npm\n  because: it is not there\n  hint: try again\n  hint: install it";
        assert_eq!(outer.to_string(), text);
        assert_eq!(Error::from(ErrorData::from(&outer)).to_string(), text);
    }

    #[test]
    fn a_name_adds_no_line_to_an_error() {
        let error =
            Error::other("cannot read a\n  hint: `evil`\r/x").because("one\u{1b}\r\ntwo\u{202e}").hint("`ls a\nb`");
        let text = "cannot read a\\n  hint: `evil`\\r/x\n  because: one\\u{1b}\n    | two\\u{202e}\n  hint: `ls a\\nb`";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_error_keeps_its_causes_and_hints_over_the_wire() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = Error::new(ErrorKind::NotFound, "cannot reach the debug window on port 9222")
            .because(refused)
            .hint("`tether start` launches a new one");
        let text = error.to_string();
        assert_eq!(
            text,
            "cannot reach the debug window on port 9222\n  because: connection refused\n  hint: `tether start` launches a new one"
        );
        let json = serde_json::to_string(&ErrorData::from(&error)).unwrap();
        let back = Error::from(serde_json::from_str::<ErrorData>(&json).unwrap());
        assert_eq!(back.to_string(), text);
        assert_eq!(back.kind, ErrorKind::NotFound);
    }
}
