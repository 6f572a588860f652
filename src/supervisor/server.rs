//! The life cycle of a supervisor: lock, reconnect, accept connections, detach.
//!
//! Whatever ends it (SIGTERM, SIGINT, an idle time, a newer front end, a panic), the window stays.
//! Does not depend on what an operation does: that is `dispatch`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorData, Result};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::background_users;
use super::busy_times;
use super::connect::StartupMessage;
use super::connection::serve_connection;
use super::context::SupervisorContext;
use super::deleted_workspaces;
use super::editors::{Editors, host_requests};
use super::handlers::debug::editor_session;
use super::hosted_sessions::{HostedSessions, ListedSession, find_running_hosts};
use super::launch_memory::LaunchMemory;
use super::lock::{self, LockOutcome, SupervisorLock};
use super::paths::{SupervisorPaths, check_socket_owner};
use super::save_refresh;
use super::timeline_records;
use super::window_follow::{self, WindowSessions};
use crate::config::init;
use crate::config::trust::consented_programs;
use crate::debug::{SessionEntry, SessionRegistry};
use crate::session_host::context::SessionContext;
use crate::session_host::log_file;
use crate::tasks::background_tasks::BackgroundTasks;
use crate::tasks::task_runner::TaskQueue;
use crate::timeline::event_now;
use crate::vocabulary::TimelineKind;
use crate::window::{Window, WindowPaths};

/// The stack of a thread, in bytes: unoptimized, the futures of long operations need more than the usual 2 MiB. Only what is used
/// of it is held.
const THREAD_STACK: usize = 8 << 20;
/// How long an exiting supervisor lets a launch finish. Shorter than a front end waits for the next supervisor to start,
/// which waits for this one.
const FINISH_TIMEOUT: Duration = Duration::from_secs(8);

/// Runs the supervisor of the workspace; returns at once when one runs already. It exits after
/// `idle` without a connection, a window and an active session.
pub fn supervise(workspace: &Path, idle: Duration) -> Result<()> {
    // This program, also where its file has been replaced.
    supervise_with(workspace, Path::new("/proc/self/exe"), idle)
}

/// As [`supervise`]; `host_program` hosts the debug sessions.
pub fn supervise_with(workspace: &Path, host_program: &Path, idle: Duration) -> Result<()> {
    let locked = SupervisorPaths::of_workspace(workspace).and_then(|paths| {
        log_file::start_logging(&paths.log_file());
        log_file::exit_on_panic(paths.log_file(), None);
        lock::acquire_lock(&paths).map(|outcome| (paths, outcome))
    });
    let (paths, lock) = match locked.inspect_err(print_failure)? {
        (paths, LockOutcome::Acquired(lock)) => (paths, lock),
        (_, LockOutcome::Held(holder)) => {
            print_startup_message(&StartupMessage::Held(holder.socket));
            return Ok(());
        }
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.thread_stack_size(THREAD_STACK);
    busy_times::record_busy_times(runtime.worker_threads(2).enable_all());
    let runtime = runtime.build().doing(|| "cannot start the async runtime".into())?;
    let outcome = runtime.block_on(serve_until_end(paths, lock, host_program, idle));
    // Does not wait for a build or a scan on a blocking thread.
    runtime.shutdown_background();
    outcome
}

/// Printed for the process that started this one, which may have exited.
fn print_startup_message(message: &StartupMessage) {
    let mut stdout = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut stdout, message).map(|()| stdout.write_all(b"\n"));
    let _ = stdout.flush();
}

fn print_failure(error: &Error) {
    print_startup_message(&StartupMessage::Failed(ErrorData::from(error)));
}

async fn serve_until_end(
    paths: SupervisorPaths,
    mut lock: SupervisorLock,
    host_program: &Path,
    idle: Duration,
) -> Result<()> {
    let listener = bind_socket(&paths).inspect_err(print_failure)?;
    lock.release_starting_lock();
    print_startup_message(&StartupMessage::Ready(paths.socket.clone()));
    info!(workspace = %paths.workspace.display(), pid = std::process::id(), "supervisor {} listens", env!("CARGO_PKG_VERSION"));

    // The schema that devtools.toml refers to is in a folder that git ignores: a clone has none.
    if init::has_schema_reference(&paths.workspace)
        && let Err(error) = init::write_schema(&paths.workspace)
    {
        warn!("{error}");
    }
    // Aborted when this function returns.
    let mut drivers = JoinSet::new();
    let states = paths.state.parent().map(Path::to_owned);
    drivers.spawn_blocking(move || {
        if let Some(states) = states {
            deleted_workspaces::remove_unused_states(&states);
        }
    });
    let supervisor = Arc::new(open_context(paths, host_program, &mut drivers));
    editor_session::start_for_editors(&supervisor);
    let SupervisorContext { window, sessions, hosted, followers, .. } = &*supervisor;
    let in_window = WindowSessions { here: sessions.clone(), hosted: hosted.clone() };
    window_follow::hold_relaunch_while_stopped(window, in_window.clone());
    let following = window_follow::follow_window(window.clone(), in_window, Arc::clone(followers));
    let following = tokio::spawn(following);
    drivers.spawn(background_users::recover_tasks(Arc::clone(&supervisor)));
    drivers.spawn(host_requests::report_lost_window(Arc::clone(&supervisor)));
    let edits = Arc::<timeline_records::EditLog>::default();
    drivers.spawn(timeline_records::record_window(Arc::clone(&supervisor), Arc::clone(&edits)));
    drivers.spawn(timeline_records::record_edits(Arc::clone(&supervisor), edits));
    drivers.spawn(save_refresh::refresh_on_save(Arc::clone(&supervisor)));
    drivers.spawn(timeline_records::record_console(supervisor.window.clone(), supervisor.timeline().clone()));
    let version = env!("CARGO_PKG_VERSION");
    let started = event_now(TimelineKind::SupervisorStarted, format!("{version}, process {}", std::process::id()));
    supervisor.timeline().record(started);
    let reason = accept_until_end(&supervisor, &listener, idle).await?;
    info!("ending: {reason}; the window stays");
    supervisor.timeline().record(event_now(TimelineKind::SupervisorEnded, reason));
    drop(listener);
    // The lock is held: no other supervisor uses the socket.
    let _ = std::fs::remove_file(&supervisor.paths.socket);
    following.abort();
    background_users::release_users(&supervisor);
    // A window that is being replaced would be lost: the old one is closed, the new one is not launched yet.
    let (sessions, conversations, window) =
        (&supervisor.sessions, &supervisor.editors.conversations, &supervisor.window);
    tokio::join!(
        supervisor.hosted.leave_all(),
        sessions.end_all(),
        conversations.end_all(),
        window.finish_operations(FINISH_TIMEOUT)
    );
    supervisor.queue.end_runs().await;
    supervisor.window.disconnect().await;
    supervisor.queue.background.wait_until_stopped().await;
    Ok(())
}

/// The window and the debug sessions of the workspace; `drivers` gets the tasks that run them.
fn open_context(paths: SupervisorPaths, host_program: &Path, drivers: &mut JoinSet<()>) -> SupervisorContext {
    let background = BackgroundTasks::open(&paths.state, SupervisorPaths::task_launch_id_prefix_in(&paths.state));
    let queue = Arc::new(TaskQueue::new(SupervisorPaths::build_launch_id_in(&paths.state), background));
    let window_paths =
        WindowPaths { workspace: paths.workspace.clone(), state: paths.state.clone(), bridge: paths.socket.clone() };
    let (window, window_driver) = Window::open(window_paths, Arc::clone(&queue));
    drivers.spawn(window_driver);
    let launch_id_prefix = SupervisorPaths::debug_launch_id_prefix_in(&paths.state);
    let (sessions, session_driver) =
        SessionRegistry::open(Some(&paths.state), &paths.workspace, launch_id_prefix, consented_programs);
    drivers.spawn(session_driver);
    sessions.add_unstored_hosts(find_running_hosts(&paths));
    let hosted = HostedSessions::new(paths.clone(), host_program.to_owned(), sessions.clone());
    let (editors, editor_driver) = Editors::open();
    drivers.spawn(editor_driver);
    SupervisorContext {
        paths,
        window,
        here: SessionContext::new(sessions.clone()),
        hosted,
        sessions,
        queue,
        launch_memory: LaunchMemory::default(),
        followers: Arc::default(),
        editors,
        connections: watch::Sender::new(0),
        save_refreshers: watch::Sender::new(0),
        requests: watch::Sender::new(0),
        program: tether_process::find_own_program().unwrap_or_default(),
        shutdown: Notify::new(),
    }
}

fn bind_socket(paths: &SupervisorPaths) -> Result<UnixListener> {
    let doing = || format!("cannot listen on {}", paths.socket.display());
    check_socket_owner(&paths.socket)?;
    match std::fs::remove_file(&paths.socket) {
        // Left by an earlier supervisor: the lock is held, so no other process listens on it.
        Ok(()) => info!("removed a stale socket"),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
        Err(cause) => return Err(cause).doing(doing),
    }
    let listener = UnixListener::bind(&paths.socket).doing(doing)?;
    std::fs::set_permissions(&paths.socket, PermissionsExt::from_mode(0o600)).doing(doing)?;
    Ok(listener)
}

/// Accepts connections until there is a reason to exit, which it returns.
async fn accept_until_end(
    supervisor: &Arc<SupervisorContext>,
    listener: &UnixListener,
    idle: Duration,
) -> Result<&'static str> {
    let listen_to = |kind| signal(kind).doing(|| "cannot install signal handlers".into());
    let (mut term, mut int) = (listen_to(SignalKind::terminate())?, listen_to(SignalKind::interrupt())?);
    // Caught, so that a closed terminal does not end the process.
    let mut hangup = listen_to(SignalKind::hangup())?;
    // Owned here: all connections end with this function.
    let mut connections = JoinSet::new();
    let idle = wait_until_idle(supervisor, idle);
    tokio::pin!(idle);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(serve_connection(Arc::clone(supervisor), stream)); }
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    // Most likely out of file descriptors, and there is no event for free ones.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = term.recv() => return Ok("SIGTERM"),
            _ = int.recv() => return Ok("SIGINT"),
            _ = hangup.recv() => info!("SIGHUP ignored"),
            () = supervisor.shutdown.notified() => return Ok("shutdown requested"),
            () = &mut idle => return Ok("idle"),
        }
    }
}

/// Resolves after `after` with no connection, no window and no active session.
async fn wait_until_idle(supervisor: &SupervisorContext, after: Duration) {
    let (mut connections, mut window) = (supervisor.connections.subscribe(), supervisor.window.watch());
    let (mut sessions, mut conversations) = (supervisor.sessions.watch(), supervisor.editors.conversations.watch());
    loop {
        sessions.borrow_and_update();
        let needs_us = |it: &ListedSession| !it.is_ended() || it.is_reconnecting();
        let debugs = supervisor.list_sessions().iter().any(needs_us) || *conversations.borrow_and_update() > 0;
        let is_connected = *connections.borrow_and_update() > 0;
        let busy = is_connected || window.borrow_and_update().needs_supervisor() || debugs;
        tokio::select! {
            () = tokio::time::sleep(after), if !busy => return,
            _ = connections.changed() => {}
            // Nothing else counts as long as a front end is connected: each step of a program would be looked at here.
            _ = window.changed(), if !is_connected => {}
            _ = sessions.changed(), if !is_connected => {}
            _ = conversations.changed(), if !is_connected => {}
        }
    }
}
