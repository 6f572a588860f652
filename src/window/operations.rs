//! The operations on the window, one function each: reconnect, build, replace, close, clean up after an exit.
//!
//! They run beside the actor, which receives their results. Each leaves the files in the same state as the processes:
//! `session.json`, in the workspace and again in the state folder (a workspace may be read-only, or cleaned by git), and
//! the snapshot of the files that the window was built from.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::build::{Build, CompletedBuild};
use super::build_rounds::BuildRounds;
use super::context::WindowContext;
use super::launch::{self, LaunchedWindow, WindowLaunchPlan};
use super::launch_id::{baseline_file_of, new_launch_id, output_file_of};
use super::live_window::LiveWindow;
use super::session_file::{self, WindowSession};
use super::{cleanup, identity};
use crate::changes::{ChangeTracker, FileSnapshot};
use crate::clock::now_ms;
use crate::config::{WindowConfig, trust::WorkspaceCommands};
use crate::error::{Error, Result};
use crate::process;

/// The time between SIGTERM and SIGKILL of a swept process.
const GRACE: Duration = Duration::from_secs(1);

/// Searches for the window of an earlier supervisor. A session file that fails verification is logged and set aside.
pub async fn reconnect_window(context: &WindowContext) -> Option<LiveWindow> {
    let found = find_window(context).await;
    let kept = found.as_ref().map(|window| window.session.launch_id.clone());
    sweep_leftovers(context, kept.as_deref()).await;
    found
}

async fn find_window(context: &WindowContext) -> Option<LiveWindow> {
    for root in session_roots(context) {
        if let Some(window) = find_window_in(context, root).await {
            // Restores the other session file, which may be missing or set aside.
            save_session_files(context, &window.session);
            return Some(window);
        }
    }
    None
}

/// The folders with a `session.json`: the workspace, where users expect it, and the state folder.
fn session_roots(context: &WindowContext) -> [&Path; 2] {
    [&context.paths.workspace, &context.paths.state]
}

async fn find_window_in(context: &WindowContext, root: &Path) -> Option<LiveWindow> {
    let paths = &context.paths;
    let session = match session_file::load_session(root) {
        Ok(session) => session?,
        Err(error) => return set_aside(root, error),
    };
    // A copied workspace contains the session file of the original.
    if session.host_bridge_path.file_name() != paths.bridge.file_name() {
        return set_aside(root, "it is the session of another workspace");
    }
    let verified = identity::verify_window(&session).await;
    let output = output_file_of(&paths.state, &session.launch_id);
    let mut window = match LiveWindow::from_session(session, verified, output, Arc::clone(&context.history)).await {
        Ok(window) => window,
        Err(error) => return set_aside(root, error),
    };
    match restore_baseline(context, &window).await {
        Ok(()) => info!(pid = window.session.electron_pid, "reconnected"),
        Err(error) => window.notes.push(format!("its files cannot be compared: {error}")),
    }
    Some(window)
}

fn set_aside(root: &Path, reason: impl std::fmt::Display) -> Option<LiveWindow> {
    match session_file::set_aside(root, reason) {
        Ok(line) => warn!("{line}"),
        Err(error) => warn!("{error}"),
    }
    None
}

/// Compares the workspace with the files that a found window was built from. Without the stored snapshot, files newer than
/// the start of the window count as changed.
pub async fn restore_baseline(context: &WindowContext, window: &LiveWindow) -> Result<()> {
    let tracker = context.tracker_for(&context.read_tracking_config()?)?;
    let file = baseline_file_of(&context.paths.state, &window.session.launch_id);
    let stored = FileSnapshot::load(&file, tracker.root()).unwrap_or_else(|error| {
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
    match process::sweep_launch(&context.paths.build_launch_id, GRACE).await {
        Ok(killed) if killed.is_empty() => {}
        Ok(killed) => info!("killed the processes of an earlier build: {killed:?}"),
        Err(error) => warn!("cannot search for the processes of an earlier build: {error}"),
    }
}

/// Runs the build, if the user trusts the workspace's commands. Begins anew when the commands change meanwhile.
pub async fn build_window(context: &WindowContext, rounds: &mut BuildRounds) -> Result<CompletedBuild> {
    loop {
        let config = read_trusted_config(context)?;
        let tracker = tracker_of(context, &config)?;
        let build = Build { config: &config, tracker: &tracker, launch_id: &context.paths.build_launch_id };
        let is_current = || read_trusted_config(context).map(|now| now.consent_lines() == config.consent_lines());
        let progress = |text: &str| context.report_progress(text);
        if let Some(completed) = build.run(rounds, is_current, &progress).await? {
            return Ok(completed);
        }
    }
}

/// Reads what to build and launch; an error without a window in it, or if the user does not trust its commands.
fn read_trusted_config(context: &WindowContext) -> Result<WindowConfig> {
    let config = context.read_config()?;
    config.check_window()?;
    WorkspaceCommands::of_window(&config).require_consent()?;
    // After the check: the user's own environment is not part of what they trust.
    Ok(config.with_environment_values())
}

fn tracker_of(context: &WindowContext, config: &WindowConfig) -> Result<Arc<ChangeTracker>> {
    context.tracker_for(&(config.watch.clone(), config.build_outputs.clone()))
}

/// Why a window was not replaced.
pub struct ReplaceError {
    pub error: Error,
    /// The old window, if the error came before it was closed.
    pub old_window: Option<Arc<LiveWindow>>,
}

impl From<Error> for ReplaceError {
    fn from(error: Error) -> Self {
        ReplaceError { error, old_window: None }
    }
}

/// Closes the old window, if there is one, and launches a new one. Everything that can be checked is checked before the
/// old window is closed.
pub async fn replace_window(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    build: Option<CompletedBuild>,
) -> Result<LiveWindow, ReplaceError> {
    let (config, tracker, baseline) = match prepare_launch(context, old.as_deref(), build).await {
        Ok(ready) => ready,
        Err(error) => return Err(ReplaceError { error, old_window: old }),
    };
    if old.is_some() {
        context.report_progress("closing the old window");
        close_window(context, old).await?;
    }
    Ok(launch_new_window(context, config, &tracker, baseline).await?)
}

/// What to launch, and the files that it was built from. Without a build, a replacement runs the build of the old window.
async fn prepare_launch(
    context: &WindowContext,
    old: Option<&LiveWindow>,
    build: Option<CompletedBuild>,
) -> Result<(WindowConfig, Arc<ChangeTracker>, Arc<FileSnapshot>)> {
    if let Some(CompletedBuild { config, baseline, .. }) = build {
        let tracker = tracker_of(context, &config)?;
        return Ok((*config, tracker, baseline));
    }
    let config = read_trusted_config(context)?;
    let tracker = tracker_of(context, &config)?;
    let stored = old.filter(|_| !config.build.is_empty()).and_then(|old| {
        let file = baseline_file_of(&context.paths.state, &old.session.launch_id);
        FileSnapshot::load(&file, tracker.root()).unwrap_or_default()
    });
    let baseline = match stored {
        Some(stored) => Arc::new(stored),
        None => tracker.take_snapshot().await?,
    };
    Ok((config, tracker, baseline))
}

async fn launch_new_window(
    context: &WindowContext,
    config: WindowConfig,
    tracker: &Arc<ChangeTracker>,
    baseline: Arc<FileSnapshot>,
) -> Result<LiveWindow> {
    remove_older_launches(context);
    let launch_id = new_launch_id()?;
    let plan = WindowLaunchPlan {
        settings: config.window,
        workspace: context.paths.workspace.clone(),
        state_dir: context.paths.state.clone(),
        launch_id,
    };
    context.report_progress("launching");
    let launched = launch::launch_window(&plan, |text| context.report_progress(text)).await?;
    let session = new_session(context, &plan, &launched);
    let mut notes = save_launch(context, &session, &baseline);
    notes.extend(config.notes);
    if let Err(error) = context.update_active_config(|active| active.running = config.configuration) {
        notes.push(error.to_string());
    }
    context.set_baseline(tracker, baseline).await;
    Ok(LiveWindow::from_launch(launched, session, notes, Arc::clone(&context.history)).await)
}

fn new_session(context: &WindowContext, plan: &WindowLaunchPlan, launched: &LaunchedWindow) -> WindowSession {
    WindowSession {
        version: session_file::VERSION,
        cdp_port: launched.cdp_port,
        electron_pid: launched.process.pid(),
        inspector_port: launched.inspector_port,
        host_bridge_path: context.paths.bridge.clone(),
        user_data_dir: launched.user_data_dir.clone(),
        debug_window_started_at: launched.started_at_ms,
        persisted_at: now_ms(),
        launch_id: plan.launch_id.clone(),
        boot_id: launched.boot_id.clone(),
        pid_start_ticks: launched.process.start_ticks(),
        browser_id: launched.endpoint.browser_id.clone(),
    }
}

/// Writes what a new supervisor needs to find the window again. Errors are returned as notes: the window runs all the same.
fn save_launch(context: &WindowContext, session: &WindowSession, baseline: &FileSnapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = baseline.save(&baseline_file_of(&context.paths.state, &session.launch_id)) {
        notes.push(error.to_string());
    }
    notes.extend(save_session_files(context, session));
    for note in &notes {
        warn!("{note}");
    }
    notes
}

/// Writes both session files; returns the errors.
fn save_session_files(context: &WindowContext, session: &WindowSession) -> Vec<String> {
    let saved = session_roots(context).into_iter().map(|root| session_file::save_session(root, session));
    saved.filter_map(Result::err).map(|error| error.to_string()).collect()
}

/// Closes the window, kills all its processes, and removes its session files.
pub async fn close_window(context: &WindowContext, window: Option<Arc<LiveWindow>>) -> Result<()> {
    let Some(window) = window else {
        // A launch was aborted: its processes are killed already, but have not been waited for.
        remove_session_files(context);
        return cleanup::clean_up_abandoned(&context.paths.state, None).await;
    };
    context.report_progress("closing the window");
    let launch_id = &window.session.launch_id;
    let stopped =
        cleanup::stop_window(&window.process, window.request_close(), launch_id, &context.paths.state, cleanup::GRACE)
            .await;
    remove_session_files(context);
    stopped.map(|_| ())
}

/// Kills the remaining processes of a window that has exited, and removes its scratch folder.
pub async fn clean_up_after_exit(context: &WindowContext, window: &LiveWindow) {
    if let Err(error) = cleanup::clean_up_launch(&window.session.launch_id, &context.paths.state).await {
        warn!("{error}");
    }
}

/// Removes the files of earlier launches from the state folder, before a new launch.
fn remove_older_launches(context: &WindowContext) {
    let Ok(entries) = fs::read_dir(&context.paths.state) else { return };
    for entry in entries.filter_map(std::result::Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("output-") || name.starts_with("built-") {
            let _ = fs::remove_file(entry.path());
        } else if name.starts_with("window-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the session files. The output and the snapshot are kept until the next launch.
pub fn remove_session_files(context: &WindowContext) {
    for root in session_roots(context) {
        if let Err(error) = session_file::remove_session(root) {
            warn!("{error}");
        }
    }
}
