//! The caller of a window operation: receives progress, may cancel.
//!
//! Does not depend on the operation itself.

use tokio::sync::mpsc;

use super::commands::ActorMessage;

/// The caller of an operation, for as long as the operation runs.
pub trait Caller: Send + Sync {
    /// Receives a short line about the current step.
    fn report_progress(&self, progress: &str);
    /// Whether the caller cancelled the operation. A front end that only disconnects has not: its end changes nothing.
    fn is_cancelled(&self) -> bool;
}

/// Notifies the actor on drop when the caller has cancelled its command before the command was done.
pub struct CancelGuard<'a> {
    inbox: &'a mpsc::Sender<ActorMessage>,
    caller: &'a dyn Caller,
}

impl<'a> CancelGuard<'a> {
    /// To be created before the reply channel of the command, and so dropped after its receiver: the actor then sees
    /// which callers still wait.
    pub fn new(inbox: &'a mpsc::Sender<ActorMessage>, caller: &'a dyn Caller) -> Self {
        CancelGuard { inbox, caller }
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.caller.is_cancelled() {
            // If the inbox is full, the commands in it need the operation anyway.
            let _ = self.inbox.try_send(ActorMessage::CallerCancelled);
        }
    }
}
