//! Resuming a program: which thread, how, for whom, and what it means when the adapter refuses.
//!
//! ```text
//! resume_by ──▶ the target's state runs ──▶ the program's task sends it ──▶ accepted, refused, or its thread is gone
//! ```
//! The task sends it, so that a caller that is cancelled does not undo it. Does not depend on how a stop is waited for.

use std::sync::Arc;
use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_dap::types::{ContinueArguments, NextArguments, StepInArguments, StepOutArguments, ThreadsArguments};
use tether_dap::{DapClient, DapError};
use tokio::sync::oneshot;

use super::command::SessionCommand;
use super::debug_session::DebugSession;
use super::session_shared::SessionShared;
use super::stop::ThreadStop;
use super::target_state::{TargetEffect, TargetInput, TargetPhase};

/// How long an adapter may take to list its threads once it has refused to resume one: the refusal waits for that.
const THREAD_LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// The clients that are not joined editors, as those read of them.
const OTHER_CLIENTS: &str = "an agent or a command";

/// How a stopped thread is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the next breakpoint.
    Continue,
    /// One line of the same function.
    Over,
    /// Into the next call.
    Into,
    /// Until the function returns.
    Out,
}

impl Resume {
    /// For readers.
    pub fn name(self) -> &'static str {
        match self {
            Resume::Continue => "continue",
            Resume::Over => "step over",
            Resume::Into => "step into",
            Resume::Out => "step out",
        }
    }

    /// Sends the request for a thread, and waits for the response.
    pub async fn send(self, client: &DapClient, thread_id: i64, limit: Duration) -> Result<(), DapError> {
        match self {
            Resume::Continue => client.request(&ContinueArguments { thread_id }, limit).await.map(drop),
            Resume::Over => client.request(&NextArguments { thread_id }, limit).await.map(drop),
            Resume::Into => client.request(&StepInArguments { thread_id, target_id: None }, limit).await.map(drop),
            Resume::Out => client.request(&StepOutArguments { thread_id }, limit).await.map(drop),
        }
    }
}

/// Who requests to resume a program.
#[derive(Clone, Debug)]
pub enum ResumeClient {
    /// A joined editor, by its name.
    Editor(Arc<str>),
    /// An agent, or the command line.
    Other,
}

impl ResumeClient {
    /// Its name for readers, and whether it is a joined editor.
    pub(super) fn name(self) -> (Arc<str>, bool) {
        match self {
            ResumeClient::Editor(name) => (name, true),
            ResumeClient::Other => (OTHER_CLIENTS.into(), false),
        }
    }
}

/// A request to resume a target that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastResume {
    /// Who sent it, for readers.
    pub by: Arc<str>,
    /// Whether that is a joined editor.
    pub is_by_editor: bool,
    pub how: Resume,
    /// The generation that it began.
    pub generation: u64,
}

impl DebugSession {
    /// Resumes a stopped thread, or that of the primary stop. When this returns without an error, the adapter has
    /// accepted it. It is not undone when the caller is cancelled.
    pub async fn resume(&self, how: Resume, thread: Option<(usize, i64)>) -> Result<()> {
        self.resume_by(ResumeClient::Other, how, thread).await
    }

    /// As [`DebugSession::resume`], at the request of that client.
    pub async fn resume_by(&self, by: ResumeClient, how: Resume, thread: Option<(usize, i64)>) -> Result<()> {
        let (target, thread) = self.resolve_thread(thread)?;
        let program = self.snapshot().targets.get(target).map(|target| target.program);
        let program = program.ok_or_else(|| self.not_stopped_error())?;
        let (resumes_one, is_core) =
            lock(&self.programs).get(program).map_or((false, false), |it| (it.resumes_one_thread, it.is_core));
        if is_core {
            let error = Error::usage("cannot resume the program").because("it has ended: this is its core dump");
            return Err(error.hint("`tether debug launch PROGRAM` runs it again"));
        }
        let input = if resumes_one { TargetInput::ResumeOne(thread) } else { TargetInput::Resume(Some(thread)) };
        if self.shared.resume_target(target, input, (by, how)) != TargetEffect::Send {
            return Err(self.not_stopped_error());
        }
        let (reply, outcome) = oneshot::channel();
        self.send_command(program, SessionCommand::Resume { target, how, thread, reply });
        let gone = || DapError::Closed("the session has ended".to_owned());
        let outcome = outcome.await.unwrap_or_else(|_| Err(gone()));
        let is_gone = |cause: &DapError| {
            let has_stop = |it: &ThreadStop| it.thread_id == Some(thread);
            !matches!(cause, DapError::TimedOut { .. })
                && self.snapshot().ended_stop.is_some()
                && !self.shared.target(target).stops().iter().any(has_stop)
        };
        match outcome {
            // It went on, and ended before its adapter had answered: how is in the snapshot.
            Ok(()) | Err(DapError::Closed(_)) => Ok(()),
            Err(cause) if is_gone(&cause) => Err(self.not_stopped_error()),
            Err(cause) => Err(Error::other("cannot resume the program").because(cause)),
        }
    }

    /// The target and the thread of a request: the named thread if it has stopped, or that of the primary stop.
    pub(in crate::debug) fn resolve_thread(&self, thread: Option<(usize, i64)>) -> Result<(usize, i64)> {
        let snapshot = self.snapshot();
        let stops = snapshot.stops();
        let Some((target, id)) = thread else {
            let (target, stop) = stops.first().ok_or_else(|| self.not_stopped_error())?;
            return Ok((*target, stop.thread_id.unwrap_or_default()));
        };
        // A thread that has no stop of its own has stopped along with one that has.
        let stopped =
            |(of, stop): &&(usize, &ThreadStop)| *of == target && (stop.thread_id == Some(id) || stop.all_threads);
        stops.iter().find(stopped).map(|_| (target, id)).ok_or_else(|| self.not_stopped_error())
    }

    /// The error of an operation that needs a stopped program.
    pub(in crate::debug) fn not_stopped_error(&self) -> Error {
        let snapshot = self.snapshot();
        let error = Error::new(ErrorKind::Usage, "the program is not stopped");
        let state = format!("its state is {}", snapshot.run_state().name());
        let state = match &snapshot.ended_stop {
            Some(ended) => format!("{ended}; {state}"),
            None => state,
        };
        if snapshot.is_ended() {
            return error.because(state).hint("`tether debug launch PROGRAM` starts a session");
        }
        let resumed = snapshot.last_resume().filter(|_| snapshot.ended_stop.is_none());
        let resumed = resumed.map(|it| format!("{state}, resumed by {} ({})", it.by, it.how.name()));
        let error = error.because(resumed.unwrap_or(state));
        let any_stopped = snapshot.targets.iter().any(|target| matches!(target.state.phase, TargetPhase::Stopped(_)));
        if any_stopped {
            return error.hint("that thread runs: `tether debug status` lists the ones that are stopped");
        }
        error.hint("`tether debug pause` stops it; `tether debug wait` waits until it stops by itself")
    }
}

/// Sends the request, and gives the stop back to a target that its adapter refuses to resume.
pub(super) async fn send_resume(
    shared: Arc<SessionShared>,
    target: usize,
    how: Resume,
    thread: i64,
) -> Result<(), DapError> {
    let outcome = match shared.client(target) {
        Some(client) => how.send(&client, thread, shared.request_timeout).await,
        None => Err(DapError::Closed("the target is gone".to_owned())),
    };
    if let Err(DapError::Refused { .. } | DapError::Unsendable { .. }) = &outcome {
        let client = shared.client(target).filter(|_| matches!(outcome, Err(DapError::Refused { .. })));
        let is_gone = match client {
            Some(client) => is_thread_gone(&client, thread).await,
            None => false,
        };
        let refused = if is_gone { TargetInput::RefusedWithoutThread(thread) } else { TargetInput::Refused };
        shared.apply_input(target, refused);
    }
    outcome
}

/// Whether the adapter lists threads, and not this one: why it has refused to resume it. Its event may be behind its response, or
/// not come at all.
async fn is_thread_gone(client: &DapClient, thread: i64) -> bool {
    let listed = client.request(&ThreadsArguments {}, THREAD_LOOK_TIMEOUT).await.unwrap_or_default().threads;
    !listed.is_empty() && listed.iter().all(|it| it.id != thread)
}
