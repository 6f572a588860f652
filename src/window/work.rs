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

use super::build::{Build, Built, Rounds};
use super::launch::{self, Launched, Plan, output_of};
use super::session_file::{self, Session};
use super::shared::Shared;
use super::up::Up;
use super::{identity, stop};
use crate::changes::{ChangeTracker, FileSnapshot};
use crate::clock::now_ms;
use crate::config::{Recipe, trust::Commands};
use crate::error::{Context, Error, Result};
use crate::process;

/// What a swept process gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// Looks for the window of an earlier supervisor. Whatever speaks against it is logged, and the file set aside.
pub async fn reconnect(shared: &Shared) -> Option<Up> {
    let found = find(shared).await;
    let kept = found.as_ref().map(|up| up.facts.launch_id.clone());
    sweep_leftovers(shared, kept.as_deref()).await;
    found
}

async fn find(shared: &Shared) -> Option<Up> {
    for root in session_roots(shared) {
        if let Some(up) = find_in(shared, root).await {
            // What was lost or set aside elsewhere is there again.
            remember_session(shared, &up.facts);
            return Some(up);
        }
    }
    None
}

/// Where `session.json` is: in the workspace, as everybody expects, and in the state folder.
fn session_roots(shared: &Shared) -> [&Path; 2] {
    [&shared.home.workspace, &shared.home.state]
}

async fn find_in(shared: &Shared, root: &Path) -> Option<Up> {
    let home = &shared.home;
    let session = match session_file::load(root) {
        Ok(session) => session?,
        Err(unusable) => return set_aside(root, unusable),
    };
    // A copied workspace brings the session of the other one along.
    if session.host_bridge_path.file_name() != home.bridge.file_name() {
        return set_aside(root, "it is the session of another workspace");
    }
    let proof = identity::prove(&session).await;
    let output = output_of(&home.state, &session.launch_id);
    let mut up = match Up::found(session, proof, output, Arc::clone(&shared.records)).await {
        Ok(up) => up,
        Err(doubt) => return set_aside(root, doubt),
    };
    match compare_again(shared, &up).await {
        Ok(()) => info!(pid = up.facts.electron_pid, "reconnected"),
        Err(error) => up.notes.push(format!("its files cannot be compared: {error}")),
    }
    Some(up)
}

fn set_aside(root: &Path, reason: impl std::fmt::Display) -> Option<Up> {
    match session_file::set_aside(root, reason) {
        Ok(line) => warn!("{line}"),
        Err(error) => warn!("{error}"),
    }
    None
}

/// Compares with the files that the found window was built from; without its snapshot, whatever is newer than its start
/// counts as changed.
pub async fn compare_again(shared: &Shared, up: &Up) -> Result<()> {
    let tracker = shared.tracker(&shared.watching()?)?;
    let file = baseline_file(shared, &up.facts.launch_id);
    let kept = FileSnapshot::load(&file, tracker.root()).unwrap_or_else(|error| {
        warn!("{error}");
        None
    });
    let baseline = match kept {
        Some(snapshot) => Arc::new(snapshot),
        None => Arc::new(tracker.take_snapshot().await?.as_of(up.facts.debug_window_started_at)),
    };
    shared.compare_with(&tracker, baseline).await;
    Ok(())
}

/// Ends what a supervisor that was killed in the middle of a launch, or of a build, has left behind.
async fn sweep_leftovers(shared: &Shared, kept: Option<&str>) {
    if let Err(error) = stop::clean_up_abandoned(&shared.home.state, kept).await {
        warn!("{error}");
    }
    match process::sweep(&shared.home.build_mark, GRACE).await {
        Ok(ended) if ended.is_empty() => {}
        Ok(ended) => info!("ended a build that was left behind: {ended:?}"),
        Err(error) => warn!("cannot look for a build that was left behind: {error}"),
    }
}

/// Builds, when the user trusts the workspace's commands.
pub async fn build(shared: &Shared, rounds: &mut Rounds) -> Result<Built> {
    loop {
        let recipe = trusted(shared)?;
        let tracker = tracker(shared, &recipe)?;
        let build = Build { recipe: &recipe, tracker: &tracker, mark: &shared.home.build_mark };
        let still = || trusted(shared).map(|now| now.lines() == recipe.lines());
        if let Some(built) = build.run(rounds, still, &|doing| shared.tell(doing)).await? {
            return Ok(built);
        }
    }
}

/// What to run, as the workspace's files say now, when there is a window in it and the user trusts it.
pub fn trusted(shared: &Shared) -> Result<Recipe> {
    let recipe = shared.recipe()?;
    recipe.check_window()?;
    Commands::of(&recipe).check()?;
    // Only now: the environment is the user's own.
    Ok(recipe.with_environment())
}

fn tracker(shared: &Shared, recipe: &Recipe) -> Result<Arc<ChangeTracker>> {
    shared.tracker(&(recipe.watch.clone(), recipe.generated.clone()))
}

/// Why there is no new window.
pub struct NotSwapped {
    pub error: Error,
    /// The old window, when it failed before that was touched.
    pub kept: Option<Arc<Up>>,
}

impl From<Error> for NotSwapped {
    fn from(error: Error) -> Self {
        NotSwapped { error, kept: None }
    }
}

/// Closes the old window, if there is one, and launches a new one. All that can fail beforehand does so before.
pub async fn swap(shared: &Shared, old: Option<Arc<Up>>, built: Option<Built>) -> Result<Up, NotSwapped> {
    let (recipe, tracker, baseline) = match prepare(shared, old.as_deref(), built).await {
        Ok(ready) => ready,
        Err(error) => return Err(NotSwapped { error, kept: old }),
    };
    if old.is_some() {
        shared.tell("closing the old window");
        close(shared, old).await?;
    }
    Ok(launch(shared, recipe, &tracker, baseline).await?)
}

/// What to launch, and from which files it was built: a window that replaces another one without a build runs what that
/// one ran.
async fn prepare(
    shared: &Shared,
    old: Option<&Up>,
    built: Option<Built>,
) -> Result<(Recipe, Arc<ChangeTracker>, Arc<FileSnapshot>)> {
    if let Some(Built { recipe, baseline, .. }) = built {
        let tracker = tracker(shared, &recipe)?;
        return Ok((*recipe, tracker, baseline));
    }
    let recipe = trusted(shared)?;
    let tracker = tracker(shared, &recipe)?;
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

async fn launch(
    shared: &Shared,
    recipe: Recipe,
    tracker: &Arc<ChangeTracker>,
    baseline: Arc<FileSnapshot>,
) -> Result<Up> {
    remove_older(shared);
    let launch_id = new_launch_id()?;
    let plan = Plan {
        settings: recipe.window,
        workspace: shared.home.workspace.clone(),
        state_dir: shared.home.state.clone(),
        launch_id,
    };
    shared.tell("launching");
    let launched = launch::launch(&plan, |doing| shared.tell(doing)).await?;
    let facts = facts(shared, &plan, &launched);
    let mut notes = remember(shared, &facts, &baseline);
    notes.extend(recipe.notes);
    if let Err(error) = shared.choose(|choice| choice.running = recipe.configuration) {
        notes.push(error.to_string());
    }
    shared.compare_with(tracker, baseline).await;
    Ok(Up::launched(launched, facts, notes, Arc::clone(&shared.records)).await)
}

fn facts(shared: &Shared, plan: &Plan, launched: &Launched) -> Session {
    Session {
        version: session_file::VERSION,
        cdp_port: launched.cdp_port,
        electron_pid: launched.process.pid(),
        inspector_port: launched.inspector_port,
        host_bridge_path: shared.home.bridge.clone(),
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
fn remember(shared: &Shared, facts: &Session, baseline: &FileSnapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = baseline.save(&baseline_file(shared, &facts.launch_id)) {
        notes.push(error.to_string());
    }
    notes.extend(remember_session(shared, facts));
    for note in &notes {
        warn!("{note}");
    }
    notes
}

/// Writes `session.json` wherever it belongs; what failed.
fn remember_session(shared: &Shared, facts: &Session) -> Vec<String> {
    let saved = session_roots(shared).into_iter().map(|root| session_file::save(root, facts));
    saved.filter_map(Result::err).map(|error| error.to_string()).collect()
}

/// Closes the window and everything that belongs to it, and forgets it.
pub async fn close(shared: &Shared, up: Option<Arc<Up>>) -> Result<()> {
    let Some(up) = up else {
        // A launch was ended in the middle: what it had started is killed already, but not waited for.
        forget(shared);
        return stop::clean_up_abandoned(&shared.home.state, None).await;
    };
    shared.tell("closing the window");
    let launch_id = &up.facts.launch_id;
    let stopped = stop::stop(&up.process, up.ask_to_close(), launch_id, &shared.home.state, stop::GRACE).await;
    forget(shared);
    stopped.map(|_| ())
}

/// Tidies up after a window that ended by itself.
pub async fn mourn(shared: &Shared, up: &Up) {
    if let Err(error) = stop::clean_up(&up.facts.launch_id, &shared.home.state).await {
        warn!("{error}");
    }
}

/// Removes what earlier launches left in the state folder, now that there is to be a new one.
fn remove_older(shared: &Shared) {
    let Ok(entries) = fs::read_dir(&shared.home.state) else { return };
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
pub fn forget(shared: &Shared) {
    for root in session_roots(shared) {
        if let Err(error) = session_file::remove(root) {
            warn!("{error}");
        }
    }
}

fn baseline_file(shared: &Shared, launch_id: &str) -> PathBuf {
    shared.home.state.join(format!("built-{launch_id}"))
}

/// 128 random bits in hex.
fn new_launch_id() -> Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing(|| "cannot draw a launch id".into())?;
    Ok(hex::encode(bytes))
}
