//! The search for the window of an earlier supervisor, by the session files in the workspace and in the state folder.
//!
//! ```text
//!  session file ─▶ readable? ─▶ of this workspace? ─▶ identity ─▶ Found: connect, restore the baseline
//!                     │no              │no               │refuted: the file is set aside
//!                     ▼                ▼                 ▼not decided
//!              does a launch run? ─yes─────────────▶ Undecided: nothing is ended, removed or set aside
//!                     └no: the file is set aside ──▶ NoWindow: what earlier launches left is ended
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tether_base::sync::run_blocking;
use tracing::{info, warn};

use super::cleanup;
use super::context::WindowContext;
use super::identity::{self, IdentityError};
use super::launch_id::{output_file_of, scratch_dir_of};
use super::live_window::{LiveWindow, WindowPage};
use super::operations::resume_launch;
use super::pending_launch::{PendingLaunch, load_pending_launch, remove_pending_launch};
use super::recorded_launch::{ReplaceError, save_session_files, session_roots};
use super::session_file::{self, SessionFileError, WindowSession};
use super::test_host::tests_state_dir;
use crate::tasks::background_tasks::WINDOW_USER;
use crate::workspace::workspace_dir::UnusableFile;

/// The time between SIGTERM and SIGKILL of a swept process.
const GRACE: Duration = Duration::from_secs(1);

const SEARCH_ENDED: &str = "the search for the window of an earlier supervisor has ended";

/// What became of the search.
pub enum SearchResult {
    Found(Arc<LiveWindow>),
    NoWindow,
    /// A window may run, but cannot be verified, for this reason.
    Undecided(String),
}

/// What one session file says.
enum SessionFileCheck {
    /// There is none.
    Missing,
    Verified(Arc<LiveWindow>),
    /// Its window does not run, or is not this workspace's.
    Refuted(String),
    /// The file says nothing about a window.
    Unusable(String),
    /// Its window may run.
    Undecided(String),
}

/// Searches for the window of an earlier supervisor, and finishes a launch or a replacement that had begun. Without doubt, session
/// files of other windows are set aside, and the processes of all other launches are ended.
pub async fn find_earlier_window(context: &WindowContext) -> SearchResult {
    let result = search_session_files(context).await;
    let kept = match &result {
        SearchResult::Found(window) => {
            // Restores the other session file, which may be missing or set aside.
            save_session_files(context, &window.session);
            Some(window.session.launch_id.clone())
        }
        SearchResult::NoWindow => None,
        SearchResult::Undecided(why) => {
            warn!("cannot verify the window of an earlier supervisor: {why}");
            info!("{SEARCH_ENDED}");
            return result;
        }
    };
    sweep_leftovers(context, kept.as_deref()).await;
    let result = match load_pending_launch(&context.paths.state) {
        Some(pending) if kept.as_ref() != Some(&pending.launch_id) => finish_launch(context, result, pending).await,
        _ => result,
    };
    remove_pending_launch(&context.paths.state);
    drop_interrupted_selection(context);
    info!("{SEARCH_ENDED}");
    result
}

/// A configuration whose start an earlier supervisor did not finish is not selected any more.
fn drop_interrupted_selection(context: &WindowContext) {
    let dropped = context.update_active_config(|active| {
        if active.selected.is_some() && active.selected != active.running {
            active.selected.clone_from(&active.running);
        }
    });
    if let Err(error) = dropped {
        warn!("{error}");
    }
}

/// Closes the old window, if it still runs, and launches the new one.
async fn finish_launch(context: &WindowContext, result: SearchResult, pending: PendingLaunch) -> SearchResult {
    info!("finishing the launch of a window that the supervisor before had begun");
    let old = if let SearchResult::Found(old) = result { Some(old) } else { None };
    match resume_launch(context, old, pending).await {
        Ok(window) => SearchResult::Found(Arc::new(window)),
        Err(ReplaceError { error, window }) => {
            warn!("{error}");
            let note = format!("the supervisor before exited while it launched a window, and {error}");
            context.published.send_modify(|published| published.notes.push(note));
            window.map_or(SearchResult::NoWindow, SearchResult::Found)
        }
    }
}

/// The error of an operation that needs to know whether there is a window.
pub fn unverified_error(why: impl Into<String>) -> Error {
    Error::other("cannot tell whether the window of an earlier supervisor still runs")
        .because(why.into())
        .hint("nothing was ended, and no other window is started beside it; `tether start` searches for it again")
        .hint("`tether stop` ends what is left of it; then `tether start` starts a new one")
}

async fn search_session_files(context: &WindowContext) -> SearchResult {
    let (mut unusable, mut undecided) = (Vec::new(), Vec::new());
    let mut is_refuted = false;
    for root in session_roots(context) {
        match check_session_file(context, root).await {
            SessionFileCheck::Missing => {}
            SessionFileCheck::Verified(window) => return SearchResult::Found(window),
            SessionFileCheck::Undecided(why) => undecided.push(why),
            SessionFileCheck::Unusable(why) => unusable.push((root, why)),
            SessionFileCheck::Refuted(why) => {
                is_refuted = true;
                set_aside_unproven(root, &why);
            }
        }
    }
    if !unusable.is_empty() && !is_refuted {
        // Without a file that is of use, the processes themselves decide.
        let state = context.paths.state.clone();
        match run_blocking(move || find_running_launches(&state)).await {
            Ok(launches) if launches.is_empty() => {}
            Ok(launches) => undecided.extend(
                unusable
                    .iter()
                    .map(|(root, why)| format!("{}: {why}; {launches}", session_file::session_path(root).display())),
            ),
            Err(error) => undecided.push(error.to_string()),
        }
    }
    if !undecided.is_empty() {
        return SearchResult::Undecided(undecided.remove(0));
    }
    for (root, why) in unusable {
        set_aside_unproven(root, &why);
    }
    SearchResult::NoWindow
}

async fn check_session_file(context: &WindowContext, root: &Path) -> SessionFileCheck {
    let session = match session_file::load_session(root) {
        Ok(Some(session)) => session,
        Ok(None) => return SessionFileCheck::Missing,
        Err(SessionFileError::File(UnusableFile::Unreadable(cause))) => {
            return SessionFileCheck::Undecided(format!(
                "{} cannot be read: {cause}",
                session_file::session_path(root).display()
            ));
        }
        Err(error) => return SessionFileCheck::Unusable(error.to_string()),
    };
    // A copied workspace contains the session file of the original.
    if session.host_bridge_path.file_name() != context.paths.bridge.file_name() {
        return SessionFileCheck::Refuted("it is the session of another workspace".to_owned());
    }
    let (process, endpoint) = match identity::verify_window(&session).await {
        Ok(verified) => (verified.process, Some(verified.endpoint)),
        // A verified window that does not respond must not be replaced silently.
        Err(IdentityError::Unresponsive { process, .. }) => (process, None),
        Err(error) if error.leaves_doubt() => {
            return SessionFileCheck::Undecided(format!("process {}: {error}", session.electron_pid));
        }
        Err(error) => return SessionFileCheck::Refuted(error.to_string()),
    };
    SessionFileCheck::Verified(Arc::new(reconnect(context, session, process, endpoint).await))
}

async fn reconnect(
    context: &WindowContext,
    session: WindowSession,
    process: tether_process::Process,
    endpoint: Option<tether_cdp::Endpoint>,
) -> LiveWindow {
    // The extension in the window finds this supervisor by the file: its socket may lie elsewhere than the last one's.
    let session = WindowSession { host_bridge_path: context.paths.bridge.clone(), persisted_at: now_ms(), ..session };
    let notes = save_session_files(context, &session);
    let output = output_file_of(&context.paths.state, &session.launch_id);
    let mut window =
        LiveWindow::connect(session, process, WindowPage::At(endpoint), output, Arc::clone(&context.history)).await;
    window.reconnected = true;
    window.notes.extend(notes);
    window.keep_background_tasks(context.queue.background.recovered_tasks(WINDOW_USER));
    match restore_baseline(context, &window).await {
        Ok(()) => info!(pid = window.session.electron_pid, "reconnected"),
        Err(error) => window.notes.push(format!("its files cannot be compared: {error}")),
    }
    window
}

fn set_aside_unproven(root: &Path, reason: &str) {
    match session_file::set_aside(root, reason) {
        Ok(line) => warn!("{line}"),
        Err(error) => warn!("{error}"),
    }
}

/// The launches of this state folder that have running processes, for a message; empty without any.
fn find_running_launches(state_dir: &Path) -> Result<String> {
    let mut found = Vec::new();
    for launch_id in cleanup::list_launches(state_dir)? {
        let members = tether_process::find_launch_members(&launch_id);
        let mut members = members.map_err(|cause| Error::other("cannot search for running launches").because(cause))?;
        members.include_users_of(&scratch_dir_of(state_dir, &launch_id));
        let pids: Vec<String> = members.tied.iter().map(|process| process.pid().to_string()).collect();
        if !pids.is_empty() {
            found.push(format!("of launch {launch_id}, process {} runs", pids.join(", ")));
        }
    }
    Ok(found.join("; "))
}

/// Compares the workspace with the files that a found window was built from. Without the stored snapshot, files newer than
/// the start of the window count as changed.
pub async fn restore_baseline(context: &WindowContext, window: &LiveWindow) -> Result<()> {
    let tracker = context.tracker_for(&context.read_tracking_config()?)?;
    let stored = context.load_baseline(&window.session.launch_id, &tracker).await.unwrap_or_else(|error| {
        warn!("{error}");
        None
    });
    let baseline = match stored {
        Some(snapshot) => Arc::new(snapshot),
        None => Arc::new(tracker.take_snapshot().await?.as_of(window.session.debug_window_started_at)),
    };
    context.set_baseline(&tracker, baseline).await;
    Ok(())
}

/// Kills the processes of a launch or a build during which the supervisor was killed.
async fn sweep_leftovers(context: &WindowContext, kept: Option<&str>) {
    if let Err(error) = cleanup::clean_up_abandoned(&context.paths.state, kept).await {
        warn!("{error}");
    }
    if let Err(error) = cleanup::clean_up_abandoned(&tests_state_dir(&context.paths.state), None).await {
        warn!("{error}");
    }
    match tether_process::sweep_launch(&context.queue.launch_id, None, GRACE).await {
        Ok(killed) if killed.is_empty() => {}
        Ok(killed) => info!("killed the processes of an earlier build: {killed:?}"),
        Err(error) => warn!("cannot search for the processes of an earlier build: {error}"),
    }
}
