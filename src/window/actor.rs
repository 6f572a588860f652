//! The task that owns the window: receives commands and events, publishes the state.
//!
//! Transitions are decided by [`decide_transition`]. The actor waits for nothing but its next input: searching,
//! building, launching and closing run in a task of their own, at most one at a time. When the actor ends, they are
//! aborted, and the window keeps running. When a caller leaves: [`super::unattended_build`].
//!
//! ```text
//!  commands ────┐                                   ┌─▶ operation (search │ build │ replace │ close)
//!  exits ───────┼─▶ actor ── decide_transition ─────┤
//!  operation ◀──┘                                   └─▶ published state (watch) ─▶ handles, editors
//! ```

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::OptionFuture;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_process::ProcessExit;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::build::CompletedBuild;
use super::caller::{ActorMessage, CommandOrigin, OperationOutcome, OperationTimes, WindowCommand};
use super::context::{PublishedState, WindowContext};
use super::host_restart::follow_replaced_host;
use super::live_window::LiveWindow;
use super::operation_results::OperationResult;
use super::operations;
use super::recorded_launch::{remove_session_files, save_session_files};
use super::repeated_builds::RepeatedBuilds;
use super::search::find_earlier_window;
use super::state::{WindowEffect, WindowInput, WindowPhase, decide_transition};
use super::waiting_callers::WaitingCallers;

/// The owner of the window: see the module.
pub struct WindowActor {
    pub(super) context: Arc<WindowContext>,
    inbox: mpsc::Receiver<ActorMessage>,
    pub(super) operation: JoinSet<OperationResult>,
    pub(super) operation_started: Instant,
    /// Who waits for the running operation.
    pub(super) callers: WaitingCallers,
    /// Whether the running build was begun instead of one that was ended since files had changed.
    pub(super) follows_obsolete_build: bool,
    pub(super) outcome: OperationOutcome,
    /// Set when the supervisor exits; dropped after the last operation.
    finishing: Option<oneshot::Sender<()>>,
    /// Set between a build and the launch of its result; also while its launch is held.
    pub(super) build: Option<CompletedBuild>,
    /// Waits for the extension host of this window to be replaced in it.
    host_restart: JoinSet<Option<LiveWindow>>,
    followed: Option<Arc<LiveWindow>>,
    pub(super) rounds: RepeatedBuilds,
}

impl WindowActor {
    /// The actor of one workspace's window; [`Self::drive`] runs it.
    pub fn new(context: Arc<WindowContext>, inbox: mpsc::Receiver<ActorMessage>) -> WindowActor {
        WindowActor {
            context,
            inbox,
            operation: JoinSet::new(),
            operation_started: Instant::now(),
            callers: WaitingCallers::default(),
            follows_obsolete_build: false,
            outcome: OperationOutcome::default(),
            finishing: None,
            build: None,
            host_restart: JoinSet::new(),
            followed: None,
            rounds: RepeatedBuilds::default(),
        }
    }

    /// Searches for the window of an earlier supervisor, then runs until the last handle is dropped.
    pub async fn drive(mut self) {
        self.start_operation(WindowEffect::Search);
        loop {
            let window = self.read(|published| published.window.clone());
            self.follow_host_of(window.as_ref());
            let unattended = OptionFuture::from(self.update_unattended().map(tokio::time::sleep_until));
            let exited = OptionFuture::from(window.as_deref().map(|window| window.process.wait_for_exit()));
            tokio::select! {
                biased; // events before commands: a window that has exited cannot be kept
                Some(exit) = exited => self.handle_exit(exit),
                Some(result) = self.operation.join_next() => match result {
                    Ok(result) => self.handle_result(result),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => warn!("a window operation failed: {error}"),
                },
                Some(()) = unattended => self.end_unattended_build(),
                Some(Ok(Some(renewed))) = self.host_restart.join_next() => self.handle_host_restart(renewed),
                message = self.inbox.recv() => match message {
                    Some(ActorMessage::Command(command)) => self.handle_command(command),
                    Some(ActorMessage::CallerLeft { interrupted: true }) => drop(self.abort_unawaited_build()),
                    // Who waits is looked at before each input.
                    Some(ActorMessage::CallerLeft { interrupted: false }) => {}
                    Some(ActorMessage::EndObsoleteBuild) => self.end_obsolete_build(),
                    Some(ActorMessage::Finish(done)) => self.begin_finish(done),
                    None => return,
                },
            }
            if self.finishing.is_some() && self.operation.is_empty() {
                return;
            }
        }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&PublishedState) -> T) -> T {
        read(&self.context.published.borrow())
    }

    pub(super) fn publish(&self, change: impl FnOnce(&mut PublishedState)) {
        self.context.published.send_modify(change);
    }

    /// Enters the next phase; returns what is to be done.
    pub(super) fn apply_input(&mut self, input: WindowInput) -> WindowEffect {
        let (next, effect) = self.decide_phase(input);
        if let Some(next) = next {
            self.publish(|published| published.phase = next);
        }
        effect
    }

    /// The next phase, if it is another one, and what is to be done.
    fn decide_phase(&self, input: WindowInput) -> (Option<WindowPhase>, WindowEffect) {
        let phase = self.read(|published| published.phase);
        let (next, effect) = decide_transition(phase, input);
        if let Some(next) = next {
            info!("{phase:?} + {input:?} → {next:?}");
        }
        (next, effect)
    }

    /// Aborts a build, since the old window still runs, and lets any other operation end.
    fn begin_finish(&mut self, done: oneshot::Sender<()>) {
        self.finishing = Some(done);
        self.context.end_checks();
        if matches!(self.read(|published| published.phase), WindowPhase::Building { .. }) {
            self.operation = JoinSet::new();
        }
    }

    fn handle_command(&mut self, command: WindowCommand) {
        if self.finishing.is_some() {
            let ending = Error::new(ErrorKind::Cancelled, "the supervisor is ending");
            let _ = command.reply.send((Err(Arc::new(ending)), OperationTimes::default()));
            return;
        }
        match self.apply_input(command.input) {
            WindowEffect::JoinOperation => self.callers.join(command),
            WindowEffect::Defer => self.callers.defer(command),
            WindowEffect::Respond => {
                let _ = command.reply.send((Ok(OperationOutcome::default()), OperationTimes::default()));
            }
            operation => {
                // Only `Close` aborts an operation: its callers get an error.
                let stopped = Error::new(ErrorKind::Cancelled, "the window was stopped meanwhile");
                self.callers.respond(&Err(Arc::new(stopped.hint("`tether start` starts it again"))));
                self.outcome = OperationOutcome::default();
                self.publish(|published| published.notes.clear());
                if command.origin == CommandOrigin::RequestedBuild {
                    self.build = None;
                }
                self.callers.begin_operation(command);
                self.start_operation(operation);
            }
        }
    }

    pub(super) fn handle_deferred(&mut self) {
        for command in self.callers.take_deferred() {
            self.handle_command(command);
        }
    }

    pub(super) fn start_operation(&mut self, effect: WindowEffect) {
        let context = Arc::clone(&self.context);
        self.operation_started = Instant::now();
        match effect {
            WindowEffect::Search => {
                self.operation.spawn(async move { OperationResult::Searched(find_earlier_window(&context).await) });
            }
            WindowEffect::Build => {
                self.context.end_checks();
                let mut rounds = std::mem::take(&mut self.rounds);
                let kept = self.build.take();
                self.operation.spawn(async move {
                    let outcome = operations::build_window(&context, &mut rounds, kept).await;
                    OperationResult::Built(outcome, rounds)
                });
            }
            WindowEffect::Launch | WindowEffect::Replace => {
                self.callers.begin_launch(self.operation_started);
                let old = self.take_window();
                let build = self.build.take();
                let may_refresh = self.callers.is_automatic();
                self.operation.spawn(async move {
                    let window = operations::replace_window(&context, old, build, may_refresh).await;
                    OperationResult::Launched(window.map(Box::new))
                });
            }
            WindowEffect::Close => {
                self.context.end_checks();
                // Kills the process groups of a build, or what a launch has started so far. Awaited before the rest: a
                // launch may just be saving its session file.
                let mut aborted = std::mem::take(&mut self.operation);
                self.build = None;
                let old = self.take_window();
                self.operation.spawn(async move {
                    let has_aborted = !aborted.is_empty();
                    aborted.shutdown().await;
                    OperationResult::Closed(operations::stop_window(&context, old, has_aborted).await)
                });
            }
            // The other effects start no operation.
            _ => {}
        }
    }

    fn take_window(&self) -> Option<Arc<LiveWindow>> {
        let mut window = None;
        self.publish(|published| window = published.window.take());
        window
    }

    /// Responds to the waiting callers, then handles the deferred commands.
    pub(super) fn finish_operation(&mut self, input: WindowInput, result: Result<()>) {
        if self.apply_input(input) != WindowEffect::RespondToWaiters {
            return;
        }
        self.publish(|published| published.progress = None);
        lock(&self.context.refresh_cause).take();
        if let Err(error) = &result {
            warn!("{error}");
        }
        let outcome = std::mem::take(&mut self.outcome);
        self.callers.end_operation(&result.map(|()| outcome).map_err(Arc::new));
        self.handle_deferred();
    }

    /// Keeps one task that waits until the extension host of the current window is replaced in it.
    fn follow_host_of(&mut self, window: Option<&Arc<LiveWindow>>) {
        if self.followed.as_ref().map(Arc::as_ptr) == window.map(Arc::as_ptr) {
            return;
        }
        self.host_restart = JoinSet::new();
        self.followed = window.cloned();
        if let Some(window) = window.cloned() {
            let context = Arc::clone(&self.context);
            self.host_restart.spawn(async move { follow_replaced_host(&context, &window).await });
        }
    }

    /// The extension host was replaced in the window itself: a new generation, with the same processes otherwise.
    fn handle_host_restart(&mut self, renewed: LiveWindow) {
        save_session_files(&self.context, &renewed.session);
        let generation = lock(&self.context.generations).assign(&renewed.session.generation_key());
        self.publish(|published| {
            published.generation = generation;
            published.notes.clone_from(&renewed.notes);
            published.window = Some(Arc::new(renewed));
        });
    }

    /// The window's process has exited without being stopped.
    fn handle_exit(&mut self, exit: ProcessExit) {
        let Some(window) = self.read(|published| published.window.clone()) else { return };
        warn!(pid = window.session.electron_pid, "the window ended by itself: {exit}");
        let exit = window.exit_report(exit, self.context.running_calls.describe_calls(), &lock(&self.context.secrets));
        if exit.is_crash() {
            self.context.crash_loop().record_crash(Instant::now());
        }
        let (next, effect) = self.decide_phase(WindowInput::WindowExited);
        // Together: a caller is told that the window has exited, not that there was none, nor that it is ready.
        self.publish(|published| {
            published.window = None;
            published.exit = Some(exit);
            published.phase = next.unwrap_or(published.phase);
        });
        if effect == WindowEffect::ReapAfterExit {
            remove_session_files(&self.context);
            let context = Arc::clone(&self.context);
            // Independent of other operations; only the end of the supervisor waits for it.
            self.context.exit_cleanups.spawn(async move { operations::clean_up_after_exit(&context, &window).await });
        }
    }
}
