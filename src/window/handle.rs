//! A handle to the window: what the supervisor asks of it.
//!
//! Clones share the window; the actor ends with the last one. Operations on the page look for changes first, and
//! build and relaunch when there are some: [`Window::fresh`] is that rule.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::actor::{ActorMessage, CommandResult, WindowActor, WindowCommand};
use super::caller::{CancelGuard, Progress};
use super::context::{OperationOutcome, PublishedState, WindowContext, WindowPaths};
use super::live_window::LiveWindow;
use super::operations;
use super::page::{
    self, BatchOutcome, CapturedImage, ConsoleMessage, ExpressionResult, InputAction, PageConnection, PageSnapshot,
    RecordedRequest, RingExtract, RingQuery, ScreenshotRequest,
};
use super::state::WindowInput;
use crate::changes::{ChangeReport, ChangeTracker, FileChange, FileChangeKind, PathExplanation};
use crate::config::{ActiveConfig, WindowConfig, trust::WorkspaceCommands};
use crate::error::{Error, ErrorData, ErrorKind, Result};

/// How often a page operation looks again after a relaunch: someone who saves all the time must not keep it for ever.
const MAX_RELAUNCHES: usize = 3;
/// A page that does not answer an empty question within this is unresponsive.
const PING: Duration = Duration::from_secs(3);

/// When to build before a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebuildPolicy {
    #[default]
    Auto,
    Always,
    Never,
}

/// What is known of the window after a look at its files and its page.
pub struct WindowInspection {
    pub published: PublishedState,
    /// `None` without a window, or when the files cannot be looked at (`notes` says why).
    pub check: Option<ChangeReport>,
    pub responsive: bool,
    pub notes: Vec<String>,
}

/// What has changed.
pub struct FileChanges {
    /// `None` without a window.
    pub check: Option<ChangeReport>,
    /// What is wrong with the files.
    pub problems: Vec<String>,
    pub generation: u64,
}

/// Said of an operation that found the window stale.
#[derive(Clone, Debug)]
pub struct RelaunchReport {
    pub because: String,
    pub outcome: OperationOutcome,
}

/// The result of an operation on the page.
pub struct PageResult<T> {
    pub value: T,
    pub generation: u64,
    pub relaunched: Option<RelaunchReport>,
    /// Dialogs, downloads, crashes: what has happened besides, since anybody was told.
    pub notes: Vec<String>,
}

/// The page of a window, ready to be asked.
struct FreshPage {
    up: Arc<LiveWindow>,
    page: Arc<PageConnection>,
    generation: u64,
    relaunched: Option<RelaunchReport>,
    /// Why it is not fresh.
    held: Option<String>,
}

/// A window that is fresh, or that must not be made so.
struct Fresh {
    up: Arc<LiveWindow>,
    generation: u64,
    relaunched: Option<RelaunchReport>,
    held: Option<String>,
}

impl FreshPage {
    fn answer<T>(self, value: Result<T>) -> Result<PageResult<T>> {
        let generation = self.generation;
        let value = value.map_err(|error| {
            let error = self.up.explain_error(error);
            Error { doing: format!("{} (window generation {generation})", error.doing), ..error }
        })?;
        let notes = self.held.into_iter().chain(self.page.take_notices()).collect();
        Ok(PageResult { value, generation: self.generation, relaunched: self.relaunched, notes })
    }
}

/// A handle to the window.
#[derive(Clone)]
pub struct Window {
    pub(super) shared: Arc<WindowContext>,
    wishes: mpsc::Sender<ActorMessage>,
}

impl Window {
    /// The window of a workspace, and the task that drives it, to be spawned. It first looks for the window that an
    /// earlier supervisor left.
    pub fn open(home: WindowPaths) -> (Window, impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::new(WindowContext::new(home));
        let (wishes, inbox) = mpsc::channel(64);
        let actor = WindowActor::new(Arc::clone(&shared), inbox);
        (Window { shared, wishes }, actor.drive())
    }

    /// From now on the window is not replaced unasked while `held` says why.
    pub fn block_replacement_while(&self, held: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.shared.block_replacement_while(Box::new(held));
    }

    /// What is known, and each change of it.
    pub fn watch(&self) -> watch::Receiver<PublishedState> {
        self.shared.published.subscribe()
    }

    /// Looks at the window, its files and its page. Never relaunches, and waits for no build.
    pub async fn inspect(&self) -> WindowInspection {
        let published = self.wait_for_search().await;
        let Some(up) = published.window.clone() else {
            let pause = self.shared.crash_loop().remaining_pause(Instant::now());
            let notes = pause.map(|left| self.crash_loop(left)).into_iter().collect();
            return WindowInspection { published, check: None, responsive: true, notes };
        };
        up.trim_output();
        let (check, responsive) = tokio::join!(self.check(), up.is_responsive(PING));
        match check {
            Ok(check) => WindowInspection { published, check: Some(check), responsive, notes: vec![] },
            Err(error) => WindowInspection { published, check: None, responsive, notes: vec![error.to_string()] },
        }
    }

    /// Waits until it is known whether an earlier supervisor's window lives, and what else it has left behind is ended.
    pub async fn wait_for_search(&self) -> PublishedState {
        let mut watch = self.watch();
        // The sender lives in `shared`: it cannot be gone.
        watch
            .wait_for(|published| published.search_done)
            .await
            .map_or_else(|_| PublishedState::default(), |it| it.clone())
    }

    pub(super) fn tracker(&self) -> Result<Arc<ChangeTracker>> {
        self.shared.baseline_tracker()
    }

    async fn check(&self) -> Result<ChangeReport> {
        let up = self.shared.published.borrow().window.clone();
        if let Some(up) = up.filter(|_| !self.shared.has_baseline()) {
            // A window that was found again while the files could not be read.
            operations::restore_baseline(&self.shared, &up).await?;
        }
        self.tracker()?.compare_with_baseline().await
    }

    /// Starts the window, unless it lives. With the name of a launch configuration: of that one, now and until the window
    /// is stopped.
    pub async fn start(
        &self,
        config: Option<&str>,
        rebuild: RebuildPolicy,
        progress: Progress<'_>,
    ) -> Result<OperationOutcome> {
        if let Some(name) = config {
            self.choose(name)?;
        }
        let build = rebuild != RebuildPolicy::Never && self.has_build()?;
        self.leave_alone_while_crashing(rebuild).await?;
        // `always` on a living window is a wish for a new one, and so is another configuration.
        let living = self.wait_for_search().await.window.is_some();
        let again = rebuild == RebuildPolicy::Always || (config.is_some() && self.runs_another());
        let input = if living && again { WindowInput::Restart { build } } else { WindowInput::Start { build } };
        let outcome = self.wish(input, progress).await?;
        // It may have joined a work that began before the choice.
        match config.is_some() && self.runs_another() {
            true => self.wish(WindowInput::Restart { build }, progress).await,
            false => Ok(outcome),
        }
    }

    /// Keeps the choice of a configuration that there is, and that the user trusts.
    fn choose(&self, name: &str) -> Result<()> {
        let recipe = WindowConfig::resolve(&self.shared.paths.workspace, Some(name))?;
        WorkspaceCommands::of_window(&recipe).require_consent()?;
        self.shared.update_choice(|choice| choice.selected = Some(name.to_owned()))
    }

    fn runs_another(&self) -> bool {
        let choice = self.shared.choice();
        choice.selected != choice.running
    }

    /// Replaces the window by a new one.
    pub async fn restart(&self, rebuild: RebuildPolicy, progress: Progress<'_>) -> Result<OperationOutcome> {
        let published = self.wait_for_search().await;
        self.leave_alone_while_crashing(rebuild).await?;
        let build = self.has_build()?
            && match rebuild {
                RebuildPolicy::Always => true,
                RebuildPolicy::Never => false,
                RebuildPolicy::Auto if published.window.is_none() => true,
                RebuildPolicy::Auto => self.check().await?.stale || published.last_build.is_some_and(|build| !build.ok),
            };
        self.wish(WindowInput::Restart { build }, progress).await
    }

    /// Closes the window and everything that belongs to it; the choice of a configuration is forgotten with it.
    pub async fn stop(&self, progress: Progress<'_>) -> Result<OperationOutcome> {
        self.wait_for_search().await;
        let outcome = self.wish(WindowInput::Stop, progress).await?;
        self.shared.update_choice(|choice| *choice = ActiveConfig::default())?;
        Ok(outcome)
    }

    /// A window that ends by itself again and again is not started for a while, unless something has changed.
    async fn leave_alone_while_crashing(&self, rebuild: RebuildPolicy) -> Result<()> {
        let published = self.wait_for_search().await;
        let Some(left) =
            self.shared.crash_loop().remaining_pause(Instant::now()).filter(|_| published.window.is_none())
        else {
            return Ok(());
        };
        if rebuild == RebuildPolicy::Always || self.check().await.is_ok_and(|check| check.stale) {
            self.shared.crash_loop().reset();
            return Ok(());
        }
        let error = Error::other(format!("the window is {}", self.crash_loop(left)));
        let error = match &published.exit {
            Some(ended) => error.because(ended.describe()),
            None => error,
        };
        Err(error
            .hint("change what makes it end: once a tracked file has changed, it may be started")
            .hint("`tether start --rebuild always` starts it all the same"))
    }

    fn crash_loop(&self, left: Duration) -> String {
        let (count, left) = (self.shared.crash_loop().count(), left.as_secs() + 1);
        format!("left alone for another {left} s: it has ended by itself {count} times within a minute")
    }

    fn has_build(&self) -> Result<bool> {
        Ok(!self.shared.read_recipe()?.build.is_empty())
    }

    async fn wish(&self, input: WindowInput, progress: Progress<'_>) -> Result<OperationOutcome> {
        // Dropped after the receiving end of the reply: the actor then sees who still waits.
        let _call_off = CancelGuard::new(&self.wishes, progress);
        let (reply, answer) = oneshot::channel();
        let gone = || Error::new(ErrorKind::Cancelled, "the supervisor is ending");
        self.wishes.send(ActorMessage::Wish(WindowCommand { input, reply })).await.map_err(|_| gone())?;
        let settled = self.attend(answer, progress).await.map_err(|_| gone())?;
        settled.map_err(|error| ErrorData::from(&*error).into())
    }

    /// Waits for an answer and passes on what the actor is doing meanwhile.
    async fn attend(
        &self,
        mut answer: oneshot::Receiver<CommandResult>,
        progress: Progress<'_>,
    ) -> Result<CommandResult, oneshot::error::RecvError> {
        let mut watch = self.watch();
        let mut told = None;
        loop {
            let doing = watch.borrow_and_update().doing.clone();
            if let Some(doing) = doing.filter(|doing| told.as_ref() != Some(doing)) {
                progress.report_progress(&doing);
                told = Some(doing);
            }
            tokio::select! {
                settled = &mut answer => return settled,
                _ = watch.changed() => {}
            }
        }
    }

    /// The window, built from the files as they are now: relaunched when it was stale, unless somebody holds it.
    async fn fresh(&self, progress: Progress<'_>) -> Result<Fresh> {
        let mut relaunched = None;
        for _ in 0..=MAX_RELAUNCHES {
            let published = self.at_rest(progress).await;
            let Some(up) = published.window else { return Err(no_window(&published)) };
            let check = self.check().await?;
            let Some(newest) = check.newest.filter(|_| check.stale) else {
                return Ok(Fresh { up, generation: published.generation, relaunched, held: None });
            };
            let because = describe(&newest);
            if let Some(why) = self.shared.replacement_blocked_by() {
                let held = Some(format!("stale: {because}, and the window was not relaunched, since {why}"));
                return Ok(Fresh { up, generation: published.generation, relaunched, held });
            }
            let outcome = self.wish(WindowInput::Restart { build: self.has_build()? }, progress).await?;
            relaunched = Some(RelaunchReport { because, outcome });
        }
        // It changes faster than it can be built: the newest window has to do, and status says that it is stale.
        let published = self.at_rest(progress).await;
        let up = published.window.clone().ok_or_else(|| no_window(&published))?;
        Ok(Fresh { up, generation: published.generation, relaunched, held: None })
    }

    /// Waits until no work is under way.
    async fn at_rest(&self, progress: Progress<'_>) -> PublishedState {
        let mut watch = self.watch();
        loop {
            let published = watch.borrow_and_update().clone();
            if !published.phase.is_busy() {
                return published;
            }
            if let Some(doing) = &published.doing {
                progress.report_progress(doing);
            }
            if watch.changed().await.is_err() {
                return published;
            }
        }
    }

    /// The page of a window that is fresh.
    async fn page(&self, progress: Progress<'_>) -> Result<FreshPage> {
        let Fresh { up, generation, relaunched, held } = self.fresh(progress).await?;
        let page = up.page().await?;
        Ok(FreshPage { up, page, generation, relaunched, held })
    }

    /// Evaluates an expression in the window's page, or in the one with `page` in its address or title.
    pub async fn evaluate(
        &self,
        expression: &str,
        timeout: Duration,
        page: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<PageResult<ExpressionResult>> {
        let fresh = self.page(progress).await?;
        let value = fresh.page.evaluate_in(expression, timeout, page).await;
        fresh.answer(value)
    }

    /// A picture of the window's page.
    pub async fn screenshot(
        &self,
        shot: &ScreenshotRequest,
        progress: Progress<'_>,
    ) -> Result<PageResult<CapturedImage>> {
        let fresh = self.page(progress).await?;
        let value = fresh.page.screenshot(shot).await;
        fresh.answer(value)
    }

    /// The window's page as text, with refs.
    pub async fn snapshot(
        &self,
        at: &page::SnapshotRequest,
        progress: Progress<'_>,
    ) -> Result<PageResult<PageSnapshot>> {
        let fresh = self.page(progress).await?;
        let value = fresh.page.snapshot(at).await;
        fresh.answer(value)
    }

    /// Acts on the window's page; `look`: takes a snapshot of so many bytes afterwards.
    pub async fn act(
        &self,
        actions: &[InputAction],
        page: Option<&str>,
        look: Option<usize>,
        progress: Progress<'_>,
    ) -> Result<PageResult<BatchOutcome>> {
        let fresh = self.page(progress).await?;
        let value = fresh.page.act(actions, page, look).await;
        fresh.answer(value)
    }

    /// What the window has said. Never relaunches, and needs no window: a crashed one's last words are there, too.
    pub async fn console(&self, query: &RingQuery) -> (RingExtract<ConsoleMessage>, u64) {
        let generation = self.listening().await;
        (self.shared.records.console(query), generation)
    }

    /// What the window has asked the network for: what has ended, and what is on its way. Never relaunches.
    pub async fn network(&self, query: &RingQuery) -> (RingExtract<RecordedRequest>, Vec<RecordedRequest>, u64) {
        let generation = self.listening().await;
        let (extract, under_way) = self.shared.records.network(query);
        (extract, under_way, generation)
    }

    /// Sees to it that a living window is listened to; its generation.
    async fn listening(&self) -> u64 {
        let published = self.wait_for_search().await;
        if let Some(up) = &published.window {
            // A window that cannot be reached says nothing new, which is no reason to keep what it has said.
            let _ = up.page().await;
        }
        published.generation
    }

    /// What has changed since the build that the window runs began.
    pub async fn inspect_changes(&self) -> Result<FileChanges> {
        let published = self.wait_for_search().await;
        let check = match published.window {
            Some(_) => Some(self.check().await?),
            None => self.tracker()?.take_snapshot().await.map(|_| None)?,
        };
        let problems = self.tracker()?.problems().iter().map(ToString::to_string).collect();
        Ok(FileChanges { check, problems, generation: published.generation })
    }

    /// Why a path (relative to the workspace, or absolute) counts or does not.
    pub async fn explain_path(&self, path: &Path) -> Result<PathExplanation> {
        self.tracker()?.explain_path(&self.shared.paths.workspace.join(path)).await
    }

    /// Lets go of the window: its CDP connection is closed, it lives on. Waits until nothing is left of windows that
    /// have ended by themselves.
    pub async fn disconnect(&self) {
        self.shared.mourners.close();
        self.shared.mourners.wait().await;
        let up = self.shared.published.borrow().window.clone();
        if let Some(up) = up {
            up.disconnect().await;
        }
    }
}

fn no_window(published: &PublishedState) -> Error {
    let error = match &published.exit {
        Some(ended) => Error::new(ErrorKind::NotFound, "the window has exited").because(ended.describe()),
        None => Error::new(ErrorKind::NotFound, "there is no window"),
    };
    error.hint("`tether start` (MCP: `window_start`) starts it")
}

/// "src/a.ts was modified"
fn describe(change: &FileChange) -> String {
    let word = match change.kind {
        FileChangeKind::Modified => "modified",
        FileChangeKind::Added => "added",
        FileChangeKind::Removed => "removed",
    };
    format!("{} was {word}", change.path.display())
}

/// The expression's value as a front end shows it.
pub fn split_evaluated(evaluated: ExpressionResult) -> (Option<Value>, Option<String>) {
    match evaluated {
        ExpressionResult::Value(value) => (Some(value), None),
        ExpressionResult::Exception(text) => (None, Some(text)),
    }
}
