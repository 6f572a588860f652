//! Leaves processes so that nothing of them waits for us, and none keeps us waiting.
//!
//! What is asked of a worker goes through its parent, and so do its answers. A worker that waits for its debugger, or that has
//! stopped, does so for ever once its process has lost its debugger, or joins its workers: both are ended before. Whether a
//! worker waits is decided when it is made, and it says so when it has started (Node, `src/inspector/worker_inspector.cc`): the
//! connection is kept for those that were made before.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::join_all;
use tether_cdp::CdpSession;
use tether_cdp::debugger::{
    EnableNodeWorker, EvaluateInGlobalScope, ResumeScript, RunIfWaitingForDebugger, SetSkipAllPauses,
};
use tether_cdp::types::{ClosePage, DisableDebugger};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::inspector_queue::ConnectionEvents;
use super::isolate::Isolate;
use super::session::NodeSession;
use super::{data_breakpoints, module_announcements};

/// How long all processes may take to undo what we have changed in them, or to end.
const UNDO_TIMEOUT: Duration = Duration::from_millis(300);
/// How long its workers may take for that.
const WORKER_UNDO_TIMEOUT: Duration = Duration::from_millis(100);
/// How long a process may take to pass on what its workers need to go on without us.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the connection to a process that was left is kept for its workers.
const WORKER_START: Duration = Duration::from_secs(3);
/// How long it may take to close its connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(150);

/// Keep the connections to processes that were left.
static KEPT_CONNECTIONS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// How processes are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// They run on; they were launched by us.
    Launched,
    /// They run on; they were attached to.
    Attached,
    /// They are ended.
    Ended,
}

/// Leaves all processes, or pages, within a second, whatever they do.
pub(crate) async fn leave_processes(session: &NodeSession, leaving: Leaving) {
    let mut processes = session.isolates();
    processes.retain(|isolate| isolate.is_main());
    let prepared = timeout(UNDO_TIMEOUT, async {
        match leaving {
            Leaving::Ended => drop(join_all(processes.iter().map(end_attached)).await),
            Leaving::Attached => {
                stop_announcements(session, &processes).await;
                data_breakpoints::remove_all_data_breakpoints(session).await;
            }
            Leaving::Launched => data_breakpoints::remove_all_data_breakpoints(session).await,
        }
    });
    if prepared.await.is_err() {
        let what = if leaving == Leaving::Ended { "may keep running" } else { "may still watch properties" };
        let names: Vec<&str> = processes.iter().map(|process| process.name.as_str()).collect();
        let said = format!("{}: no answer within {UNDO_TIMEOUT:?}; it is left, and {what}\n", names.join(", "));
        session.print("important", &said).await;
    }
    // An evaluation that still goes on could reach a process that ends meanwhile.
    processes.iter().for_each(|process| process.connection.leave());
    join_all(processes.iter().map(|process| leave_process(process, leaving))).await;
}

/// A worker that is busy is not waited for: what it announces reaches nobody.
async fn stop_announcements(session: &NodeSession, processes: &[Arc<Isolate>]) {
    let mut workers = session.isolates();
    workers.retain(|isolate| !isolate.is_main());
    let undo = |isolate: &Arc<Isolate>| {
        let isolate = Arc::clone(isolate);
        async move { module_announcements::stop_announcing_modules(session, &isolate).await }
    };
    let of_workers = timeout(WORKER_UNDO_TIMEOUT, join_all(workers.iter().map(undo)));
    let _ = tokio::join!(join_all(processes.iter().map(undo)), of_workers);
}

/// Waits until no process that was left can have workers that wait for us: 3 s at most after the last was. The process that has
/// served a session is to live until then.
pub async fn wait_for_late_workers() {
    KEPT_CONNECTIONS.close();
    KEPT_CONNECTIONS.wait().await;
}

async fn leave_process(process: &Isolate, leaving: Leaving) {
    release_workers(process).await;
    if process.is_web() || leaving == Leaving::Ended {
        // A page that is paused runs on when its last client has left.
        return close_connection(&process.connection).await;
    }
    // Fails when it has ended. It runs on if it is paused, and stops no more.
    let _ = process.session.deliver(&DisableDebugger {}, RELEASE_TIMEOUT).await;
    KEPT_CONNECTIONS.spawn(keep_connection(Arc::clone(&process.connection), process.session.clone()));
}

/// Each worker that says that it waits for us is told to run, by [`ConnectionEvents`].
async fn keep_connection(connection: Arc<ConnectionEvents>, process: CdpSession) {
    let finished = async {
        tokio::select! {
            () = connection.wait_finished() => {}
            _ = connection.wait_closed() => {}
        }
    };
    if timeout(WORKER_START, finished).await.is_ok() {
        release_workers_of(&connection, &process).await;
    }
    close_connection(&connection).await;
}

async fn close_connection(connection: &ConnectionEvents) {
    connection.close();
    // It is closed all the same, by the task that drives it.
    let _ = timeout(CLOSE_TIMEOUT, connection.wait_closed()).await;
}

/// A worker of a process ends, or all of them do: one that has stopped, or waits for its start, goes on for that.
pub(crate) async fn let_workers_end(session: &NodeSession, process: &Isolate, thread: Option<u64>) {
    let mut workers = session.isolates();
    workers.retain(|it| {
        let is_of_process = !it.is_main() && Arc::ptr_eq(&it.connection, &process.connection);
        is_of_process && (thread.is_none() || it.worker_thread == thread)
    });
    let ending = join_all(workers.iter().map(|worker| let_worker_end(worker)));
    if timeout(RELEASE_TIMEOUT, ending).await.is_err() {
        tracing::debug!("{} has not passed on that its workers end", process.name);
    }
}

/// Lets the workers of a process run as if there were no debugger, also those that are made from now on.
pub(crate) async fn release_workers(process: &Isolate) {
    if !process.is_web() {
        release_workers_of(&process.connection, &process.session).await;
    }
}

async fn release_workers_of(connection: &ConnectionEvents, process: &CdpSession) {
    let released = timeout(RELEASE_TIMEOUT, async {
        // Fails when it has ended.
        let _ = process.deliver(&EnableNodeWorker { wait_for_debugger_on_start: false }, RELEASE_TIMEOUT).await;
        let workers = connection.child_sessions();
        join_all(workers.iter().map(release_worker)).await;
    });
    if released.await.is_err() {
        tracing::debug!("a process has not passed on that its workers are left");
    }
}

/// A worker runs on, whether it has stopped or waits for its start. Each fails when it has ended.
async fn release_worker(worker: &CdpSession) {
    let _ = worker.deliver(&DisableDebugger {}, RELEASE_TIMEOUT).await;
    let _ = worker.deliver(&RunIfWaitingForDebugger {}, RELEASE_TIMEOUT).await;
}

/// What is left of its code stops nowhere. Only one that was not started yet is told to start.
async fn let_worker_end(worker: &Isolate) {
    let session = &worker.session;
    // Each fails when it has ended.
    if worker.with_state(|state| state.is_started) {
        let skip = SetSkipAllPauses { skip: true };
        let _ = tokio::join!(
            biased;
            session.deliver(&skip, RELEASE_TIMEOUT),
            session.deliver(&ResumeScript {}, RELEASE_TIMEOUT),
        );
    } else {
        let _ = session.deliver(&RunIfWaitingForDebugger {}, RELEASE_TIMEOUT).await;
    }
}

/// Ends a program that was attached to, or closes a page.
async fn end_attached(isolate: &Arc<Isolate>) {
    let expression = "process.kill(process.pid)".to_owned();
    let end = EvaluateInGlobalScope { expression, ..EvaluateInGlobalScope::default() };
    // Each fails when it has ended.
    if isolate.is_web() {
        let _ = isolate.call(&ClosePage {}).await;
    } else {
        let _ = isolate.call(&end).await;
    }
}
