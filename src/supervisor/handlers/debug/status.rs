//! The state of all debug sessions, or of one.

use futures_util::future::join_all;
use tether_base::error::{ErrorKind, Result};

use crate::api::debug::DebugStatusParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus};
use crate::debug::SessionEntry;
use crate::session_host::operations::status::full_status;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

impl OperationHandler for DebugStatusParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<DebugStatus> {
        let all = context.list_sessions();
        let notes = Vec::from_iter(context.sessions.breakpoint_store_problem().await);
        let living = all.iter().filter(|session| !session.is_ended()).count();
        let is_in_window = |session: &ListedSession| session.is_following_window() && !session.is_ended();
        let is_window_stale = all.iter().any(is_in_window) && context.window.find_stale_cause().await.is_some();
        if self.session_id.is_some() || living == 1 {
            let session = context.find_session(self.session_id.as_deref())?;
            let session = Some(read_status(context, &session, is_window_stale).await);
            return Ok(DebugStatus { session, sessions: None, notes });
        }
        let (ended, living): (Vec<ListedSession>, Vec<ListedSession>) =
            all.into_iter().partition(ListedSession::is_ended);
        let all = living.iter().chain(&ended);
        let listed = join_all(all.map(|session| read_status(context, session, is_window_stale))).await;
        Ok(DebugStatus { session: None, sessions: Some(listed), notes })
    }
}

async fn read_status(
    context: &SupervisorContext,
    session: &ListedSession,
    is_window_stale: bool,
) -> DebugSessionStatus {
    match session {
        ListedSession::Here(managed) => full_status(&context.sessions, managed, is_window_stale).await,
        ListedSession::Hosted(hosted) => {
            let status = hosted.read_status().await.unwrap_or_else(|error| match error.kind {
                ErrorKind::TimedOut => {
                    DebugSessionStatus { message: Some(error.to_string()), ..session.known_status() }
                }
                // It has just ended.
                _ => session.known_status(),
            });
            let stale = if session.is_following_window() { is_window_stale } else { status.stale };
            DebugSessionStatus { stale, ..status }
        }
    }
}
