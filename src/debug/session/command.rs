//! The commands to a session's task, and the guard by which a target's own task sends them.

use tokio::sync::{mpsc, oneshot};

use super::requests::Resume;
use super::target_handle::TargetHandle;
use super::target_state::{TargetEffect, TargetInput};
use crate::dap::{DapError, IncomingRequest};

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

/// A target as its own task owns it. Dropping it ends the target.
pub struct TargetGuard {
    handle: TargetHandle,
    commands: mpsc::WeakUnboundedSender<SessionCommand>,
}

impl std::ops::Deref for TargetGuard {
    type Target = TargetHandle;

    fn deref(&self) -> &TargetHandle {
        &self.handle
    }
}

impl TargetGuard {
    /// A guard for a target that has just been added.
    pub fn new(handle: TargetHandle, commands: mpsc::WeakUnboundedSender<SessionCommand>) -> TargetGuard {
        TargetGuard { handle, commands }
    }

    /// Applies an input; a stop also removes the temporary breakpoints.
    pub fn step(&self, input: TargetInput) -> TargetEffect {
        let stops = matches!(input, TargetInput::Stopped(_));
        let effect = self.handle.step(input);
        // Without a handle to the session it is ending.
        if stops && let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(SessionCommand::RemoveTemporary);
        }
        effect
    }

    /// Has a child target connected for a reverse request. When the session is ending, the request is dropped, and so
    /// refused.
    pub fn request_child(&self, request: IncomingRequest) {
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(SessionCommand::SpawnChild { parent: self.handle.id, request });
        }
    }
}

impl Drop for TargetGuard {
    fn drop(&mut self) {
        // However the task has ended: nothing waits for a target without a connection.
        self.handle.step(TargetInput::Closed("it was given up".to_owned()));
        self.handle.clear_client();
    }
}
