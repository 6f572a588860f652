//! The table of sessions that editors were requested to open. Does not depend on how they are opened and ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tether_base::sync::lock;
use tokio_util::sync::CancellationToken;

use super::connected_editors::ConnectedEditor;

/// One session in an editor.
pub struct EditorSession {
    /// Ours.
    pub number: u64,
    pub editor: Arc<ConnectedEditor>,
    /// A number or a string, as the editor has sent it.
    pub session_id: Value,
    /// Ends the relay; cancelled when it has ended.
    pub end: CancellationToken,
}

/// All sessions that editors were requested to open.
#[derive(Default)]
pub struct EditorSessions {
    sessions: Mutex<Vec<Arc<EditorSession>>>,
    last_number: AtomicU64,
}

impl EditorSessions {
    /// The number of a new session.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a session.
    pub fn add_session(&self, session: EditorSession) {
        lock(&self.sessions).push(Arc::new(session));
    }

    /// Removes a session, if it is there.
    pub fn forget_session(&self, number: u64) {
        lock(&self.sessions).retain(|session| session.number != number);
    }

    /// Removes the newest session with this id: two editors may have given the same.
    pub fn take_session(&self, session_id: &Value) -> Option<Arc<EditorSession>> {
        let mut sessions = lock(&self.sessions);
        let index = sessions.iter().rposition(|session| session.session_id == *session_id)?;
        Some(sessions.remove(index))
    }

    /// Which ids there are, as a hint.
    pub fn describe_ids(&self) -> String {
        let sessions = lock(&self.sessions);
        let ids: Vec<String> = sessions.iter().map(|session| session.session_id.to_string()).collect();
        if ids.is_empty() { "`debugger/open` opens one".to_owned() } else { format!("there are: {}", ids.join(", ")) }
    }
}
