//! Starts a session: locate its adapter, store it, start it, list it; undone when the caller is cancelled.
//!
//! Does not depend on later operations on the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorKind, Result};

use super::managed_session::ManagedSession;
use super::prepared_session::{PreparedSession, start_adapter, start_error};
use super::registry::SessionRegistry;
use super::session_log::SessionLog;
use super::session_request::{SessionRequest, locate_adapter};
use super::store::StoredSession;
use crate::debug::breakpoints::{BreakpointConditions, BreakpointStore};
use crate::debug::session::event_log::EventLog;
use crate::vocabulary::RunState;

/// How long a session may take to start: Delve compiles first.
const START_TIMEOUT: Duration = Duration::from_secs(200);

/// When a session is added to the list of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::debug) enum SessionListing {
    /// Before it has started; it is removed if it does not.
    AtOnce,
    /// In the place of the session with its id, which stays if it does not start.
    OnceStarted,
    Never,
}

impl SessionRegistry {
    /// Starts a session, and waits until its program runs, has stopped or has ended. Errors: it cannot be started.
    pub async fn start_session(&self, request: SessionRequest) -> Result<ManagedSession> {
        self.start_first(request, false).await
    }

    /// As [`SessionRegistry::start_session`]; further programs follow, until which the session does not end.
    pub async fn start_first_program(&self, request: SessionRequest) -> Result<ManagedSession> {
        self.start_first(request, true).await
    }

    async fn start_first(&self, request: SessionRequest, awaits_programs: bool) -> Result<ManagedSession> {
        let prepared = self.prepare_session(self.next_id(), request, self.0.breakpoints.clone(), Arc::default())?;
        self.start_prepared(PreparedSession { awaits_programs, ..prepared }, SessionListing::AtOnce, START_TIMEOUT)
            .await
    }

    /// As [`SessionRegistry::start_session`], with the ids that the supervisor has given: in the session's host.
    pub async fn start_hosted(
        &self,
        (id, launch_id): (String, String),
        request: SessionRequest,
        awaits_programs: bool,
    ) -> Result<ManagedSession> {
        let prepared = self.prepare_session(id, request, self.0.breakpoints.clone(), Arc::default())?;
        let prepared = PreparedSession { launch_id, awaits_programs, ..prepared };
        self.start_prepared(prepared, SessionListing::AtOnce, START_TIMEOUT).await
    }

    /// Starts a further program of a session, with an adapter and a target of its own, and waits until it runs, has stopped or
    /// has ended. Errors: it cannot be started.
    pub async fn start_further_program(
        &self,
        session: &ManagedSession,
        request: SessionRequest,
    ) -> Result<ManagedSession> {
        let id = format!("{}.{}", session.id, session.programs().len().saturating_add(1));
        let log = Arc::clone(session.session.event_log());
        let prepared = self.prepare_session(id, request, self.0.breakpoints.clone(), log)?;
        let prepared = PreparedSession { joins: Some(session.clone()), ..prepared };
        self.start_prepared(prepared, SessionListing::Never, START_TIMEOUT).await
    }

    /// Starts an unlisted session with breakpoints of its own on these lines. It ends when the guard is dropped.
    pub async fn start_unlisted_session(&self, request: SessionRequest, lines: &[(PathBuf, u32)]) -> Result<EndOnDrop> {
        let breakpoints = BreakpointStore::in_memory();
        for (file, line) in lines {
            breakpoints.set_line(&self.0.workspace.join(file), *line, BreakpointConditions::default()).await?;
        }
        let prepared = self.prepare_session(self.next_id(), request, breakpoints, Arc::default())?;
        let managed = self.start_prepared(prepared, SessionListing::Never, START_TIMEOUT).await?;
        Ok(EndOnDrop { sessions: self.clone(), managed, is_kept: false })
    }

    /// Finds out how a session is started. Errors: no adapter debugs this, or it is not installed.
    pub(in crate::debug) fn prepare_session(
        &self,
        id: String,
        request: SessionRequest,
        breakpoints: BreakpointStore,
        event_log: Arc<EventLog>,
    ) -> Result<PreparedSession> {
        let launch_id = self.new_launch_id(&id);
        let (row, found) = locate_adapter(&request, self.adapter_search()?)?;
        let masked = |error| request.debug_target.secrets.mask_error(error);
        let plan = row.plan_start(&found, &request.debug_target).map_err(masked)?;
        // Of an adapter that an interpreter runs: a folder, or a script in one.
        let folder =
            || if found.path.is_dir() { Some(found.path.clone()) } else { found.path.parent().map(Path::to_owned) };
        let tool_folder = found.interpreter.as_ref().and_then(|_| folder());
        let notes: Vec<String> = [found.note, plan.note.clone()].into_iter().flatten().collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let (joins, awaits_programs) = (None, false);
        Ok(PreparedSession {
            id,
            request,
            row,
            plan,
            launch_id,
            breakpoints,
            event_log,
            note,
            tool_folder,
            joins,
            awaits_programs,
        })
    }

    /// Ends a session at its user's request, as [`ManagedSession::stop`] does: no later supervisor recovers it.
    /// Errors: its debugger cannot let go of a program that it has launched.
    pub async fn stop_session(&self, managed: &ManagedSession, detach: Option<bool>) -> Result<RunState> {
        let programs = managed.programs();
        let is_ended_by_detach = |it: &&ManagedSession| {
            it.adapter.quirks.ends_launched_program && !it.is_attached() && !it.is_program_ended()
        };
        if detach == Some(true)
            && let Some(program) = programs.iter().find(is_ended_by_detach)
        {
            let name = program.adapter.name;
            let error = Error::usage(format!("cannot detach from {} and let its program continue", managed.id));
            let error = error.because(format!("{name} ends every program that it has launched"));
            let hint = "`tether debug stop {id}` ends it; a program that you start yourself continues: `tether debug attach --pid PID`";
            return Err(error.hint(hint.replace("{id}", &managed.id)));
        }
        let state = managed.stop(detach).await;
        for program in programs {
            self.0.store.record_stop(&program.launch_id, program.has_released_program()).await;
        }
        Ok(state)
    }

    /// Starts a prepared session, and waits at most `within` until its program runs, has stopped or has ended.
    pub(in crate::debug) async fn start_prepared(
        &self,
        prepared: PreparedSession,
        listing: SessionListing,
        within: Duration,
    ) -> Result<ManagedSession> {
        let secrets = prepared.request.debug_target.secrets.clone();
        self.start_and_store(prepared, listing, within).await.map_err(|error| secrets.mask_error(error))
    }

    async fn start_and_store(
        &self,
        prepared: PreparedSession,
        listing: SessionListing,
        within: Duration,
    ) -> Result<ManagedSession> {
        let (launch_id, joins) = (prepared.launch_id.clone(), prepared.joins.clone());
        let entry = StoredSession {
            id: prepared.id.clone(),
            adapter: prepared.row.name.to_owned(),
            request: prepared.request.without_environment(),
            launch_id: launch_id.clone(),
            started_at: now_ms(),
            listed: listing != SessionListing::Never,
            loss: prepared.loss_message(),
            ended: false,
            host: None,
        };
        self.file_names().forget_links();
        // Stored before its first process runs: the next supervisor knows everything that is started.
        let stored = self.0.store.add_session(entry).await;
        let (managed, driver) = start_adapter(prepared).await?;
        if listing == SessionListing::AtOnce {
            self.insert_session(managed.clone());
        }
        let (changed, store, session) = (self.0.changed.clone(), Arc::clone(&self.0.store), managed.clone());
        let sessions = Arc::downgrade(&self.0);
        let mut snapshots = managed.session.watch();
        // The log of the first program has all targets.
        let names = self.file_names_of(&managed);
        let mut log = joins.is_none().then(|| SessionLog::begin(managed.clone(), names, self.0.timeline.clone()));
        if let Some(first) = joins {
            first.add_companion(managed.clone());
        }
        let lifetime = async move {
            tokio::pin!(driver);
            loop {
                tokio::select! {
                    () = &mut driver => break,
                    Ok(()) = snapshots.changed() => {
                        if let Some(log) = &mut log {
                            log.record_snapshot(&snapshots.borrow_and_update());
                        }
                        changed.send_modify(|count| *count = count.wrapping_add(1));
                    }
                }
            }
            if let Some(log) = &mut log {
                log.record_snapshot(&snapshots.borrow());
            }
            if session.has_released_program() {
                store.add_released(&launch_id);
            }
            let is_kept = listing != SessionListing::Never && session.has_started();
            let sessions = sessions.upgrade().map(SessionRegistry);
            let reconnecting = sessions.as_ref().and_then(|it| it.decide_reconnection(&session, is_kept));
            if session.is_following() || reconnecting.is_some() {
                stored.keep();
            } else {
                drop(stored);
            }
            changed.send_modify(|count| *count = count.wrapping_add(1));
            if let (Some(sessions), Some(reconnecting)) = (sessions, reconnecting) {
                // The receiver exists as long as the supervisor.
                let _ = sessions.0.tasks.send(reconnecting.boxed());
            }
        };
        // The receiver exists as long as the supervisor.
        let _ = self.0.tasks.send(lifetime.boxed());
        self.wait_for_start(managed, listing, within).await
    }

    /// Waits for the start of a session. It is ended if it takes longer, or the caller is cancelled.
    async fn wait_for_start(
        &self,
        managed: ManagedSession,
        listing: SessionListing,
        within: Duration,
    ) -> Result<ManagedSession> {
        let mut guard = EndOnDrop { sessions: self.clone(), managed: managed.clone(), is_kept: false };
        let state = managed.wait_for_start(within).await;
        if state == RunState::Starting {
            let within = humantime::format_duration(within);
            let error = format!("{} has not started within {within}", managed.request.name);
            return Err(Error::new(ErrorKind::TimedOut, error));
        }
        guard.is_kept = true;
        if state == RunState::Disconnected {
            managed.wait_until_program_ended().await;
            if listing == SessionListing::AtOnce {
                self.remove_session(&managed.id);
            }
            self.0.store.remove_session(&managed.launch_id);
            return Err(start_error(&managed));
        }
        managed.record_start();
        if listing == SessionListing::OnceStarted {
            self.insert_session(managed.clone());
        }
        Ok(managed)
    }

    /// Ends a session without waiting for it.
    pub fn undo_start(&self, session: &ManagedSession) {
        let session = session.clone();
        let ending = async move { session.stop(None).await };
        let _ = self.0.tasks.send(ending.map(drop).boxed());
    }
}

/// A session that is ended when this is dropped, without waiting for that.
pub struct EndOnDrop {
    sessions: SessionRegistry,
    /// The session.
    pub managed: ManagedSession,
    /// Whether it goes on nevertheless.
    is_kept: bool,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if !self.is_kept {
            self.sessions.undo_start(&self.managed);
        }
    }
}

pub(super) fn random_suffix() -> u32 {
    let mut bytes = [0; 4];
    // A failure only makes collisions possible; the launch id has the session id as well.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes)
}
