//! The handle to the window: start, stop, restart, status and changed files.
//!
//! Clones share the window; the actor ends when the last one is dropped. Page operations first bring the window up to
//! date: [`Window::refresh_if_stale`].

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::actor::WindowActor;
use super::caller::{Caller, CancelGuard};
use super::commands::{ActorMessage, CommandResult, OperationOutcome, WindowCommand};
use super::context::{PublishedState, WindowContext, WindowPaths};
use super::in_flight::InFlightGuard;
use super::live_window::LiveWindow;
use super::operations;
use super::state::WindowInput;
use crate::changes::{ChangeReport, ChangeTracker, FileChange, FileChangeKind, PathExplanation};
use crate::config::{ActiveConfig, WindowConfig, trust::WorkspaceCommands};
use crate::error::{Error, ErrorData, ErrorKind, Result};
use crate::process::ResourceUsage;

/// The most relaunches of one page operation: a user who saves continuously must not delay it forever.
const MAX_RELAUNCHES: usize = 3;
/// The window is unresponsive if its page does not respond to a ping within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// When to build before a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebuildPolicy {
    #[default]
    Auto,
    Always,
    Never,
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
pub struct StaleRelaunch {
    /// The newest changed file.
    pub because: String,
    pub outcome: OperationOutcome,
}

/// A window that is up to date, or that must not be replaced now.
pub(super) struct FreshWindow {
    pub window: Arc<LiveWindow>,
    pub generation: u64,
    pub relaunched: Option<StaleRelaunch>,
    /// Why the window is stale all the same.
    pub stale_note: Option<String>,
}

/// A handle to the window of a workspace.
#[derive(Clone)]
pub struct Window {
    pub(super) context: Arc<WindowContext>,
    actor: mpsc::Sender<ActorMessage>,
}

impl Window {
    /// A handle, and the actor's future, to be spawned by the caller. The actor first searches for the window of an
    /// earlier supervisor.
    pub fn open(paths: WindowPaths) -> (Window, impl Future<Output = ()> + Send + 'static) {
        let context = Arc::new(WindowContext::new(paths));
        let (actor, inbox) = mpsc::channel(64);
        let task = WindowActor::new(Arc::clone(&context), inbox).drive();
        (Window { context, actor }, task)
    }

    /// Prevents automatic replacement of the window while `blocker` returns a reason.
    pub fn block_replacement_while(&self, blocker: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.context.block_replacement_while(Box::new(blocker));
    }

    /// The published state and its changes.
    pub fn watch(&self) -> watch::Receiver<PublishedState> {
        self.context.published.subscribe()
    }

    /// Adds a call that uses the window until the guard is dropped, for the report of an exit meanwhile.
    pub fn track_call(&self, call: String) -> InFlightGuard<'_> {
        self.context.in_flight.track(call)
    }

    /// Inspects the window, its files and its page. Never relaunches, and does not wait for a build.
    pub async fn inspect(&self) -> WindowInspection {
        let published = self.wait_for_search().await;
        let Some(window) = published.window.clone() else {
            let pause = self.context.crash_loop().remaining_pause(Instant::now());
            let notes = pause.map(|pause| self.describe_pause(pause)).into_iter().collect();
            return WindowInspection { published, check: None, responsive: true, notes };
        };
        window.trim_output();
        let (check, responsive) = tokio::join!(self.compare_files(), window.is_responsive(PING_TIMEOUT));
        match check {
            Ok(check) => WindowInspection { published, check: Some(check), responsive, notes: vec![] },
            Err(error) => WindowInspection { published, check: None, responsive, notes: vec![error.to_string()] },
        }
    }

    /// Measures what the processes of a running window use; see [`crate::process::ResourceMonitor`].
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

    pub(super) fn tracker(&self) -> Result<Arc<ChangeTracker>> {
        self.context.baseline_tracker()
    }

    async fn compare_files(&self) -> Result<ChangeReport> {
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window.filter(|_| !self.context.has_baseline()) {
            // The window was found again while the files could not be read.
            operations::restore_baseline(&self.context, &window).await?;
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
        if let Some(name) = config {
            self.select_config(name)?;
        }
        let build = rebuild != RebuildPolicy::Never && self.has_build()?;
        self.check_crash_loop(rebuild).await?;
        // A running window is replaced for `always`, and for another configuration.
        let is_running = self.wait_for_search().await.window.is_some();
        let replace = rebuild == RebuildPolicy::Always || (config.is_some() && self.is_other_config_selected());
        let input = if is_running && replace { WindowInput::Restart { build } } else { WindowInput::Start { build } };
        let outcome = self.run_command(input, caller).await?;
        // The command may have joined an operation that began before the configuration was selected.
        match config.is_some() && self.is_other_config_selected() {
            true => self.run_command(WindowInput::Restart { build }, caller).await,
            false => Ok(outcome),
        }
    }

    /// Selects a configuration that exists, and whose commands the user trusts.
    fn select_config(&self, name: &str) -> Result<()> {
        let config = WindowConfig::resolve(&self.context.paths.workspace, Some(name))?;
        WorkspaceCommands::of_window(&config).require_consent()?;
        self.context.update_active_config(|active| active.selected = Some(name.to_owned()))
    }

    fn is_other_config_selected(&self) -> bool {
        let active = self.context.active_config();
        active.selected != active.running
    }

    /// Replaces the window by a new one.
    pub async fn restart(&self, rebuild: RebuildPolicy, caller: &dyn Caller) -> Result<OperationOutcome> {
        let published = self.wait_for_search().await;
        self.check_crash_loop(rebuild).await?;
        let build = self.has_build()?
            && match rebuild {
                RebuildPolicy::Always => true,
                RebuildPolicy::Never => false,
                RebuildPolicy::Auto if published.window.is_none() => true,
                RebuildPolicy::Auto => {
                    self.compare_files().await?.stale || published.last_build.is_some_and(|build| !build.ok)
                }
            };
        self.run_command(WindowInput::Restart { build }, caller).await
    }

    /// Closes the window and all its processes, and forgets the selected configuration.
    pub async fn stop(&self, caller: &dyn Caller) -> Result<OperationOutcome> {
        self.wait_for_search().await;
        let outcome = self.run_command(WindowInput::Stop, caller).await?;
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
        let error = Error::other(self.describe_pause(pause));
        let error = match &published.exit {
            Some(exit) => error.because(exit.describe()),
            None => error,
        };
        Err(error
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

    /// Sends a command to the actor and waits for its result.
    async fn run_command(&self, input: WindowInput, caller: &dyn Caller) -> Result<OperationOutcome> {
        let _guard = CancelGuard::new(&self.actor, caller);
        let (reply, result) = oneshot::channel();
        let closed = || Error::new(ErrorKind::Cancelled, "the supervisor is ending");
        self.actor.send(ActorMessage::Command(WindowCommand { input, reply })).await.map_err(|_| closed())?;
        let result = self.wait_for_result(result, caller).await.map_err(|_| closed())?;
        result.map_err(|error| ErrorData::from(&*error).into())
    }

    /// Waits for a result, and reports the progress of the running operation meanwhile.
    async fn wait_for_result(
        &self,
        mut result: oneshot::Receiver<CommandResult>,
        caller: &dyn Caller,
    ) -> Result<CommandResult, oneshot::error::RecvError> {
        let mut watch = self.watch();
        let mut reported = None;
        loop {
            let progress = watch.borrow_and_update().progress.clone();
            if let Some(progress) = progress.filter(|progress| reported.as_ref() != Some(progress)) {
                caller.report_progress(&progress);
                reported = Some(progress);
            }
            tokio::select! {
                result = &mut result => return result,
                _ = watch.changed() => {}
            }
        }
    }

    /// The window with the files as of now: rebuilt and relaunched if it is stale, unless replacement is blocked.
    pub(super) async fn refresh_if_stale(&self, caller: &dyn Caller) -> Result<FreshWindow> {
        let mut relaunched = None;
        for _ in 0..=MAX_RELAUNCHES {
            let published = self.wait_until_idle(caller).await;
            let generation = published.generation;
            let Some(window) = published.window else { return Err(no_window_error(&published)) };
            let check = self.compare_files().await?;
            let Some(newest) = check.newest.filter(|_| check.stale) else {
                return Ok(FreshWindow { window, generation, relaunched, stale_note: None });
            };
            let because = describe_change(&newest);
            if let Some(why) = self.context.replacement_blocked_by() {
                let stale_note = Some(format!("stale: {because}, and the window was not relaunched, since {why}"));
                return Ok(FreshWindow { window, generation, relaunched, stale_note });
            }
            let outcome = self.run_command(WindowInput::Restart { build: self.has_build()? }, caller).await?;
            relaunched = Some(StaleRelaunch { because, outcome });
        }
        // The files change faster than they can be built: the newest window is used, and its status is stale.
        let published = self.wait_until_idle(caller).await;
        let window = published.window.clone().ok_or_else(|| no_window_error(&published))?;
        Ok(FreshWindow { window, generation: published.generation, relaunched, stale_note: None })
    }

    /// Waits until no operation runs.
    async fn wait_until_idle(&self, caller: &dyn Caller) -> PublishedState {
        let mut watch = self.watch();
        loop {
            let published = watch.borrow_and_update().clone();
            if !published.phase.is_busy() {
                return published;
            }
            if let Some(progress) = &published.progress {
                caller.report_progress(progress);
            }
            if watch.changed().await.is_err() {
                return published;
            }
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

    /// Why a path (absolute, or relative to the workspace) is tracked or ignored.
    pub async fn explain_path(&self, path: &Path) -> Result<PathExplanation> {
        self.tracker()?.explain_path(&self.context.paths.workspace.join(path)).await
    }

    /// Closes the CDP connection; the window keeps running. Waits for the clean-ups after windows that exited.
    pub async fn disconnect(&self) {
        self.context.exit_cleanups.close();
        self.context.exit_cleanups.wait().await;
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window {
            window.disconnect().await;
        }
    }
}

fn no_window_error(published: &PublishedState) -> Error {
    let error = match &published.exit {
        Some(exit) => Error::new(ErrorKind::NotFound, "the window has exited").because(exit.describe()),
        None => Error::new(ErrorKind::NotFound, "there is no window"),
    };
    error.hint("`tether start` (MCP: `window_start`) starts it")
}

/// "src/a.ts was modified"
fn describe_change(change: &FileChange) -> String {
    let verb = match change.kind {
        FileChangeKind::Modified => "modified",
        FileChangeKind::Added => "added",
        FileChangeKind::Removed => "removed",
    };
    format!("{} was {verb}", change.path.display())
}
