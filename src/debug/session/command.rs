//! The commands to a session's task.

use tether_dap::{DapError, IncomingRequest};
use tokio::sync::oneshot;

use super::resume::Resume;

/// A command to the session's task.
pub enum SessionCommand {
    /// Connect a child target, as an adapter's reverse request `startDebugging` requires.
    SpawnChild {
        /// The target whose adapter has sent the request.
        parent: usize,
        /// The request.
        request: IncomingRequest,
    },
    /// Resume a thread of a target, and send the outcome.
    Resume {
        /// The target.
        target: usize,
        /// How to resume it.
        how: Resume,
        /// The adapter's thread id.
        thread: i64,
        /// Receives the outcome.
        reply: oneshot::Sender<Result<(), DapError>>,
    },
    /// A target has stopped: remove the temporary breakpoints.
    RemoveTemporary,
    /// End all targets.
    Stop {
        /// Whether the programs are ended too.
        terminate: bool,
    },
}
