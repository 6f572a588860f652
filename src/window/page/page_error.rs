//! Why a command to a session of the page has no result, and the user-facing error for it.

use tether_base::error::{Error, ErrorKind};
use tether_cdp::CdpError;

/// Why a command to a session of the page has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PageError {
    /// The renderer process of the page or frame has exited.
    #[error("the page crashed")]
    Crashed,
    /// The session is detached: the page or frame no longer exists.
    #[error("the page was closed")]
    Closed,
    /// The element is no longer in its document.
    #[error("the element was removed from the page")]
    ElementRemoved,
    /// The command was sent, and failed.
    #[error(transparent)]
    Cdp(CdpError),
}

/// The code of a browser's response to a command whose session is detached.
const SESSION_NOT_FOUND: i64 = -32001;

impl From<CdpError> for PageError {
    fn from(error: CdpError) -> PageError {
        match error {
            CdpError::ErrorResponse { code: SESSION_NOT_FOUND, .. } => PageError::Closed,
            error => PageError::Cdp(error),
        }
    }
}

impl PageError {
    /// Whether there was no response in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, PageError::Cdp(CdpError::TimedOut { .. }))
    }

    /// Whether the document in which a script ran no longer exists.
    pub fn is_document_gone(&self) -> bool {
        let texts = ["Cannot find context", "context was destroyed", "navigated or closed", "uniqueContextId"];
        matches!(self, PageError::Cdp(CdpError::ErrorResponse { message, .. }) if texts.iter().any(|it| message.contains(it)))
    }

    /// The user-facing error; `port` is the window's CDP port.
    pub fn into_error(self, port: u16) -> Error {
        match self {
            PageError::Crashed => Error::new(ErrorKind::Other, "the page crashed")
                .because("its renderer process has ended; the window itself is still running")
                .hint("`tether restart` relaunches the window"),
            PageError::Closed => Error::new(ErrorKind::NotFound, "the page was closed")
                .hint("`tether snapshot` shows the open pages; `tether restart` relaunches the window"),
            PageError::ElementRemoved => Error::new(ErrorKind::NotFound, "stale ref: take a new snapshot")
                .because("the element was removed from the page"),
            PageError::Cdp(cause) => connection_error(port, cause),
        }
    }
}

/// The user-facing error of a failed CDP connection or command.
pub fn connection_error(port: u16, cause: CdpError) -> Error {
    if matches!(cause, CdpError::TimedOut { .. }) {
        return Error::new(ErrorKind::TimedOut, format!("the page of the window on port {port} does not answer"))
            .because(format!("{cause}: it is busy with a long-running script, or it is frozen"))
            .hint("try again when it is idle; `tether restart` relaunches the window");
    }
    Error::new(ErrorKind::Other, format!("cannot reach the debug window on port {port}"))
        .because(cause)
        .hint("`tether status` shows whether it is running; `tether restart` relaunches it")
}
