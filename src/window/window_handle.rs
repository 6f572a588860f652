//! The handle to the window: start, stop, restart, status and changed files.
//!
//! Clones share the window; the actor ends when the last one is dropped. Page operations first bring the window up to
//! date: [`Window::refresh_if_stale`].

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_changes::{ChangeReport, ChangeTracker, PathExplanation};
use tether_process::ResourceUsage;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::warn;

use super::actor::WindowActor;
use super::caller::{ActorMessage, Caller, CommandOrigin, OperationOutcome};
use super::config_selection::ConfigSelection;
use super::context::{PublishedState, WindowContext, WindowPaths};
use super::live_window::LiveWindow;
use super::operations::wait_for_stopped_tasks;
use super::running_calls::RunningCallGuard;
use super::search::{self, unverified_error};
use super::server_updates;
use super::state::{WindowInput, WindowPhase};
use crate::config::{ActiveConfig, WindowConfig, WindowKind, trust::WorkspaceCommands};
use crate::tasks::task_runner::TaskQueue;
use crate::vocabulary::RebuildPolicy;

/// The most refreshes of one page operation: a user who saves continuously must not delay it forever.
const MAX_RELAUNCHES: usize = 3;
/// The window is unresponsive if its page does not respond to a ping within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

impl RebuildPolicy {
    fn command_origin(self) -> CommandOrigin {
        if self == RebuildPolicy::Always { CommandOrigin::RequestedBuild } else { CommandOrigin::Requested }
    }
}

/// The state of the window, its files and its page.
pub struct WindowInspection {
    pub published: PublishedState,
    /// `None` without a window, or when the files could not be compared (`notes` has the error).
    pub check: Option<ChangeReport>,
    /// Whether the page responds; `true` without a window.
    pub responsive: bool,
    pub notes: Vec<String>,
}

/// The changed files.
pub struct FileChanges {
    /// `None` without a window.
    pub check: Option<ChangeReport>,
    /// Errors of reading or watching the files.
    pub problems: Vec<String>,
    pub generation: u64,
}

/// The relaunch of a window that an operation found stale.
#[derive(Clone, Debug)]
pub struct StaleRefresh {
    /// The newest changed file.
    pub because: String,
    pub outcome: OperationOutcome,
}

/// A window that is up to date, or that must not be replaced now.
pub(super) struct FreshWindow {
    pub window: Arc<LiveWindow>,
    pub generation: u64,
    pub refreshed: Option<StaleRefresh>,
    /// Why the window is stale all the same; or how its dev server has brought it up to date.
    pub stale_note: Option<String>,
}

/// A handle to the window of a workspace.
#[derive(Clone)]
pub struct Window {
    pub(super) context: Arc<WindowContext>,
    pub(super) actor: mpsc::Sender<ActorMessage>,
}

impl Window {
    /// A handle, and the actor's future, to be spawned by the caller. The actor first searches for the window of an
    /// earlier supervisor. `queue` is that of the workspace.
    pub fn open(paths: WindowPaths, queue: Arc<TaskQueue>) -> (Window, impl Future<Output = ()> + Send + 'static) {
        tether_changes::remove_left_fences(&paths.state);
        let context = Arc::new(WindowContext::new(paths, queue));
        let (actor, inbox) = mpsc::channel(64);
        let task = WindowActor::new(Arc::clone(&context), inbox).drive();
        (Window { context, actor }, task)
    }

    /// Prevents automatic replacement of the window while `blocker` returns a reason; only the first one is kept.
    pub fn block_replacement_while(&self, blocker: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let _ = self.context.replacement_blocker.set(Box::new(blocker));
    }

    /// The published state and its changes.
    pub fn watch(&self) -> watch::Receiver<PublishedState> {
        self.context.published.subscribe()
    }

    /// Adds a call that uses the window until the guard is dropped, for the report of an exit meanwhile.
    pub fn track_call(&self, call: String) -> RunningCallGuard<'_> {
        self.context.running_calls.track(call)
    }

    /// Inspects the window, its files and its page. Never refreshes, and does not wait for a build.
    pub async fn inspect(&self) -> WindowInspection {
        let published = self.wait_for_search().await;
        let Some(window) = published.window.clone() else {
            let pause = self.context.crash_loop().remaining_pause(Instant::now());
            let pause = pause.map(|pause| self.describe_pause(pause));
            let unverified = published.unverified.clone().map(|why| unverified_error(why).to_string());
            let notes = pause.into_iter().chain(unverified).collect();
            return WindowInspection { published, check: None, responsive: true, notes };
        };
        let (check, responsive) = tokio::join!(self.compare_files(), window.is_responsive(PING_TIMEOUT));
        if !responsive && window.is_ending().await {
            self.wait_until_replaced(&window).await;
            return Box::pin(self.inspect()).await;
        }
        let mut notes: Vec<String> = window.background_tasks().iter().filter_map(|it| it.describe_exit()).collect();
        notes.extend(window.describe_unloaded_extensions());
        notes.extend(window.describe_server_error());
        notes.extend(self.context.history.describe_settings());
        let check = check.map_err(|error| notes.push(error.to_string())).ok();
        if let Some(check) = check.as_ref().filter(|check| check.stale)
            && server_updates::is_updated_by_server(self, &window, check).await
        {
            notes.push(
                "its dev server updates the page: the next operation on it waits for that, and refreshes nothing"
                    .into(),
            );
        }
        WindowInspection { published, check, responsive, notes }
    }

    /// Measures what the processes of a running window use; see [`tether_process::ResourceMonitor`].
    pub async fn measure_resources(&self) -> Option<ResourceUsage> {
        let window = self.wait_for_search().await.window?;
        window.measure_resources().await
    }

    /// Waits until the search for the window of an earlier supervisor has ended, and its other processes are killed.
    pub async fn wait_for_search(&self) -> PublishedState {
        let mut watch = self.watch();
        // The sender is in `context`, so it is not dropped here.
        let found = watch.wait_for(|published| published.search_done).await;
        found.map_or_else(|_| PublishedState::default(), |published| published.clone())
    }

    /// Waits until this window, whose process has exited, is no longer the published one.
    async fn wait_until_replaced(&self, window: &Arc<LiveWindow>) {
        let is_other =
            |published: &PublishedState| !published.window.as_ref().is_some_and(|it| Arc::ptr_eq(it, window));
        // The sender is in `context`, so it is not dropped here.
        let _ = self.watch().wait_for(is_other).await;
    }

    pub(super) fn tracker(&self) -> Result<Arc<ChangeTracker>> {
        self.context.baseline_tracker()
    }

    pub(super) async fn compare_files(&self) -> Result<ChangeReport> {
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window.filter(|_| !self.context.has_baseline()) {
            // The window was found again while the files could not be read.
            search::restore_baseline(&self.context, &window).await?;
        }
        self.tracker()?.compare_with_baseline().await
    }

    /// Starts the window, unless it runs. `config` selects a launch configuration until the window is stopped.
    pub async fn start(
        &self,
        config: Option<&str>,
        rebuild: RebuildPolicy,
        caller: &dyn Caller,
    ) -> Result<OperationOutcome> {
        // The search may select a configuration.
        self.wait_for_search().await;
        let selection = config.map(|name| self.select_config(name)).transpose()?;
        let build = rebuild != RebuildPolicy::Never && self.has_build()?;
        self.search_again_if_unverified(caller).await?;
        self.check_crash_loop(rebuild).await?;
        // A running window is replaced for `always`, and for another configuration.
        let is_running = self.wait_for_search().await.window.is_some();
        let replace = rebuild == RebuildPolicy::Always
            || (config.is_some() && self.is_other_config_selected())
            || self.is_page_closed().await;
        let origin = rebuild.command_origin();
        let selection = selection.as_ref();
        let outcome = match is_running && replace {
            true => self.run_restart(build, (origin, selection), caller).await?,
            false => self.run_command(WindowInput::Start { build }, (origin, selection), caller).await?,
        };
        // The command may have joined an operation that began before the configuration was selected.
        match config.is_some() && self.is_other_config_selected() {
            true => self.run_restart(build, (CommandOrigin::Requested, selection), caller).await,
            false => Ok(outcome),
        }
    }

    /// Whether the page of a running browser was closed: the browser itself may run on without one.
    async fn is_page_closed(&self) -> bool {
        let Some(window) = self.context.published.borrow().window.clone() else { return false };
        let kind = window.launched_from.as_ref().and_then(|config| config.window.kind);
        let shows_page = !matches!(kind, Some(WindowKind::Node | WindowKind::Command));
        match window.page().await {
            Ok(page) => shows_page && page.has_no_page().await,
            Err(_) => false,
        }
    }

    /// Selects a configuration that exists, and whose commands the user trusts, until the start has failed.
    fn select_config(&self, name: &str) -> Result<Arc<ConfigSelection>> {
        let config = WindowConfig::resolve(&self.context.paths.workspace, Some(name))?;
        WorkspaceCommands::of_window(&config).require_consent()?;
        ConfigSelection::select(&self.context, name)
    }

    fn is_other_config_selected(&self) -> bool {
        let active = self.context.active_config();
        active.selected != active.running
    }

    /// Replaces the window by a new one.
    pub async fn restart(&self, rebuild: RebuildPolicy, caller: &dyn Caller) -> Result<OperationOutcome> {
        self.search_again_if_unverified(caller).await?;
        let published = self.wait_for_search().await;
        self.check_crash_loop(rebuild).await?;
        let build = self.has_build()?
            && match rebuild {
                RebuildPolicy::Always => true,
                RebuildPolicy::Never => false,
                RebuildPolicy::Auto => match &published.window {
                    None => true,
                    Some(window) => {
                        self.compare_files().await?.stale
                            || published.last_build.is_some_and(|build| !build.ok)
                            || window.background_tasks().iter().any(|task| !task.process.is_alive())
                    }
                },
            };
        self.run_restart(build, (rebuild.command_origin(), None), caller).await
    }

    /// Searches again for a window of an earlier supervisor that could not be verified; an error if it still cannot be.
    async fn search_again_if_unverified(&self, caller: &dyn Caller) -> Result<()> {
        if self.wait_for_search().await.phase == WindowPhase::Unverified {
            self.run_command(WindowInput::Search, (CommandOrigin::Requested, None), caller).await?;
        }
        Ok(())
    }

    /// Closes the window and all its processes, and forgets the selected configuration.
    pub async fn stop(&self, caller: &dyn Caller) -> Result<OperationOutcome> {
        self.wait_for_search().await;
        let outcome = self.run_command(WindowInput::Stop, (CommandOrigin::Requested, None), caller).await?;
        // Those of a window that had exited before.
        wait_for_stopped_tasks(&self.context).await?;
        self.context.update_active_config(|active| *active = ActiveConfig::default())?;
        Ok(outcome)
    }

    /// An error while a window in a crash loop must not be started; a changed file or `always` ends the pause.
    async fn check_crash_loop(&self, rebuild: RebuildPolicy) -> Result<()> {
        let published = self.wait_for_search().await;
        let pause = self.context.crash_loop().remaining_pause(Instant::now());
        let Some(pause) = pause.filter(|_| published.window.is_none()) else { return Ok(()) };
        if rebuild == RebuildPolicy::Always || self.compare_files().await.is_ok_and(|check| check.stale) {
            self.context.crash_loop().reset();
            return Ok(());
        }
        Err(because_of_exit(Error::other(self.describe_pause(pause)), &published)
            .hint("change what makes it end: once a tracked file has changed, it may be started")
            .hint("`tether start --rebuild always` starts it all the same"))
    }

    fn describe_pause(&self, pause: Duration) -> String {
        let (count, seconds) = (self.context.crash_loop().count(), pause.as_secs() + 1);
        format!("the window is not started for another {seconds} s: it crashed {count} times within a minute")
    }

    fn has_build(&self) -> Result<bool> {
        Ok(!self.context.read_config()?.build.is_empty())
    }

    /// The window with the files as of now: rebuilt and refreshed if it is stale, unless replacement is blocked.
    pub(super) async fn refresh_if_stale(&self, caller: &dyn Caller) -> Result<FreshWindow> {
        let (mut refreshed, mut refreshes) = (None, 0);
        loop {
            self.search_again_if_unverified(caller).await?;
            let published = self.wait_until_idle(caller).await;
            let window = published.window.clone().ok_or_else(|| no_window_error(&published))?;
            let mut fresh = FreshWindow { window, generation: published.generation, refreshed, stale_note: None };
            // The files change faster than they can be built: the newest window is used, and its status is stale.
            if refreshes > MAX_RELAUNCHES {
                return Ok(fresh);
            }
            let check = self.compare_files().await?;
            let Some(newest) = check.newest.clone().filter(|_| check.stale) else { return Ok(fresh) };
            let because = newest.to_string();
            let held_note = |why: &str| format!("stale: {because}, and the window was not refreshed, since {why}");
            if server_updates::is_updated_by_server(self, &fresh.window, &check).await
                && self.context.replacement_blocker().is_none()
            {
                fresh.stale_note = Some(server_updates::follow_dev_server(self, &fresh.window, &because).await?);
                return Ok(fresh);
            }
            if let Some(why) = self.context.replacement_blocker() {
                fresh.stale_note = Some(held_note(&why));
                return Ok(fresh);
            }
            let input = WindowInput::Restart { build: self.has_build()? };
            *lock(&self.context.refresh_cause) = Some(Arc::new(check));
            let outcome = self.run_command(input, (CommandOrigin::Automatic, None), caller).await?;
            if let Some(why) = outcome.held {
                fresh.stale_note = Some(format!("{}; the finished build is kept", held_note(&why)));
                return Ok(fresh);
            }
            refreshed = Some(StaleRefresh { because, outcome });
            refreshes += 1;
        }
    }

    /// Builds and refreshes a stale window, as an operation that uses it does. Returns why it is stale all the same, or how its dev
    /// server has brought it up to date. Errors: the build or the refresh fails; there is no window.
    pub async fn refresh_after_save(&self, caller: &dyn Caller) -> Result<Option<String>> {
        Ok(self.refresh_if_stale(caller).await?.stale_note)
    }

    /// Whether the window must not be replaced now.
    pub fn is_replacement_blocked(&self) -> bool {
        self.context.replacement_blocker().is_some()
    }

    /// Waits until no operation runs.
    async fn wait_until_idle(&self, caller: &dyn Caller) -> PublishedState {
        loop {
            let published = self.context.published.borrow().clone();
            if !published.phase.is_busy() || self.actor.is_closed() {
                return published;
            }
            // Joins the operation, so that it has a caller; its failure is none of this one.
            let _ = self.run_command(WindowInput::Search, (CommandOrigin::Automatic, None), caller).await;
        }
    }

    /// The files that changed since the start of the build that the window runs.
    pub async fn inspect_changes(&self) -> Result<FileChanges> {
        let published = self.wait_for_search().await;
        let check = match published.window {
            Some(_) => Some(self.compare_files().await?),
            None => self.tracker()?.take_snapshot().await.map(|_| None)?,
        };
        let problems = self.tracker()?.problems().iter().map(ToString::to_string).collect();
        Ok(FileChanges { check, problems, generation: published.generation })
    }

    /// Whether a file was written since this time, epoch milliseconds; also if that cannot be found out. Removed files are not
    /// noticed.
    pub async fn has_changed_since(&self, since_ms: u64) -> bool {
        let Ok(tracker) = self.tracker() else { return true };
        let Ok(now) = tracker.take_snapshot().await else { return true };
        !now.changed_paths(&now.as_of(since_ms)).is_empty()
    }

    /// Which change makes the window stale: "src/a.ts was modified". `None`: it is not, or that is not known.
    pub async fn find_stale_cause(&self) -> Option<String> {
        let check = self.inspect_changes().await.ok()?.check?;
        check.newest.filter(|_| check.stale).map(|newest| newest.to_string())
    }

    /// Why a path (absolute, or relative to the workspace) is tracked or ignored.
    pub async fn explain_path(&self, path: &Path) -> Result<PathExplanation> {
        self.tracker()?.explain_path(&self.context.paths.workspace.join(path)).await
    }

    /// Before the supervisor exits: waits for a running launch or close, no longer than `deadline`. The next supervisor
    /// finishes a replacement that is not done by then.
    pub async fn finish_operations(&self, deadline: Duration) {
        let (done, finished) = oneshot::channel();
        if self.actor.send(ActorMessage::Finish(done)).await.is_err() {
            return;
        }
        if tokio::time::timeout(deadline, finished).await.is_err() {
            warn!("the operation on the window is not done within {} s; it is aborted", deadline.as_secs());
        }
    }

    /// Closes the CDP connection; the window keeps running. Waits for the clean-ups after windows that exited.
    pub async fn disconnect(&self) {
        self.context.exit_cleanups.wait().await;
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window {
            window.disconnect().await;
        }
    }
}

fn no_window_error(published: &PublishedState) -> Error {
    let doing = if published.exit.is_some() { "the window has exited" } else { "there is no window" };
    because_of_exit(Error::new(ErrorKind::NotFound, doing), published).hint("`tether start` starts it")
}

/// Adds how the last window exited, unless it was stopped.
fn because_of_exit(error: Error, published: &PublishedState) -> Error {
    match &published.exit {
        Some(exit) => error.because(exit.describe()),
        None => error,
    }
}
