//! Starts several programs as one session: all of them, or none.
//!
//! Does not depend on where they are named.

use tether_base::error::{Error, Result};

use crate::debug::{ManagedSession, SessionRegistry, SessionRequest};

/// A session that was started.
pub struct StartedSession {
    /// Its first program, by which it is listed.
    pub first: ManagedSession,
    /// Remarks on its start.
    pub notes: Vec<String>,
}

/// The programs started so far; they are stopped when this is dropped before its end.
pub struct StartedPrograms<'a> {
    sessions: &'a SessionRegistry,
    /// How many there will be.
    count: usize,
    begun: Vec<ManagedSession>,
}

impl StartedPrograms<'_> {
    /// None yet, of so many.
    pub fn of(sessions: &SessionRegistry, count: usize) -> StartedPrograms<'_> {
        StartedPrograms { sessions, count, begun: Vec::new() }
    }

    /// Starts the next one. Errors: it cannot be started; the others run on until they are stopped.
    pub async fn start(&mut self, request: SessionRequest) -> Result<ManagedSession> {
        let program = match self.begun.first() {
            Some(first) => self.sessions.start_further_program(first, request).await?,
            None if self.count > 1 => self.sessions.start_first_program(request).await?,
            None => self.sessions.start_session(request).await?,
        };
        self.begun.push(program.clone());
        Ok(program)
    }

    /// Stops what was started.
    pub async fn stop_all(&mut self) {
        if let Some(first) = std::mem::take(&mut self.begun).first() {
            first.stop(None).await;
        }
    }

    /// From now on, the end of one program ends the others.
    pub fn stop_together(&self) {
        let Some(first) = self.begun.first() else { return };
        for program in &self.begun {
            let first = first.clone();
            self.sessions.run_after_end(program, async move {
                first.stop(None).await;
            });
        }
    }

    /// All have been started: the session ends with the last of them. Errors: there was none.
    pub fn finish(mut self, mut notes: Vec<String>) -> Result<StartedSession> {
        let begun = std::mem::take(&mut self.begun);
        let first = begun.first().cloned().ok_or_else(|| Error::usage("there is no program to debug"))?;
        first.session.set_awaits_programs(false);
        notes.extend(begun.iter().skip(1).filter_map(|program| program.note.clone()));
        if begun.len() > 1 {
            let names: Vec<&str> = begun.iter().map(|program| program.request.name.as_str()).collect();
            notes.push(format!("{} has {} programs: {}", first.id, names.len(), names.join(", ")));
        }
        Ok(StartedSession { first, notes })
    }
}

impl Drop for StartedPrograms<'_> {
    fn drop(&mut self) {
        if let Some(first) = self.begun.first() {
            self.sessions.undo_start(first);
        }
    }
}
