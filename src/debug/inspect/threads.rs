//! The threads of a session: list them, pause them.

use std::time::Duration;

use futures_util::future::join_all;
use tether_base::error::{Error, Result};
use tether_dap::DapError;
use tether_dap::types::{DapThread, PauseArguments, ThreadsArguments, ThreadsResponse};

use super::scoped_id::ScopedId;
use crate::debug::session::debug_session::DebugSession;

use crate::debug::session::target_state::TargetPhase;
use crate::vocabulary::RunState;

/// When a refused `pause` is requested again. lldb-dap 19 answers "Process is not running" while a program that it has just
/// attached to is about to run.
const PAUSE_DELAYS: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(750)];

/// One thread of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadInfo {
    /// Its id.
    pub id: ScopedId,
    /// Empty if the adapter names none.
    pub name: String,
    /// Whether it is stopped.
    pub stopped: bool,
    /// What it does, as the adapter for Java names it: `waiting`, `blocked`, …
    pub state: Option<String>,
    /// The monitors that it holds, as far as they are known.
    pub holds: Vec<String>,
    /// The monitor that it waits for, if that is known.
    pub waits_for: Option<String>,
}

/// The threads of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadList {
    /// Those that the adapters list.
    pub threads: Vec<ThreadInfo>,
    /// How many there are beside these.
    pub unlisted: usize,
}

/// The threads that [`read_threads`] reads.
pub async fn list_threads(session: &DebugSession) -> Vec<ThreadInfo> {
    read_threads(session).await.threads
}

/// All threads of all connected targets. Of a target that does not respond only the stopped ones are known.
pub async fn read_threads(session: &DebugSession) -> ThreadList {
    let snapshot = session.snapshot();
    let connected = (0..snapshot.targets.len()).filter(|id| session.shared.client(*id).is_some());
    let requests = connected.map(|target| async move { (target, session.request(target, &ThreadsArguments {}).await) });
    let (mut seen, mut unlisted) = (Vec::new(), 0usize);
    for (target, answer) in join_all(requests).await {
        let ThreadsResponse { threads, unlisted: others } = answer.unwrap_or_default();
        unlisted = unlisted.saturating_add(others.unwrap_or(0));
        let stops = snapshot.targets.get(target).map(|target| target.state.stops()).unwrap_or_default();
        let is_unknown = |id: &i64| threads.iter().all(|thread| thread.id != *id);
        let unknown = stops.iter().filter_map(|stop| stop.thread_id).filter(is_unknown);
        let unknown: Vec<DapThread> = unknown.map(|id| DapThread { id, ..DapThread::default() }).collect();
        seen.extend(threads.into_iter().chain(unknown).map(|thread| ThreadInfo {
            id: ScopedId { target, id: thread.id },
            stopped: stops.iter().any(|stop| stop.all_threads || stop.thread_id == Some(thread.id)),
            name: thread.name,
            state: thread.state,
            holds: thread.holds,
            waits_for: thread.waits_for,
        }));
    }
    ThreadList { threads: seen, unlisted }
}

/// Pauses a thread, or all targets. The stop is reported by an event.
pub async fn pause_thread(session: &DebugSession, thread: Option<ScopedId>) -> Result<()> {
    let snapshot = session.snapshot();
    if snapshot.run_state() != RunState::Running {
        let error = Error::usage("cannot pause the program");
        return Err(error.because(format!("its state is {}", snapshot.run_state().name())));
    }
    let threads = list_threads(session).await;
    let chosen: Vec<ScopedId> = match thread {
        Some(thread) => vec![thread],
        // One for each target; those that only coordinate their children have none.
        None => (0..snapshot.targets.len())
            .filter(|target| session.shared.client(*target).is_some())
            .filter_map(|target| {
                let known = threads.iter().find(|it| it.id.target == target && !it.stopped).map(|it| it.id);
                // lldb-dap lists no threads while they run; a target with children only coordinates.
                let alone = snapshot.targets.iter().all(|other| other.parent != Some(target));
                known.or(alone.then_some(ScopedId { target, id: 0 }))
            })
            .collect(),
    };
    session.shared.with_state(|state| state.pausing.extend(chosen.iter().map(|it| it.target)));
    let outcomes = join_all(chosen.iter().map(|it| request_pause(session, *it))).await;
    let refused = outcomes.iter().all(Result::is_err);
    match outcomes.into_iter().find_map(Result::err) {
        Some(cause) if refused => Err(session.request_error("pause the program", cause)),
        _ if chosen.is_empty() => Err(Error::other("cannot pause the program").because("it has no threads yet")),
        _ => Ok(()),
    }
}

/// Requests it again where it is refused although the target runs.
async fn request_pause(session: &DebugSession, thread: ScopedId) -> Result<(), DapError> {
    let request = PauseArguments { thread_id: thread.id };
    let mut answer = session.request(thread.target, &request).await;
    for delay in PAUSE_DELAYS {
        let snapshot = session.snapshot();
        let is_running = snapshot
            .targets
            .get(thread.target)
            .is_some_and(|target| matches!(target.state.phase, TargetPhase::Running { .. }));
        if !matches!(answer, Err(DapError::Refused { .. })) || !is_running {
            break;
        }
        tokio::time::sleep(delay).await;
        answer = session.request(thread.target, &request).await;
    }
    answer.map(drop)
}
