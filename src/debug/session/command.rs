//! The commands to a session's task, and the guard by which a target's own task sends them.

use tether_dap::{DapError, IncomingRequest};
use tokio::sync::{mpsc, oneshot};

use super::requests::Resume;
use super::target_handle::TargetHandle;
use super::target_state::{TargetEffect, TargetInput};

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
    /// The target.
    pub handle: TargetHandle,
    /// The session's task; weak, so that the last handle ends the session.
    pub commands: mpsc::WeakUnboundedSender<SessionCommand>,
}

impl std::ops::Deref for TargetGuard {
    type Target = TargetHandle;

    fn deref(&self) -> &TargetHandle {
        &self.handle
    }
}

impl TargetGuard {
    /// Applies an input; a stop also removes the temporary breakpoints.
    pub fn step(&self, input: TargetInput) -> TargetEffect {
        let stops = matches!(input, TargetInput::Stopped(_));
        let effect = self.handle.step(input);
        if stops {
            self.send_command(SessionCommand::RemoveTemporary);
        }
        effect
    }

    /// Reports, with the next result about the session, that a child target was not reached.
    pub fn report_unreached(&self, cause: &str) {
        let shared = &self.handle.shared;
        let Some(target) = shared.snapshot.borrow().targets.get(self.handle.id).cloned() else { return };
        if target.parent.is_some() && !shared.with_state(|state| state.is_stopping()) {
            let label = target.label(self.handle.id);
            let notice = format!("{label} is not debugged, it was not reached: {cause}");
            shared.event_log.push_notice("targetUnreached", notice);
        }
    }

    /// Sends a command. When the session is ending it is dropped, and a reverse request in it so refused.
    pub fn send_command(&self, command: SessionCommand) {
        let _ = self.commands.upgrade().map(|commands| commands.send(command));
    }
}

impl Drop for TargetGuard {
    fn drop(&mut self) {
        // However the task has ended: nothing waits for a target without a connection.
        self.handle.step(TargetInput::Closed("it was given up".to_owned()));
        self.handle.change_bindings(|state| state.clear_client(self.handle.id));
    }
}
