//! A debug session as it is listed: in this process, or in a host.

use std::sync::Arc;

use tether_base::error::Result;

use super::HostedSession;
use crate::api::debug::results::{DebugSessionStatus, SessionEndReport, StopLocation};
use crate::debug::{ManagedSession, SessionEntry, SessionRegistry, SessionRequest};
use crate::session_host::operations::control::end_report;
use crate::session_host::operations::status::known_status;
use crate::session_host::operations::stop_report::stop_location;
use crate::vocabulary::RunState;

/// One session; clones are the same session.
#[derive(Clone)]
pub enum ListedSession {
    /// It lives in this process, and ends with it.
    Here(ManagedSession),
    /// It lives in a host.
    Hosted(Arc<HostedSession>),
}

impl SessionEntry for ListedSession {
    fn id(&self) -> &str {
        match self {
            ListedSession::Here(managed) => &managed.id,
            ListedSession::Hosted(hosted) => &hosted.id,
        }
    }

    fn name(&self) -> &str {
        &self.request().name
    }

    fn run_state(&self) -> RunState {
        match self {
            ListedSession::Here(managed) => managed.run_state(),
            ListedSession::Hosted(hosted) => hosted.read_facts(|facts| facts.status.state),
        }
    }

    fn is_ended(&self) -> bool {
        match self {
            ListedSession::Here(managed) => managed.is_ended(),
            ListedSession::Hosted(hosted) => hosted.is_ended(),
        }
    }

    fn ended_at(&self) -> Option<u64> {
        match self {
            ListedSession::Here(managed) => managed.ended_at(),
            ListedSession::Hosted(hosted) => hosted.read_facts(|facts| facts.status.ended_at),
        }
    }
}

impl ListedSession {
    /// What it was started with.
    pub fn request(&self) -> &Arc<SessionRequest> {
        match self {
            ListedSession::Here(managed) => &managed.request,
            ListedSession::Hosted(hosted) => &hosted.request,
        }
    }

    /// Its status, as far as it is known without a request to its adapter.
    pub fn known_status(&self) -> DebugSessionStatus {
        match self {
            ListedSession::Here(managed) => known_status(managed),
            ListedSession::Hosted(hosted) => hosted.read_facts(|facts| facts.status.clone()),
        }
    }

    /// Rises with each change of what is known of it. `None`: that is not counted.
    pub fn revision(&self) -> Option<u64> {
        match self {
            ListedSession::Here(_) => None,
            ListedSession::Hosted(hosted) => Some(hosted.watch_facts().borrow().revision),
        }
    }

    /// Whether it is attached to the next launch of what it follows, ended or not.
    pub fn is_following(&self) -> bool {
        match self {
            ListedSession::Here(managed) => managed.is_following(),
            ListedSession::Hosted(hosted) => hosted.read_facts(|facts| facts.is_following),
        }
    }

    /// Where its program has stopped.
    pub async fn stop_location(&self, sessions: &SessionRegistry) -> Option<StopLocation> {
        match self {
            ListedSession::Here(managed) => stop_location(sessions, managed).await,
            ListedSession::Hosted(hosted) => hosted.stop_location().await.ok().flatten(),
        }
    }

    /// Whether it is attached to the next launch of the window, ended or not.
    pub fn is_following_window(&self) -> bool {
        self.is_following() && self.request().follows_window()
    }

    /// Whether it is being attached to again.
    pub fn is_reconnecting(&self) -> bool {
        match self {
            ListedSession::Here(managed) => managed.is_reconnecting(),
            ListedSession::Hosted(hosted) => hosted.read_facts(|facts| facts.is_reconnecting),
        }
    }

    /// What its caller should know of its start.
    pub fn note(&self) -> Option<String> {
        match self {
            ListedSession::Here(managed) => managed.note.clone(),
            ListedSession::Hosted(hosted) => hosted.note.clone(),
        }
    }

    /// Ends it at its user's request. Errors: its debugger cannot let go of a program that it has launched.
    pub async fn stop(&self, sessions: &SessionRegistry, detach: Option<bool>) -> Result<SessionEndReport> {
        match self {
            ListedSession::Here(managed) => {
                let state = sessions.stop_session(managed, detach).await?;
                Ok(end_report(managed, state))
            }
            ListedSession::Hosted(hosted) => hosted.stop(detach).await,
        }
    }
}
