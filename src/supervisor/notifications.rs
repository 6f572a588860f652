//! The notifications that a connection sends: changes of the window, its console and debug sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tether_wire::rpc::RpcPeer;
use tokio::sync::watch;

use super::context::SupervisorContext;
use super::handlers::window::window_status;
use super::hosted_sessions::ListedSession;
use crate::api::debug::results::DebugSessionStatus;
use crate::api::protocol::{
    ClientRole, DEBUG_DID_CHANGE_STATE, InitializeParams, TIMELINE_DID_CHANGE, WINDOW_DID_CHANGE_CONSOLE,
    WINDOW_DID_CHANGE_STATE,
};
use crate::debug::SessionEntry;
use crate::timeline::Timeline;
use crate::window::{Window, WindowFeed};

/// Between two notifications of what may come in floods.
const PAUSE: Duration = Duration::from_millis(500);

/// Notifies a subscribed front end of new console entries.
pub(super) async fn notify_console(window: Window, peer: RpcPeer, client: InitializeParams) {
    if client.capabilities.did_change_state {
        notify_count(window.console_count(), &peer, WINDOW_DID_CHANGE_CONSOLE).await;
    }
}

/// Notifies a subscribed front end of new events in the timeline.
pub(super) async fn notify_timeline(timeline: Timeline, peer: RpcPeer, client: InitializeParams) {
    if subscribes_to_states(&client) {
        notify_count(timeline.watch(), &peer, TIMELINE_DID_CHANGE).await;
    }
}

/// Notifies of each change of a count.
async fn notify_count(mut count: watch::Receiver<u64>, peer: &RpcPeer, method: &str) {
    while count.changed().await.is_ok() {
        if peer.notify(method, &Value::Null).await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn subscribes_to_states(client: &InitializeParams) -> bool {
    matches!(client.role, ClientRole::Editor | ClientRole::Host) || client.capabilities.did_change_state
}

/// Notifies a subscribed front end of debug sessions that have started, stopped, continued or ended.
pub(super) async fn notify_sessions(supervisor: Arc<SupervisorContext>, peer: RpcPeer, client: InitializeParams) {
    if !subscribes_to_states(&client) {
        return;
    }
    let sessions = &supervisor.sessions;
    let mut seen = sessions.watch();
    sessions.wait_until_recovered(None).await;
    // Sends only changes: the front end can request the current state.
    seen.borrow_and_update();
    let (mut last, _) = read_statuses(&supervisor.list_sessions(), BTreeMap::new());
    while seen.changed().await.is_ok() {
        // Several changes at once are sent as one.
        let (known, changed) = read_statuses(&supervisor.list_sessions(), last);
        for id in changed {
            let Some(Ok(params)) = known.get(&id).map(|known| serde_json::to_value(&known.status)) else { return };
            if peer.notify(DEBUG_DID_CHANGE_STATE, &params).await.is_err() {
                return;
            }
        }
        last = known;
    }
}

/// A status that a front end knows.
struct KnownStatus {
    /// Of what it was read from.
    revision: Option<u64>,
    status: DebugSessionStatus,
}

/// The statuses of sessions, and the ids of those that differ from the last. What has not changed is not read again: there may be
/// hundreds of sessions, and one that is stepped in.
fn read_statuses(
    sessions: &[ListedSession],
    mut last: BTreeMap<String, KnownStatus>,
) -> (BTreeMap<String, KnownStatus>, Vec<String>) {
    let (mut known, mut changed) = (BTreeMap::new(), Vec::new());
    for session in sessions {
        let (id, revision, before) = (session.id().to_owned(), session.revision(), last.remove(session.id()));
        let now = match before {
            Some(before) if revision.is_some() && before.revision == revision => before,
            before => {
                let status = session.known_status();
                if before.is_none_or(|before| before.status != status) {
                    changed.push(id.clone());
                }
                KnownStatus { revision, status }
            }
        };
        known.insert(id, now);
    }
    (known, changed)
}

/// Notifies a subscribed front end of changes of the window's state and of its files.
pub(super) async fn notify_window(supervisor: Arc<SupervisorContext>, peer: RpcPeer, client: InitializeParams) {
    if !subscribes_to_states(&client) {
        return;
    }
    let mut changes = WindowFeed::follow(&supervisor.window);
    let mut last = None;
    loop {
        let status = window_status(&supervisor).await;
        // Sends only changes: the front end can request the current state.
        if last.as_ref().is_some_and(|last| *last != status) {
            let Ok(params) = serde_json::to_value(&status) else { return };
            if peer.notify(WINDOW_DID_CHANGE_STATE, &params).await.is_err() {
                return;
            }
        }
        last = Some(status);
        if !changes.wait_for_change().await {
            return;
        }
    }
}
