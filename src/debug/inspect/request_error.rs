//! The error of a request that an adapter has refused or not answered, with what to do next in the session's state.

use crate::dap::DapError;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::snapshot::RunState;
use crate::error::{Error, ErrorKind};

impl DebugSession {
    /// `what` completes "cannot …".
    pub(in crate::debug) fn request_error(&self, what: &str, cause: DapError) -> Error {
        let kind = match cause {
            DapError::TimedOut { .. } => ErrorKind::TimedOut,
            _ => ErrorKind::Other,
        };
        let timed_out = kind == ErrorKind::TimedOut;
        let error = Error::new(kind, format!("cannot {what}")).because(cause);
        match self.snapshot().run_state() {
            RunState::Terminated | RunState::Disconnected => {
                error.hint("the session has ended; `tether debug launch` starts one")
            }
            RunState::Running => error.hint("`tether debug pause` stops the program"),
            _ if timed_out => error.hint("the program may be busy: `tether debug status` shows its state"),
            _ => error,
        }
    }
}

/// At most 80 characters of a text.
pub fn abbreviate(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
