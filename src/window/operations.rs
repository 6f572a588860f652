//! The long works of the window, one function each: find it again, build it, swap it, close it, bury it.
//!
//! They run beside the actor and report to it. Each leaves the files as it leaves the processes: `session.json`, in the
//! workspace and again in the state folder (a workspace may be read-only, or cleaned by git), and `built-<launch id>`
//! beside it, the snapshot of the files that the window was built from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::build::{Build, BuildRounds, CompletedBuild};
use super::context::WindowContext;
use super::launch::{self, LaunchedWindow, WindowLaunchPlan, output_file_of};
use super::live_window::LiveWindow;
use super::session_file::{self, WindowSession};
use super::{cleanup, identity};
use crate::changes::{ChangeTracker, FileSnapshot};
use crate::clock::now_ms;
use crate::config::{WindowConfig, trust::WorkspaceCommands};
use crate::error::{Error, ErrorContext, Result};
use crate::process;

/// What a swept process gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// Looks for the window of an earlier supervisor. Whatever speaks against it is logged, and the file set aside.
pub async fn reconnect_window(shared: &WindowContext) -> Option<LiveWindow> {
    let found = find_window(shared).await;
    let kept = found.as_ref().map(|up| up.facts.launch_id.clone());
    sweep_leftovers(shared, kept.as_deref()).await;
    found
}

async fn find_window(shared: &WindowContext) -> Option<LiveWindow> {
    for root in session_roots(shared) {
        if let Some(up) = find_window_in(shared, root).await {
            // What was lost or set aside elsewhere is there again.
            save_session_files(shared, &up.facts);
            return Some(up);
        }
    }
    None
}

/// Where `session.json` is: in the workspace, as everybody expects, and in the state folder.
fn session_roots(shared: &WindowContext) -> [&Path; 2] {
    [&shared.paths.workspace, &shared.paths.state]
}

async fn find_window_in(shared: &WindowContext, root: &Path) -> Option<LiveWindow> {
    let home = &shared.paths;
    let session = match session_file::load_session(root) {
        Ok(session) => session?,
        Err(unusable) => return set_aside(root, unusable),
    };
    // A copied workspace brings the session of the other one along.
    if session.host_bridge_path.file_name() != home.bridge.file_name() {
        return set_aside(root, "it is the session of another workspace");
    }
    let proof = identity::verify_window(&session).await;
    let output = output_file_of(&home.state, &session.launch_id);
    let mut up = match LiveWindow::from_session(session, proof, output, Arc::clone(&shared.records)).await {
        Ok(up) => up,
        Err(doubt) => return set_aside(root, doubt),
    };
    match restore_baseline(shared, &up).await {
        Ok(()) => info!(pid = up.facts.electron_pid, "reconnected"),
        Err(error) => up.notes.push(format!("its files cannot be compared: {error}")),
    }
    Some(up)
}

fn set_aside(root: &Path, reason: impl std::fmt::Display) -> Option<LiveWindow> {
    match session_file::set_aside(root, reason) {
        Ok(line) => warn!("{line}"),
        Err(error) => warn!("{error}"),
    }
    None
}

/// Compares with the files that the found window was built from; without its snapshot, whatever is newer than its start
/// counts as changed.
pub async fn restore_baseline(shared: &WindowContext, up: &LiveWindow) -> Result<()> {
    let tracker = shared.tracker(&shared.read_tracking_config()?)?;
    let file = baseline_file(shared, &up.facts.launch_id);
    let kept = FileSnapshot::load(&file, tracker.root()).unwrap_or_else(|error| {
        warn!("{error}");
        None
    });
    let baseline = match kept {
        Some(snapshot) => Arc::new(snapshot),
        None => Arc::new(tracker.take_snapshot().await?.as_of(up.facts.debug_window_started_at)),
    };
    shared.set_baseline(&tracker, baseline).await;
    Ok(())
}

/// StepCompletion what a supervisor that was killed in the middle of a launch, or of a build, has left behind.
async fn sweep_leftovers(shared: &WindowContext, kept: Option<&str>) {
    if let Err(error) = cleanup::clean_up_abandoned(&shared.paths.state, kept).await {
        warn!("{error}");
    }
    match process::sweep_launch(&shared.paths.build_launch_id, GRACE).await {
        Ok(ended) if ended.is_empty() => {}
        Ok(ended) => info!("ended a build that was left behind: {ended:?}"),
        Err(error) => warn!("cannot look for a build that was left behind: {error}"),
    }
}

/// Builds, when the user trusts the workspace's commands.
pub async fn build_window(shared: &WindowContext, rounds: &mut BuildRounds) -> Result<CompletedBuild> {
    loop {
        let recipe = read_trusted_recipe(shared)?;
        let tracker = tracker_of(shared, &recipe)?;
        let build = Build { recipe: &recipe, tracker: &tracker, launch_id: &shared.paths.build_launch_id };
        let still = || read_trusted_recipe(shared).map(|now| now.consent_lines() == recipe.consent_lines());
        if let Some(built) = build.run(rounds, still, &|doing| shared.report_progress(doing)).await? {
            return Ok(built);
        }
    }
}

/// What to run, as the workspace's files say now, when there is a window in it and the user trusts it.
pub fn read_trusted_recipe(shared: &WindowContext) -> Result<WindowConfig> {
    let recipe = shared.read_recipe()?;
    recipe.check_window()?;
    WorkspaceCommands::of_window(&recipe).require_consent()?;
    // Only now: the environment is the user's own.
    Ok(recipe.with_environment_values())
}

fn tracker_of(shared: &WindowContext, recipe: &WindowConfig) -> Result<Arc<ChangeTracker>> {
    shared.tracker(&(recipe.watch.clone(), recipe.build_outputs.clone()))
}

/// Why there is no new window.
pub struct ReplaceError {
    pub error: Error,
    /// The old window, when it failed before that was touched.
    pub kept: Option<Arc<LiveWindow>>,
}

impl From<Error> for ReplaceError {
    fn from(error: Error) -> Self {
        ReplaceError { error, kept: None }
    }
}

/// Closes the old window, if there is one, and launches a new one. All that can fail beforehand does so before.
pub async fn replace_window(
    shared: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    built: Option<CompletedBuild>,
) -> Result<LiveWindow, ReplaceError> {
    let (recipe, tracker, baseline) = match prepare_launch(shared, old.as_deref(), built).await {
        Ok(ready) => ready,
        Err(error) => return Err(ReplaceError { error, kept: old }),
    };
    if old.is_some() {
        shared.report_progress("closing the old window");
        close_window(shared, old).await?;
    }
    Ok(launch_new_window(shared, recipe, &tracker, baseline).await?)
}

/// What to launch, and from which files it was built: a window that replaces another one without a build runs what that
/// one ran.
async fn prepare_launch(
    shared: &WindowContext,
    old: Option<&LiveWindow>,
    built: Option<CompletedBuild>,
) -> Result<(WindowConfig, Arc<ChangeTracker>, Arc<FileSnapshot>)> {
    if let Some(CompletedBuild { recipe, baseline, .. }) = built {
        let tracker = tracker_of(shared, &recipe)?;
        return Ok((*recipe, tracker, baseline));
    }
    let recipe = read_trusted_recipe(shared)?;
    let tracker = tracker_of(shared, &recipe)?;
    let kept = old.filter(|_| !recipe.build.is_empty()).and_then(|old| {
        let file = baseline_file(shared, &old.facts.launch_id);
        FileSnapshot::load(&file, tracker.root()).unwrap_or_default()
    });
    let baseline = match kept {
        Some(kept) => Arc::new(kept),
        None => tracker.take_snapshot().await?,
    };
    Ok((recipe, tracker, baseline))
}

async fn launch_new_window(
    shared: &WindowContext,
    recipe: WindowConfig,
    tracker: &Arc<ChangeTracker>,
    baseline: Arc<FileSnapshot>,
) -> Result<LiveWindow> {
    remove_older_launches(shared);
    let launch_id = new_launch_id()?;
    let plan = WindowLaunchPlan {
        settings: recipe.window,
        workspace: shared.paths.workspace.clone(),
        state_dir: shared.paths.state.clone(),
        launch_id,
    };
    shared.report_progress("launching");
    let launched = launch::launch_window(&plan, |doing| shared.report_progress(doing)).await?;
    let facts = new_session(shared, &plan, &launched);
    let mut notes = save_launch(shared, &facts, &baseline);
    notes.extend(recipe.notes);
    if let Err(error) = shared.update_choice(|choice| choice.running = recipe.configuration) {
        notes.push(error.to_string());
    }
    shared.set_baseline(tracker, baseline).await;
    Ok(LiveWindow::launched(launched, facts, notes, Arc::clone(&shared.records)).await)
}

fn new_session(shared: &WindowContext, plan: &WindowLaunchPlan, launched: &LaunchedWindow) -> WindowSession {
    WindowSession {
        version: session_file::VERSION,
        cdp_port: launched.cdp_port,
        electron_pid: launched.process.pid(),
        inspector_port: launched.inspector_port,
        host_bridge_path: shared.paths.bridge.clone(),
        user_data_dir: launched.user_data_dir.clone(),
        debug_window_started_at: launched.started_at_ms,
        persisted_at: now_ms(),
        launch_id: plan.launch_id.clone(),
        boot_id: launched.boot_id.clone(),
        pid_start_ticks: launched.process.start_ticks(),
        browser_id: launched.endpoint.browser_id.clone(),
    }
}

/// Writes what a new supervisor needs. A window that cannot be remembered is still a window: what failed is a note.
fn save_launch(shared: &WindowContext, facts: &WindowSession, baseline: &FileSnapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = baseline.save(&baseline_file(shared, &facts.launch_id)) {
        notes.push(error.to_string());
    }
    notes.extend(save_session_files(shared, facts));
    for note in &notes {
        warn!("{note}");
    }
    notes
}

/// Writes `session.json` wherever it belongs; what failed.
fn save_session_files(shared: &WindowContext, facts: &WindowSession) -> Vec<String> {
    let saved = session_roots(shared).into_iter().map(|root| session_file::save_session(root, facts));
    saved.filter_map(Result::err).map(|error| error.to_string()).collect()
}

/// Closes the window and everything that belongs to it, and forgets it.
pub async fn close_window(shared: &WindowContext, up: Option<Arc<LiveWindow>>) -> Result<()> {
    let Some(up) = up else {
        // A launch was ended in the middle: what it had started is killed already, but not waited for.
        remove_session_files(shared);
        return cleanup::clean_up_abandoned(&shared.paths.state, None).await;
    };
    shared.report_progress("closing the window");
    let launch_id = &up.facts.launch_id;
    let stopped =
        cleanup::stop_window(&up.process, up.request_close(), launch_id, &shared.paths.state, cleanup::GRACE).await;
    remove_session_files(shared);
    stopped.map(|_| ())
}

/// Tidies up after a window that ended by itself.
pub async fn clean_up_after_exit(shared: &WindowContext, up: &LiveWindow) {
    if let Err(error) = cleanup::clean_up_launch(&up.facts.launch_id, &shared.paths.state).await {
        warn!("{error}");
    }
}

/// Removes what earlier launches left in the state folder, now that there is to be a new one.
fn remove_older_launches(shared: &WindowContext) {
    let Ok(entries) = fs::read_dir(&shared.paths.state) else { return };
    for entry in entries.filter_map(std::result::Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("output-") || name.starts_with("built-") {
            let _ = fs::remove_file(entry.path());
        } else if name.starts_with("window-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the files that tell of a window. Its output and its snapshot stay until there is a newer one.
pub fn remove_session_files(shared: &WindowContext) {
    for root in session_roots(shared) {
        if let Err(error) = session_file::remove_session(root) {
            warn!("{error}");
        }
    }
}

fn baseline_file(shared: &WindowContext, launch_id: &str) -> PathBuf {
    shared.paths.state.join(format!("built-{launch_id}"))
}

/// 128 random bits in hex.
fn new_launch_id() -> Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing(|| "cannot draw a launch id".into())?;
    Ok(hex::encode(bytes))
}
