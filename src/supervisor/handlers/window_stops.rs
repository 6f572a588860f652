//! Programs of the window that are stopped in the debugger: an operation on the page that waits for one is answered at once.
//!
//! Does not depend on what an operation does.

use std::time::Duration;

use tether_base::error::{Error, Result};

use crate::api::debug::results::StoppedSession;
use crate::debug::SessionEntry;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::supervisor::operation_call::OperationCall;
use crate::vocabulary::RunState;
use crate::window::FreshPage;

/// How long an operation may go on beside a stop: the page still evaluates while it is stopped.
const STOPPED_GRACE: Duration = Duration::from_millis(500);

/// The outcome of an operation on the page.
pub enum PageWork<T> {
    /// It has ended.
    Done(Result<T>),
    /// It waits for a program that is stopped; it was given up.
    Stopped(StoppedSession),
}

impl<T> PageWork<T> {
    /// For operations that have nothing to say of a page that is stopped. Errors: it is.
    pub fn done(self) -> Result<T> {
        match self {
            PageWork::Done(outcome) => outcome,
            PageWork::Stopped(stopped) => Err(stopped_error(&stopped)),
        }
    }
}

fn stopped_error(stopped: &StoppedSession) -> Error {
    let id = &stopped.session_id;
    let place = stopped.location.as_ref().map(|location| match &location.source_path {
        Some(path) => format!(" at {path}:{}", location.line_number),
        None => format!(" in {}", location.method_name),
    });
    Error::other("the page is stopped in the debugger")
        .because(format!("debug session {id} is stopped{}", place.unwrap_or_default()))
        .hint(resume_hint(stopped))
}

/// What to do about a program that is stopped.
pub fn resume_hint(stopped: &StoppedSession) -> String {
    let id = &stopped.session_id;
    format!(
        "`tether debug stack --session {id}` shows where it is; `tether debug continue --session {id}` lets it continue"
    )
}

/// Does `work`, unless it waits for a program of the window that is stopped.
pub async fn until_stopped<T>(context: &SupervisorContext, work: impl Future<Output = Result<T>>) -> PageWork<T> {
    tokio::pin!(work);
    let mut listed = context.sessions.watch();
    loop {
        listed.borrow_and_update();
        let Some(stopped) = find_stopped(context) else {
            tokio::select! {
                biased;
                outcome = &mut work => return PageWork::Done(outcome),
                Ok(()) = listed.changed() => continue,
            }
        };
        if let Ok(outcome) = tokio::time::timeout(STOPPED_GRACE, &mut work).await {
            return PageWork::Done(outcome);
        }
        // It may have gone on meanwhile.
        if stopped.run_state() == RunState::Stopped {
            return PageWork::Stopped(describe_stopped(context, &stopped).await);
        }
    }
}

/// Waits until the extensions under development are loaded; a program that is stopped in the debugger ends the wait.
pub async fn wait_for_extensions(context: &SupervisorContext, call: &OperationCall<'_>) {
    let loading = async {
        context.window.wait_for_extensions(call).await;
        Ok(())
    };
    drop(until_stopped(context, loading).await);
}

/// The page of a window that is up to date, when its extensions are loaded.
pub async fn open_loaded_page(context: &SupervisorContext, call: &OperationCall<'_>) -> Result<FreshPage> {
    let fresh = context.window.open_fresh_page(call).await?;
    wait_for_extensions(context, call).await;
    Ok(fresh)
}

/// A session that is stopped in the window, after an operation on it.
pub async fn stopped_session(context: &SupervisorContext) -> Option<StoppedSession> {
    let stopped = find_stopped(context)?;
    Some(describe_stopped(context, &stopped).await)
}

fn find_stopped(context: &SupervisorContext) -> Option<ListedSession> {
    let is_stopped = |it: &ListedSession| it.is_following_window() && it.run_state() == RunState::Stopped;
    context.active_sessions().into_iter().find(is_stopped)
}

async fn describe_stopped(context: &SupervisorContext, stopped: &ListedSession) -> StoppedSession {
    let location = stopped.stop_location(&context.sessions).await;
    StoppedSession { session_id: stopped.id().to_owned(), location }
}
