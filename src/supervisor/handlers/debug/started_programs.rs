//! Starts several programs as one session: all of them, or none.
//!
//! Does not depend on where they are named.

use std::sync::Arc;

use tether_base::error::{Error, Result};

use super::launch::SessionPlace;
use crate::debug::SessionRequest;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::{HostedSession, ListedSession, SessionStart};

/// A session that was started.
pub struct StartedSession {
    /// The session.
    pub first: ListedSession,
    /// Remarks on its start.
    pub notes: Vec<String>,
}

/// The programs started so far; they are stopped when this is dropped before its end.
pub struct StartedPrograms<'a> {
    context: &'a SupervisorContext,
    /// Where the session is to be; none once it is there.
    place: Option<SessionPlace>,
    /// How many there will be.
    count: usize,
    session: Option<Arc<HostedSession>>,
    /// Their names.
    names: Vec<String>,
    /// What is to be said of the start of the further ones.
    notes: Vec<String>,
}

impl StartedPrograms<'_> {
    /// None yet, of so many.
    pub fn of(context: &SupervisorContext, place: SessionPlace, count: usize) -> StartedPrograms<'_> {
        StartedPrograms { context, place: Some(place), count, session: None, names: Vec::new(), notes: Vec::new() }
    }

    /// Starts the next one, and returns the session and the program's index. Errors: it cannot be started; the others run on
    /// until they are stopped.
    pub async fn start(&mut self, request: SessionRequest) -> Result<(Arc<HostedSession>, usize)> {
        let name = request.name.clone();
        let session = match (&self.session, self.place.take()) {
            (Some(session), _) => {
                self.notes.extend(session.start_further(request).await?.note);
                Arc::clone(session)
            }
            (None, place) => {
                let start = SessionStart { request, test_runner: None, awaits_programs: self.count > 1 };
                let place = place.unwrap_or(SessionPlace::New);
                Arc::clone(self.session.insert(self.context.start_hosted(start, place).await?))
            }
        };
        self.names.push(name);
        Ok((session, self.names.len() - 1))
    }

    /// Stops what was started.
    pub async fn stop_all(&mut self) {
        if let Some(session) = self.session.take() {
            // It has ended by itself, then.
            let _ = session.stop(None).await;
        }
    }

    /// All have been started: the session ends with the last of them. Errors: there was none.
    pub async fn finish(mut self, mut notes: Vec<String>) -> Result<StartedSession> {
        let none = || Error::usage("there is no program to debug");
        let session = self.session.clone().ok_or_else(none)?;
        if self.count > 1 {
            session.finish_start().await?;
        }
        self.session = None;
        notes.append(&mut self.notes);
        if self.names.len() > 1 {
            notes.push(format!("{} has {} programs: {}", session.id, self.names.len(), self.names.join(", ")));
        }
        Ok(StartedSession { first: ListedSession::Hosted(session), notes })
    }
}

impl Drop for StartedPrograms<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.context.hosted.run_task(async move { drop(session.stop(None).await) });
        }
    }
}
