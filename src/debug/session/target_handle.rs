//! A handle to one target of a session, and the guard by which the target's own task holds it.
//!
//! Does not depend on how targets are started and ended.

use std::sync::Arc;

use tether_dap::DapClient;
use tether_dap::types::DapCapabilities;
use tokio::sync::{OwnedMutexGuard, mpsc};

use super::command::SessionCommand;
use super::session_shared::SessionShared;
use super::session_state::{SessionState, TargetChannel};
use super::stop::ThreadStop;
use super::target_state::{TargetEffect, TargetInput, TargetPhase};
use crate::adapters::Quirks;

/// A handle to one target of a session.
#[derive(Clone)]
pub struct TargetHandle {
    /// The target's index.
    pub id: usize,
    /// The session's shared part.
    pub shared: Arc<SessionShared>,
}

impl TargetHandle {
    /// Applies an input to the target; see [`SessionShared::apply_input`]. A connection that closes while the session is
    /// being stopped is part of that.
    pub fn apply_input(&self, input: TargetInput) -> TargetEffect {
        let input = match input {
            TargetInput::Closed(_) if self.shared.with_state(|state| state.is_stopping()) => TargetInput::Terminated,
            input => input,
        };
        self.shared.apply_input(self.id, input)
    }

    /// Whether the target has started, and not ended.
    pub fn is_active(&self) -> bool {
        let is_active = |phase: &TargetPhase| matches!(phase, TargetPhase::Running { .. } | TargetPhase::Stopped(_));
        self.shared.snapshot.borrow().targets.get(self.id).is_some_and(|target| is_active(&target.state.phase))
    }

    /// The stops that the target is in; the first is primary.
    pub fn stops(&self) -> Vec<ThreadStop> {
        self.shared
            .snapshot
            .borrow()
            .targets
            .get(self.id)
            .map(|target| target.state.stops().to_vec())
            .unwrap_or_default()
    }

    /// The client while the target is connected.
    pub fn client(&self) -> Option<DapClient> {
        self.shared.client(self.id)
    }

    /// Whether the caller is the first to disconnect the target, and so the one to send `disconnect`. A second
    /// `disconnect` while debugpy closes the connection ends its server, and whatever is debugged with it next.
    pub fn claim_disconnect(&self) -> bool {
        self.with_channel(|channel| !std::mem::replace(&mut channel.is_disconnecting, true)).unwrap_or_default()
    }

    /// Reads or changes the channel. A handle may carry an index that was never given: then there is none.
    pub fn with_channel<T>(&self, access: impl FnOnce(&mut TargetChannel) -> T) -> Option<T> {
        self.shared.with_state(|state| state.channels.get_mut(self.id).map(access))
    }

    /// Records the adapter's capabilities, once `launch` or `attach` has been sent.
    pub fn set_capabilities(&self, capabilities: DapCapabilities) {
        self.with_channel(|channel| {
            channel.capabilities.send_modify(|known| {
                // What an event has changed before is newer.
                let changed = known.replace(capabilities);
                if let (Some(known), Some(changed)) = (known, changed) {
                    known.change(changed);
                }
            });
        });
    }

    /// Waits until the adapter's capabilities are known.
    pub async fn wait_for_capabilities(&self) {
        if let Some(mut known) = self.with_channel(|channel| channel.capabilities.subscribe()) {
            let _ = known.wait_for(Option::is_some).await;
        }
    }

    /// Waits until all breakpoints have been sent and answered the first time.
    pub async fn wait_until_configured(&self) {
        if let Some(mut configured) = self.with_channel(|channel| channel.configured.subscribe()) {
            let _ = configured.wait_for(|configured| *configured).await;
        }
    }

    /// Whether the hook of a detach has been evaluated.
    pub fn is_detach_ready(&self) -> bool {
        self.with_channel(|channel| *channel.is_detach_ready.borrow()).unwrap_or_default()
    }

    /// Waits until the hook of a detach has been evaluated.
    pub async fn wait_until_detach_ready(&self) {
        if let Some(mut ready) = self.with_channel(|channel| channel.is_detach_ready.subscribe()) {
            let _ = ready.wait_for(|ready| *ready).await;
        }
    }

    /// The adapter's capabilities, as far as they are known.
    pub fn capabilities(&self) -> DapCapabilities {
        self.with_channel(|channel| channel.capabilities.borrow().clone()).flatten().unwrap_or_default()
    }

    /// Whether a changed breakpoint must be sent to the target.
    pub fn are_breakpoints_sent(&self) -> bool {
        self.with_channel(|channel| channel.are_breakpoints_sent).unwrap_or_default()
    }

    /// Where its adapter differs from the protocol.
    pub fn quirks(&self) -> Quirks {
        self.with_channel(|channel| channel.quirks).unwrap_or_default()
    }

    /// Serialises breakpoint requests to the target: held while one is sent and answered.
    pub async fn lock_breakpoint_requests(&self) -> OwnedMutexGuard<()> {
        let turn = self.with_channel(|channel| Arc::clone(&channel.breakpoint_requests)).unwrap_or_default();
        turn.lock_owned().await
    }

    /// Changes the bindings, and wakes who waits for that once the lock is released: they read the state.
    pub fn change_bindings(&self, change: impl FnOnce(&mut SessionState)) {
        self.shared.with_state(change);
        self.shared.bindings_changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Records why the target does not take breakpoints.
    pub fn record_refusal(&self, specs: &[u32], reason: &str) {
        self.change_bindings(|state| state.bindings.record_refusal(self.id, specs, reason));
    }
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
    pub fn apply_and_clean_up(&self, input: TargetInput) -> TargetEffect {
        let stops = matches!(input, TargetInput::Stopped(_));
        let effect = self.handle.apply_input(input);
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
        self.handle.apply_input(TargetInput::Closed("it was given up".to_owned()));
        self.handle.change_bindings(|state| state.clear_client(self.handle.id));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::debug::breakpoints::BreakpointStore;
    use crate::debug::session::snapshot::TargetSnapshot;

    #[test]
    fn only_the_first_disconnect_is_claimed() {
        let shared = Arc::new(SessionShared::new(BreakpointStore::in_memory(), Arc::default(), Duration::ZERO));
        let target = shared.add_target(TargetSnapshot::default());
        assert_eq!((target.claim_disconnect(), target.claim_disconnect()), (true, false));
    }
}
