//! The callers that wait for the window's running operation: one that is asked for by several runs once, and answers all.

use std::sync::Arc;
use std::time::Instant;

use super::caller::{CommandOrigin, CommandReply, CommandResult, HeldSelection, OperationTimes, WindowCommand};

/// Who waits for the running operation, and what for its end.
#[derive(Default)]
pub(super) struct WaitingCallers {
    replies: Vec<CommandReply>,
    /// The configurations that the operation selects.
    selections: Vec<Arc<dyn HeldSelection>>,
    times: OperationTimes,
    /// Whether all commands that the operation carries out are automatic.
    is_automatic: bool,
    /// Commands to be handled after it has ended.
    deferred: Vec<WindowCommand>,
}

impl WaitingCallers {
    /// An operation begins, for this command.
    pub fn begin_operation(&mut self, command: WindowCommand) {
        self.times = OperationTimes { started: Some(Instant::now()), launch_started: None };
        self.is_automatic = command.origin == CommandOrigin::Automatic;
        self.selections = command.selection.into_iter().collect();
        self.replies.push(command.reply);
    }

    /// The launch of the operation begins.
    pub fn begin_launch(&mut self, at: Instant) {
        self.times.launch_started = Some(at);
    }

    /// The result of the running operation is the command's, too.
    pub fn join(&mut self, command: WindowCommand) {
        self.is_automatic &= command.origin == CommandOrigin::Automatic;
        self.selections.extend(command.selection);
        self.replies.push(command.reply);
    }

    /// Keeps a command until the operation has ended.
    pub fn defer(&mut self, command: WindowCommand) {
        self.deferred.push(command);
    }

    /// The commands that were kept.
    pub fn take_deferred(&mut self) -> Vec<WindowCommand> {
        std::mem::take(&mut self.deferred)
    }

    /// Whether all commands that the operation carries out are automatic.
    pub fn is_automatic(&self) -> bool {
        self.is_automatic
    }

    /// Forgets the callers that have gone.
    pub fn forget_gone(&mut self) {
        self.replies.retain(|reply| !reply.is_closed());
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Forgets which configurations the operation selects.
    pub fn drop_selections(&mut self) {
        self.selections.clear();
    }

    /// The operation has ended.
    pub fn end_operation(&mut self, result: &CommandResult) {
        self.selections.clear();
        self.respond(result);
    }

    /// Answers all who wait. One that has gone needs no answer.
    pub fn respond(&mut self, result: &CommandResult) {
        for reply in self.replies.drain(..) {
            let _ = reply.send((result.clone(), self.times));
        }
    }
}
