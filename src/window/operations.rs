//! The operations on the window, one function each: build, replace, close, clean up after an exit.
//!
//! They run beside the actor, which receives their results. Each leaves the files in the same state as the processes:
//! `session.json`, in the workspace and again in the state folder (a workspace may be read-only, or cleaned by git), and
//! the snapshot of the files that the window was built from.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tracing::warn;

use super::build::{Build, CompletedBuild};
use super::build_rounds::BuildRounds;
use super::cleanup;
use super::context::WindowContext;
use super::launch::{self, LaunchedWindow, WindowLaunchPlan, describe_missing_mains};
use super::launch_id::{baseline_file_of, new_random_id};
use super::live_window::{LiveWindow, WindowPage};
use super::pending_launch::{PendingLaunch, remove_pending_launch, save_pending_launch};
use super::refresh::ladder::{ChangeScope, RefreshRung, classify_change};
use super::refresh::refresh_window;
use super::refresh::rung_report::WindowRefresh;
use super::session_file::{self, WindowSession};
use crate::background_tasks::{BackgroundTask, WINDOW_USER, find_addresses};
use crate::changes::{ChangeTracker, FileSnapshot};
use crate::clock::now_ms;
use crate::config::{RefreshSetting, WindowConfig, WindowKind, WindowSettings, trust::WorkspaceCommands};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// The folders with a `session.json`: the workspace, where users expect it, and the state folder.
pub(super) fn session_roots(context: &WindowContext) -> [&Path; 2] {
    [&context.paths.workspace, &context.paths.state]
}

/// Runs the build, if the user trusts the workspace's commands. Begins anew when the commands change meanwhile. A build
/// that was kept is returned as it is if no command and no tracked file has changed since it began.
pub async fn build_window(
    context: &WindowContext,
    rounds: &mut BuildRounds,
    mut kept: Option<CompletedBuild>,
) -> Result<CompletedBuild> {
    loop {
        let config = read_trusted_config(context)?;
        let tracker = tracker_of(context, &config)?;
        if let Some(kept) = kept.take()
            && kept.config.consent_lines() == config.consent_lines()
            && tracker.take_snapshot().await?.changed_paths(&kept.baseline).is_empty()
        {
            return Ok(kept);
        }
        let build = Build { config: &config, tracker: &tracker, queue: &context.queue };
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
    let config = config.with_environment_values();
    lock(&context.secrets).clone_from(&config.window.secrets);
    Ok(config)
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

/// Brings the old window up to date in place, if it `may_refresh` and a rung of the ladder is proven to; else closes it, if
/// there is one, and launches a new one. Everything that can be checked is checked before the old window is closed.
pub async fn replace_window(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    build: Option<CompletedBuild>,
    may_refresh: bool,
) -> Result<LiveWindow, ReplaceError> {
    let ready = match prepare_launch(context, old.as_deref(), build).await {
        Ok(ready) => ready,
        Err(error) => return Err(ReplaceError { error, old_window: old }),
    };
    let (began, mut refresh_notes) = (Instant::now(), Vec::new());
    if let Some(window) = old.as_deref().filter(|_| may_refresh) {
        match refresh_in_place(context, window, &ready).await {
            Ok(window) => return Ok(window),
            Err(notes) => refresh_notes = notes,
        }
        if !window.process.is_alive() {
            let error = Error::new(ErrorKind::NotFound, "the window ended while it was refreshed");
            return Err(ReplaceError { error: error.hint("`tether start` starts it again"), old_window: old });
        }
    }
    let replaces = old.is_some();
    let recorded = || {
        let launch_id = new_random_id()?;
        // From here on, the next supervisor finishes what this one cannot.
        record_launch(context, &PendingLaunch::first(launch_id.clone())?, &ready.baseline)?;
        Ok(launch_id)
    };
    match recorded() {
        Ok(launch_id) => {
            let mut window = close_and_launch(context, old, ready, launch_id).await?;
            window.refresh_notes = refresh_notes;
            window.refreshed = replaces.then(|| WindowRefresh { by: RefreshRung::Relaunch, took: began.elapsed() });
            Ok(window)
        }
        Err(error) => Err(ReplaceError { error, old_window: old }),
    }
}

/// Refreshes a running window by the ladder, and records it as a new generation. `Err`: why no rung was enough; empty if
/// none can take up the change.
async fn refresh_in_place(
    context: &WindowContext,
    old: &LiveWindow,
    ready: &PreparedLaunch,
) -> Result<LiveWindow, Vec<String>> {
    let Some(kind) = ready.config.window.kind else { return Err(Vec::new()) };
    let scope = change_scope(context, old, ready);
    context.arm_host_hold(old);
    let refreshed = refresh_window(old, kind, scope, &|text| context.report_progress(text)).await?;
    let mut notes = save_refresh(context, &refreshed.session, &ready.baseline);
    notes.extend(describe_missing_mains(&refreshed.session.extensions));
    notes.extend(ready.config.notes.iter().cloned());
    context.set_baseline(&ready.tracker, Arc::clone(&ready.baseline)).await;
    context.history.record_launch();
    let endpoint = old.page().await.ok().map(|page| page.endpoint().clone());
    let (process, output, history) = (old.process.clone(), old.output().to_owned(), Arc::clone(&context.history));
    let mut window = LiveWindow::connect(refreshed.session, process, WindowPage::At(endpoint), output, history).await;
    window.notes = notes;
    window.background_tasks = ready.background_tasks.clone();
    window.refresh_notes = refreshed.notes;
    window.refreshed = Some(refreshed.refresh);
    Ok(window)
}

/// What has to take up what changed since the old window's build.
fn change_scope(context: &WindowContext, old: &LiveWindow, ready: &PreparedLaunch) -> ChangeScope {
    let is_other_config = context.active_config().running != ready.config.configuration;
    if is_other_config || ready.config.window.refresh == RefreshSetting::Relaunch {
        return ChangeScope::Launch;
    }
    let root = ready.tracker.root();
    let built_from = FileSnapshot::load(&baseline_file_of(&context.paths.state, &old.session.launch_id), root);
    // Without it, it is not known what changed.
    let Ok(Some(built_from)) = built_from else { return ChangeScope::Launch };
    let changed = ready.baseline.changed_paths(&built_from);
    classify_change(&changed, root, &context.paths.workspace, &old.session.extensions)
}

fn record_launch(context: &WindowContext, pending: &PendingLaunch, baseline: &FileSnapshot) -> Result<()> {
    baseline.save(&baseline_file_of(&context.paths.state, &pending.launch_id))?;
    save_pending_launch(&context.paths.state, pending)
}

/// Closes the old window, if there is one, and launches the new one. The launch is then pending no longer, whatever came of it.
async fn close_and_launch(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    ready: PreparedLaunch,
    launch_id: String,
) -> Result<LiveWindow> {
    let replaced = launch_new_window(context, old, ready, launch_id).await;
    remove_pending_launch(&context.paths.state);
    replaced
}

/// Finishes a launch or a replacement in the middle of which the supervisor before has exited. `old` is the old window, if it still
/// runs. Errors: as of a launch, and that it was begun too often.
pub async fn resume_launch(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    pending: PendingLaunch,
) -> Result<LiveWindow, ReplaceError> {
    let prepared = async {
        let config = read_trusted_config(context)?;
        let tracker = tracker_of(context, &config)?;
        let stored = FileSnapshot::load(&baseline_file_of(&context.paths.state, &pending.launch_id), tracker.root());
        let baseline = match stored.unwrap_or_default() {
            Some(stored) => Arc::new(stored),
            // It is not known what was built: everything counts as changed since.
            None => Arc::new(tracker.take_snapshot().await?.as_of(0)),
        };
        let given_up = || Error::other("the launch is not begun again").because("it was interrupted twice");
        let next = pending.next(new_random_id()?).ok_or_else(given_up)?;
        record_launch(context, &next, &baseline)?;
        let background_tasks = context.queue.background.recovered_tasks(WINDOW_USER);
        Ok::<_, Error>((PreparedLaunch { config, tracker, baseline, background_tasks }, next.launch_id))
    };
    match prepared.await {
        Ok((ready, launch_id)) => Ok(close_and_launch(context, old, ready, launch_id).await?),
        Err(error) => Err(ReplaceError { error, old_window: old }),
    }
}

/// What to launch, and the files that it was built from.
struct PreparedLaunch {
    config: WindowConfig,
    tracker: Arc<ChangeTracker>,
    baseline: Arc<FileSnapshot>,
    background_tasks: Vec<Arc<BackgroundTask>>,
}

/// Without a build, a replacement runs the build of the old window.
async fn prepare_launch(
    context: &WindowContext,
    old: Option<&LiveWindow>,
    build: Option<CompletedBuild>,
) -> Result<PreparedLaunch> {
    if let Some(CompletedBuild { config, baseline, background_tasks, .. }) = build {
        let tracker = tracker_of(context, &config)?;
        return Ok(PreparedLaunch { config: *config, tracker, baseline, background_tasks });
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
    let background_tasks = old.map(|old| old.background_tasks.clone()).unwrap_or_default();
    Ok(PreparedLaunch { config, tracker, baseline, background_tasks })
}

/// Launches a window while the old one closes, and records it.
async fn launch_new_window(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    PreparedLaunch { config, tracker, baseline, background_tasks }: PreparedLaunch,
    launch_id: String,
) -> Result<LiveWindow> {
    let (settings, address_note) = with_served_address(config.window, &background_tasks);
    let plan = WindowLaunchPlan {
        settings,
        workspace: context.paths.workspace.clone(),
        state_dir: context.paths.state.clone(),
        launch_id,
        history: Arc::clone(&context.history),
        holds_hosts: context.holds_new_hosts.load(Ordering::Relaxed),
    };
    let closing = async {
        if old.is_some() {
            context.report_progress("closing the old window");
            close_window(context, old).await?;
        }
        remove_older_launches(context, &plan.launch_id);
        context.history.record_launch();
        Ok(())
    };
    let launched = launch::launch_while_closing(&plan, closing, |text| context.report_progress(text)).await;
    let launched = launched.map_err(|error| plan.settings.secrets.mask_error(error))?;
    let session = new_session(context, &plan, &launched);
    let mut notes = log_warnings(save_session_files(context, &session));
    notes.extend(describe_missing_mains(&session.extensions));
    notes.extend(launched.notes.iter().cloned());
    notes.extend(config.notes.into_iter().chain(address_note));
    if let Err(error) = context.update_active_config(|active| active.running = config.configuration) {
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
    window.background_tasks = background_tasks;
    Ok(window)
}

/// The settings of a window that shows the page of its dev server; and a note if the server has another address than the
/// configured one, such as the next free port.
fn with_served_address(settings: WindowSettings, tasks: &[Arc<BackgroundTask>]) -> (WindowSettings, Option<String>) {
    let servers = || tasks.iter().filter_map(|task| Some((task, task.address.get()?)));
    let Some((_, address)) = servers().next().filter(|_| settings.kind == Some(WindowKind::Browser)) else {
        return (settings, None);
    };
    let Some(configured) = &settings.url else {
        return (WindowSettings { url: Some(address.clone()), ..settings }, None);
    };
    let port = find_addresses(configured).first().map(|it| it.port);
    let is_served = |port: u16| tasks.iter().any(|task| task.is_listening_on(port));
    if port.is_none_or(is_served) {
        return (settings, None);
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

/// Writes what a new supervisor needs to find a refreshed window again, as [`record_launch`] did before its launch. Errors
/// are returned as notes: the window runs all the same.
fn save_refresh(context: &WindowContext, session: &WindowSession, baseline: &FileSnapshot) -> Vec<String> {
    let saved = baseline.save(&baseline_file_of(&context.paths.state, &session.launch_id));
    let mut notes: Vec<String> = saved.err().map(|error| error.to_string()).into_iter().collect();
    notes.extend(save_session_files(context, session));
    log_warnings(notes)
}

fn log_warnings(notes: Vec<String>) -> Vec<String> {
    for note in &notes {
        warn!("{note}");
    }
    notes
}

/// Writes both session files; returns the errors.
pub(super) fn save_session_files(context: &WindowContext, session: &WindowSession) -> Vec<String> {
    let [workspace, state] = session_roots(context);
    let saved = [session_file::save_session(workspace, session), session_file::save_session_copy(state, session)];
    saved.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect()
}

/// Closes the window, kills all its processes, and removes its session files.
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
    remove_session_files(context);
    stopped.map(|_| ())
}

/// Kills the remaining processes of a window that has exited, and removes its scratch folder.
pub async fn clean_up_after_exit(context: &WindowContext, window: &LiveWindow) {
    if let Err(error) = cleanup::clean_up_launch(&window.session.launch_id, &context.paths.state).await {
        warn!("{error}");
    }
}

/// Removes the files of earlier launches from the state folder, before the launch `launch_id`.
fn remove_older_launches(context: &WindowContext, launch_id: &str) {
    let Ok(entries) = fs::read_dir(&context.paths.state) else { return };
    for entry in entries.filter_map(std::result::Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(launch_id) {
            continue;
        }
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
