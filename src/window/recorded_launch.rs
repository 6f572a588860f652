//! Launches a window while the old one closes, and records both for the next supervisor.
//!
//! Each step leaves the files in the same state as the processes: `session.json`, in the workspace and again in the state
//! folder (a workspace may be read-only, or cleaned by git), and the snapshot of the files that the window was built from.
//! Does not decide whether to launch.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tether_base::sync::{lock, run_blocking};
use tether_changes::{ChangeTracker, FileSnapshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::cleanup;
use super::context::{WindowContext, WindowPaths};
use super::launch::{self, LaunchedWindow, WindowLaunchPlan, describe_missing_mains};
use super::live_window::{LiveWindow, WindowPage};
use super::pending_launch::{PendingLaunch, remove_pending_launch, save_pending_launch};
use super::refresh::contributed_files::ContributedFiles;
use super::session_file::{self, WindowSession};
use crate::config::{WindowConfig, WindowKind, WindowSettings, describe_unwatched_packages};
use crate::tasks::background_tasks::{BackgroundTask, find_addresses};

/// Between two attempts to write the session files: the pause doubles from the first to the last.
const SAVE_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// The folders with a `session.json`: the workspace, where users expect it, and the state folder.
pub(super) fn session_roots(context: &WindowContext) -> [&Path; 2] {
    [&context.paths.workspace, &context.paths.state]
}

/// The tracker of the files that this configuration names.
pub(super) fn tracker_of(context: &WindowContext, config: &WindowConfig) -> Result<Arc<ChangeTracker>> {
    context.tracker_for(&(config.watch.clone(), config.build_outputs.clone()))
}

/// Why a window was not replaced.
pub struct ReplaceError {
    pub error: Error,
    /// The window that runs all the same: the old one, if the error came before it was closed, or one like it that was
    /// started again.
    pub window: Option<Arc<LiveWindow>>,
}

impl From<Error> for ReplaceError {
    fn from(error: Error) -> Self {
        ReplaceError { error, window: None }
    }
}

/// Records a launch that begins: the next supervisor finishes what this one cannot.
pub(super) async fn record_launch(
    context: &WindowContext,
    pending: &PendingLaunch,
    baseline: &Arc<FileSnapshot>,
) -> Result<()> {
    context.save_baseline(&pending.launch_id, baseline).await?;
    save_pending_launch(&context.paths.state, pending)
}

/// What to launch, and the files that it was built from.
pub(super) struct PreparedLaunch {
    pub config: WindowConfig,
    pub tracker: Arc<ChangeTracker>,
    pub baseline: Arc<FileSnapshot>,
    pub background_tasks: Vec<Arc<BackgroundTask>>,
}

/// The plan of a launch, and a note about it.
pub(super) async fn launch_plan(
    context: &WindowContext,
    ready: &PreparedLaunch,
    launch_id: String,
) -> (WindowLaunchPlan, Option<String>) {
    let (settings, note) = with_served_address(ready.config.window.clone(), &ready.background_tasks).await;
    let plan = WindowLaunchPlan {
        settings,
        workspace: context.paths.workspace.clone(),
        state_dir: context.paths.state.clone(),
        launch_id,
        history: Arc::clone(&context.history),
        holds_hosts: context.holds_new_hosts.load(Ordering::Relaxed),
    };
    (plan, note)
}

/// Launches a window while the old one closes, and records it. Of earlier launches, only the output of `kept` stays.
pub(super) async fn launch_new_window(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    ready: PreparedLaunch,
    [launch_id, kept]: [&str; 2],
) -> Result<LiveWindow> {
    let (plan, address_note) = launch_plan(context, &ready, launch_id.to_owned()).await;
    let PreparedLaunch { config, tracker, baseline, background_tasks } = ready;
    let closing = async {
        if old.is_some() {
            context.report_progress("closing the old window");
            close_window(context, old).await?;
        }
        remove_older_launches(context, [launch_id, kept]).await;
        context.history.record_launch();
        context.history.end_launch_settings();
        Ok(())
    };
    // Before they are read: a later change counts.
    let extensions = launch::development_folders(&plan);
    let contributed = Some(run_blocking(move || ContributedFiles::read(&extensions)).await);
    let launched = launch::launch_while_closing(&plan, closing, |text| context.report_progress(text)).await;
    let launched = launched.map_err(|error| plan.settings.secrets.mask_error(error))?;
    let session = new_session(context, &plan, &launched);
    let mut notes = log_warnings(save_session_files(context, &session));
    notes.extend(describe_missing_mains(&session.extensions));
    notes.extend(launched.notes.iter().cloned());
    notes.extend(config.notes.iter().cloned().chain(address_note));
    let (workspace, watched) = (context.paths.workspace.clone(), tracker.root().to_owned());
    notes.extend(run_blocking(move || describe_unwatched_packages(&workspace, &watched)).await);
    let running = config.configuration.clone();
    if let Err(error) = context.update_active_config(|active| active.running = running) {
        notes.push(error.to_string());
    }
    context.set_baseline(&tracker, baseline).await;
    let LaunchedWindow { process, endpoint, page, output, .. } = launched;
    let page = match page {
        Some(page) => WindowPage::Open(page),
        None => WindowPage::At(Some(endpoint)),
    };
    let mut window = LiveWindow::connect(session, process, page, output, Arc::clone(&context.history)).await;
    window.notes = notes;
    window.keep_background_tasks(background_tasks);
    window.launched_from = Some(Arc::new(config));
    window.contributed = contributed;
    Ok(window)
}

/// The settings of a window that shows the page of its dev server; and a note if the server has another address than the
/// configured one, such as the next free port.
async fn with_served_address(
    settings: WindowSettings,
    tasks: &[Arc<BackgroundTask>],
) -> (WindowSettings, Option<String>) {
    let servers = || tasks.iter().filter_map(|task| Some((task, task.address.get()?)));
    let Some((_, address)) = servers().next().filter(|_| settings.kind == Some(WindowKind::Browser)) else {
        return (settings, None);
    };
    let Some(configured) = &settings.url else {
        return (WindowSettings { url: Some(address.clone()), ..settings }, None);
    };
    let port = find_addresses(configured).first().map(|it| it.port);
    let Some(port) = port else { return (settings, None) };
    for task in tasks {
        if task.find_listened_port(vec![port]).await.is_some() {
            return (settings, None);
        }
    }
    let note = format!("the window shows {address}, which its dev server serves, and not {configured}");
    (WindowSettings { url: Some(address.clone()), ..settings }, Some(note))
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
        extensions: launched.extensions.clone(),
    }
}

pub(super) fn log_warnings(notes: Vec<String>) -> Vec<String> {
    for note in &notes {
        warn!("{note}");
    }
    notes
}

/// Writes both session files; returns the errors. Where none of them can be written, such as on a full disk, that is tried again:
/// without one of them, the next supervisor would take the window for what is left of a launch.
pub(super) fn save_session_files(context: &WindowContext, session: &WindowSession) -> Vec<String> {
    let saved = write_session_files(&context.paths, session);
    let mut saving = JoinSet::new();
    if saved.iter().all(Result::is_err) {
        saving.spawn(keep_saving(context.paths.clone(), session.clone()));
    }
    *lock(&context.saving) = saving;
    saved.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect()
}

fn write_session_files(paths: &WindowPaths, session: &WindowSession) -> [Result<()>; 2] {
    [session_file::save_session(&paths.workspace, session), session_file::save_session_copy(&paths.state, session)]
}

/// Writes the session files once that is possible.
async fn keep_saving(paths: WindowPaths, session: WindowSession) {
    let (mut pause, longest) = SAVE_PAUSES;
    loop {
        tokio::time::sleep(pause).await;
        if write_session_files(&paths, &session).iter().any(Result::is_ok) {
            return info!("the window is recorded now");
        }
        pause = pause.saturating_mul(2).min(longest);
    }
}

/// Closes the window, kills all its processes, and removes its session files. Background tasks that nothing else uses are
/// stopped from then on.
pub async fn close_window(context: &WindowContext, window: Option<Arc<LiveWindow>>) -> Result<()> {
    let Some(window) = window else {
        // A launch was aborted: its processes are killed already, but have not been waited for.
        remove_session_files(context);
        remove_pending_launch(&context.paths.state);
        return cleanup::clean_up_abandoned(&context.paths.state, None).await;
    };
    context.report_progress("closing the window");
    let launch_id = &window.session.launch_id;
    let stopped =
        cleanup::stop_window(&window.process, window.request_close(), launch_id, &context.paths.state, cleanup::GRACE)
            .await;
    window.release_background_tasks();
    remove_session_files(context);
    stopped.map(|_| ())
}

/// Removes the files of earlier launches than these from the state folder.
async fn remove_older_launches(context: &WindowContext, kept: [&str; 2]) {
    let (state, kept) = (context.paths.state.clone(), kept.map(str::to_owned));
    run_blocking(move || {
        let Ok(entries) = fs::read_dir(&state) else { return };
        for entry in entries.filter_map(std::result::Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if kept.iter().any(|launch_id| name.contains(launch_id)) {
                continue;
            }
            if name.starts_with("output-") || name.starts_with("built-") {
                let _ = fs::remove_file(entry.path());
            } else if name.starts_with("window-") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    })
    .await;
}

/// Removes the session files. The output and the snapshot are kept until the next launch.
pub fn remove_session_files(context: &WindowContext) {
    lock(&context.saving).abort_all();
    for root in session_roots(context) {
        if let Err(error) = session_file::remove_session(root) {
            warn!("{error}");
        }
    }
}
