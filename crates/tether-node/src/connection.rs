//! Connects the inspectors of processes and workers, and prepares each isolate before it runs.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_cdp::debugger::{
    EnableNodeWorker, RunIfWaitingForDebugger, SetAsyncCallStackDepth, SetBlackboxPatterns,
    SetInstrumentationBreakpoint,
};
use tether_cdp::types::{
    AddBinding, EnableDebugger, EnableNodeRuntime, EnableRuntime, NotifyWhenWaitingForDisconnect, SetAutoAttach,
};
use tether_cdp::{CdpError, CdpSession, open_connection_with_handler};
use tether_dap::types::ThreadEvent;
use tether_process::foreign_listener;

use super::breakpoints;
use super::dependency_packages::announce_packages;
use super::inspector_queue::{ConnectionEvents, IsolateEvents, StartedChild};
use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::lane::{Lane, LaneFull, SessionTasks};
use super::module_announcements::announce_worker_modules;
use super::session::NodeSession;
use super::stops::BEFORE_SCRIPT;
use super::web_files::plain_url;

/// How long an inspector may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// When the request to run is sent again: a process reports its inspector a moment before it waits for its debugger.
const START_REPEATS: [Duration; 7] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(5),
];
/// The code of an error response to a command that the inspector does not have.
const NO_SUCH_COMMAND: i64 = -32601;
/// How many asynchronous callers the engine keeps.
const ASYNC_CALLERS: u32 = 32;

/// Where an inspector listens, and of what.
pub(crate) struct InspectorAddress {
    pub port: u16,
    /// Of its WebSocket.
    pub path: String,
    /// How its main thread is called, or the page.
    pub name: String,
    pub host: IsolateHost,
    /// Another user's process may listen there: the caller has named the host.
    pub allows_foreign: bool,
    /// The process is of a program that we have launched: it waits for us, and runs without us where it cannot be debugged.
    pub is_launched: bool,
}

/// Connects to the inspector of a process or page. Errors: it cannot be connected to, it is another user's, or it answers
/// otherwise than an inspector.
pub(crate) async fn connect_process(
    session: &Arc<NodeSession>,
    address: &InspectorAddress,
    events: &IsolateEvents,
    tasks: &SessionTasks,
) -> Answer<Arc<Isolate>> {
    let connection = events.open();
    // Weak: the connection has a handle to the client, which has this handler.
    let events = Arc::downgrade(&connection);
    let handle = Box::new(move |event: &tether_cdp::CdpEvent| {
        events.upgrade().iter().for_each(|events: &Arc<ConnectionEvents>| events.queue_event(event));
    });
    let opened = open_connection_with_handler(address.port, &address.path, CONNECT_TIMEOUT, handle).await;
    let (client, driver) = opened?;
    // Only now: who listened before may have left the port to another user's process.
    if !address.allows_foreign
        && let Some(foreign) = foreign_listener((Ipv4Addr::LOCALHOST, address.port).into())
            .map_err(|cause| RequestFailure(cause.to_string()))?
    {
        return Err(foreign.into());
    }
    connection.set_client(client.clone());
    let isolate = Arc::new(Isolate {
        id: connection.isolate,
        name: address.name.clone(),
        host: address.host.clone(),
        inspector: Some((address.port, address.path.clone())),
        worker_thread: None,
        session: CdpSession::Own(client),
        connection: Arc::clone(&connection),
        lane: Lane::start(tasks),
        state: Mutex::default(),
    });
    // Before the connection is driven: its end removes it.
    session.add_isolate(Arc::clone(&isolate));
    // Not one of the session's tasks: it closes the connection once nobody uses it, and takes its time for that.
    tokio::spawn(async move {
        driver.await;
        connection.end().await;
    });
    let (session, prepared) = (Arc::clone(session), Arc::clone(&isolate));
    let prepare = isolate.lane.request(async move { prepare_process(&session, &prepared).await });
    match prepare.await {
        Some(Ok(())) => Ok(isolate),
        Some(Err(failure)) => {
            if address.is_launched {
                // Fails when it has ended.
                let _ = isolate.call(&RunIfWaitingForDebugger {}).await;
            }
            isolate.connection.close();
            Err(failure)
        }
        None => Err("the session has ended".into()),
    }
}

async fn prepare_process(session: &NodeSession, isolate: &Isolate) -> Answer<()> {
    prepare_isolate(session, isolate).await?;
    if isolate.is_web() {
        return Ok(());
    }
    match isolate.call(&EnableNodeWorker { wait_for_debugger_on_start: true }).await {
        // Of runtimes that are not Node, such as workerd.
        Err(CdpError::ErrorResponse { code: NO_SUCH_COMMAND, .. }) => {
            let text = format!("{}: its workers are not debugged: its inspector has no `NodeWorker`\n", isolate.name);
            session.print("console", &text).await;
            Ok(())
        }
        enabled => Ok(enabled.map(drop)?),
    }
}

/// A worker or frame has started: it is prepared, and runs once the client has sent its breakpoints. Errors: too much
/// waits.
pub(crate) fn add_child(session: &Arc<NodeSession>, child: StartedChild, tasks: &SessionTasks) -> Result<(), LaneFull> {
    let (name, worker_thread) = (child_name(session, &child), worker_thread(&child.title));
    let StartedChild { isolate: id, session: cdp, connection, host, is_waiting, .. } = child;
    let (lane, state) = (Lane::start(tasks), Mutex::default());
    let inspector = None;
    let isolate = Arc::new(Isolate { id, name, host, inspector, worker_thread, session: cdp, connection, lane, state });
    session.add_isolate(Arc::clone(&isolate));
    let (own, added) = (Arc::clone(session), Arc::clone(&isolate));
    isolate.lane.add(async move {
        if let Err(failure) = connect_child(&own, &added, is_waiting).await {
            // One that ends meanwhile is no failure.
            tracing::debug!("{} could not be prepared: {failure}", added.name);
        }
    })
}

async fn connect_child(session: &NodeSession, isolate: &Isolate, is_waiting: bool) -> Answer<()> {
    let prepared = match isolate.host {
        IsolateHost::ServiceWorker => Ok(()),
        _ => prepare_isolate(session, isolate).await,
    };
    if let Err(failure) = prepared {
        session.remove_isolate(isolate.id);
        // It waits for its debugger all the same. Fails when it has ended.
        if isolate.call(&RunIfWaitingForDebugger {}).await.is_ok() {
            session.print("console", &format!("{} is not debugged: {failure}\n", isolate.name)).await;
        }
        return Err(failure);
    }
    // One that waits can announce nothing yet: it does so once it pauses at its first line.
    if !is_waiting {
        announce_worker_modules(session, isolate).await;
    }
    report_thread(session, "started", isolate.id).await;
    start_isolate(session, isolate).await
}

fn child_name(session: &NodeSession, child: &StartedChild) -> String {
    let node_name = worker_name(&child.title);
    let title = if child.host == IsolateHost::Node { &node_name } else { plain_url(&child.title) };
    let name = match (&child.host, title) {
        (IsolateHost::Document { .. }, "") => "frame".to_owned(),
        (IsolateHost::Document { .. }, url) => format!("frame {url}"),
        (_, "") => format!("worker {}", child.isolate),
        (IsolateHost::Node, title) => title.to_owned(),
        (IsolateHost::WebWorker, url) => format!("worker {}", url.rsplit('/').next().unwrap_or(url)),
        (IsolateHost::ServiceWorker, url) => format!("service worker {}", url.rsplit('/').next().unwrap_or(url)),
    };
    match session.isolate(child.parent) {
        Ok(parent) => format!("{name} of {}", parent.name),
        Err(_) => name,
    }
}

/// What the engine has to know before the first line runs. All is sent before the first answer: a service worker answers
/// once it runs.
async fn prepare_isolate(session: &NodeSession, isolate: &Isolate) -> Answer<()> {
    let exceptions = session.exception_state();
    let report = AddBinding { name: session.binding.clone().into() };
    let (debugger, depth, exceptions, internals, before_script, binding, host, ()) = tokio::join!(
        biased;
        isolate.call(&EnableDebugger {}),
        isolate.call(&SetAsyncCallStackDepth { max_depth: ASYNC_CALLERS }),
        isolate.call(&exceptions),
        skip_internals(session, isolate),
        isolate.call(&SetInstrumentationBreakpoint { instrumentation: BEFORE_SCRIPT }),
        isolate.call(&report),
        prepare_host(isolate),
        breakpoints::bind_all(session, isolate),
    );
    debugger.and(depth).and(exceptions).and(before_script).and(binding)?;
    announce_packages(session, isolate).await;
    internals.and(host)
}

async fn skip_internals(session: &NodeSession, isolate: &Isolate) -> Answer<()> {
    if let Some(skipped) = skipped_internals(session) {
        isolate.call(&skipped).await?;
    }
    Ok(())
}

/// Which of Node's own modules the engine passes over. It reports no exception that is thrown and caught in one of these.
pub(crate) fn skipped_internals(session: &NodeSession) -> Option<SetBlackboxPatterns> {
    let pattern = match session.with_settings(|settings| settings.stops_at_assertions) {
        true => "^node:(?!assert|internal/assert)",
        false => "^node:",
    };
    session.skip.skips_internals().then(|| SetBlackboxPatterns { patterns: vec![pattern.to_owned()] })
}

/// Sends what the program prints on its console, where it was attached to and its output goes elsewhere; and the end of its
/// contexts.
pub(crate) async fn follow_console(isolate: &Isolate) -> Answer<()> {
    isolate.call(&EnableRuntime {}).await?;
    Ok(())
}

/// Lets an isolate run that waits for its debugger, if the client has sent its breakpoints.
async fn start_isolate(session: &NodeSession, isolate: &Isolate) -> Answer<()> {
    if !session.with_settings(|settings| settings.is_configured) {
        return Ok(());
    }
    if isolate.with_state(|state| std::mem::replace(&mut state.is_started, true)) {
        return Ok(());
    }
    if isolate.host == IsolateHost::ServiceWorker {
        let (prepared, run) =
            tokio::join!(biased; prepare_isolate(session, isolate), isolate.call(&RunIfWaitingForDebugger {}));
        run?;
        return prepared;
    }
    match isolate.call(&RunIfWaitingForDebugger {}).await {
        // A worker that has ended meanwhile needs no start.
        Err(CdpError::Closed(_)) if !isolate.is_main() => Ok(()),
        started => Ok(started.map(drop)?),
    }
}

/// Starts an isolate once its lane has done what was added before. `None`: the session has ended.
pub(crate) fn request_start(
    session: &Arc<NodeSession>,
    isolate: &Arc<Isolate>,
) -> impl Future<Output = Option<Answer<()>>> + use<> {
    let (session, own) = (Arc::clone(session), Arc::clone(isolate));
    isolate.lane.request(async move { start_isolate(&session, &own).await })
}

/// Sends a started process the request to run again and again for a while. One that it gets before it waits for its
/// debugger is lost; one that it gets later has no effect.
pub(crate) async fn repeat_start(session: &NodeSession, isolate: &Isolate) {
    let is_started = isolate.with_state(|state| state.is_started);
    if !is_started || !isolate.is_main() || isolate.host != IsolateHost::Node {
        return;
    }
    for delay in START_REPEATS {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = session.dap.wait_closed() => return,
        }
        // Fails when it has ended.
        if isolate.call(&RunIfWaitingForDebugger {}).await.is_err() {
            return;
        }
    }
}

/// Tells the client of a thread that has started or ended.
pub(crate) async fn report_thread(session: &NodeSession, reason: &str, thread_id: i64) {
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&ThreadEvent { reason: reason.to_owned(), thread_id }).await;
}

async fn prepare_host(isolate: &Isolate) -> Answer<()> {
    if !isolate.is_web() {
        // A worker that waited for us could not be told that we leave: its parent joins it, and passes nothing on.
        if isolate.is_main() {
            // Unknown to old versions: the process is then let go when it exits.
            let _ = isolate.call(&EnableNodeRuntime {}).await;
            let _ = isolate.call(&NotifyWhenWaitingForDisconnect { enabled: true }).await;
        }
        return Ok(());
    }
    let children = SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: true, flatten: true };
    let (runtime, attached) = tokio::join!(biased; isolate.call(&EnableRuntime {}), isolate.call(&children));
    runtime?;
    // Service workers start no workers.
    if isolate.host != IsolateHost::ServiceWorker {
        attached?;
    }
    Ok(())
}

/// How a worker of Node is called, by its title: `[worker 3] parser`.
fn worker_name(title: &str) -> String {
    match title.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        None => title.to_owned(),
        // The name of those that the program has not named.
        Some((number, "" | " " | " WorkerThread")) => number.to_owned(),
        Some((number, name)) => format!("{number} ({})", name.trim_start()),
    }
}

/// The `threadId` of a worker of Node, by its title: `[worker 3] WorkerThread`.
fn worker_thread(title: &str) -> Option<u64> {
    let (number, _) = title.strip_prefix("[worker ")?.split_once(']')?;
    number.parse().ok()
}

/// How the main thread of a process is called.
pub(crate) fn process_name(program: &str, pid: u32) -> String {
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
    format!("{} [{pid}]", name.as_deref().unwrap_or("node"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_called_by_its_number_and_its_whole_name() {
        let check = |title: &str, name: &str, thread: Option<u64>| {
            assert_eq!((worker_name(title).as_str(), worker_thread(title)), (name, thread), "{title}");
        };
        check("[worker 3]", "worker 3", Some(3));
        check("[worker 3] WorkerThread", "worker 3", Some(3));
        check("[worker 12] parser [of] a.js]", "worker 12 (parser [of] a.js])", Some(12));
        check("Cloudflare Worker", "Cloudflare Worker", None);
    }
}
