//! What wakes the conversation with a joined editor: changes of the session, its output, its breakpoints, forwarded events.
//!
//! Nothing of it is queued for an editor that does not read, except forwarded events, of which the oldest are dropped.

use tokio::sync::{broadcast, watch};
use tracing::debug;

use crate::debug::breakpoints::BreakpointStore;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::session_shared::ForwardedEvent;
use crate::debug::session::snapshot::SessionSnapshot;

/// What has changed.
#[derive(Debug)]
pub enum FeedChange {
    State,
    Output,
    Breakpoints,
    Event(ForwardedEvent),
}

/// The receivers of one joined editor.
pub struct SessionFeed {
    snapshots: watch::Receiver<SessionSnapshot>,
    output: watch::Receiver<u64>,
    bindings: watch::Receiver<u64>,
    breakpoints: watch::Receiver<u64>,
    events: broadcast::Receiver<ForwardedEvent>,
}

impl SessionFeed {
    /// Receives what changes from now on.
    pub fn open(session: &DebugSession, breakpoints: &BreakpointStore) -> SessionFeed {
        SessionFeed {
            snapshots: session.watch(),
            output: session.event_log().watch_output(),
            bindings: session.shared.bindings_changed.subscribe(),
            breakpoints: breakpoints.watch(),
            events: session.shared.forwarded.subscribe(),
        }
    }

    /// The state now; a later change is a new one.
    pub fn take_state(&mut self) -> SessionSnapshot {
        self.snapshots.borrow_and_update().clone()
    }

    /// The next change. With `holds_state` that of the state waits. Cancel-safe. The senders exist as long as the session.
    pub async fn next(&mut self, holds_state: bool) -> FeedChange {
        loop {
            tokio::select! {
                Ok(()) = self.snapshots.changed(), if !holds_state => return FeedChange::State,
                Ok(()) = self.output.changed() => return FeedChange::Output,
                Ok(()) = self.bindings.changed() => return FeedChange::Breakpoints,
                Ok(()) = self.breakpoints.changed() => return FeedChange::Breakpoints,
                received = self.events.recv() => match received {
                    Ok(event) => return FeedChange::Event(event),
                    Err(broadcast::error::RecvError::Lagged(count)) => debug!("{count} events dropped for an editor"),
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}
