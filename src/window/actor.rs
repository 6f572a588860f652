//! The task that owns the window: receives commands and events, publishes the state.
//!
//! Transitions are decided by [`decide_transition`]. The actor waits for nothing but its next input: reconnecting,
//! building, launching and closing run in a task of their own, at most one at a time. When the actor ends, they are
//! aborted, and the window keeps running.
//!
//! ```text
//!  commands ────┐                                   ┌─▶ operation (reconnect │ build │ replace │ close)
//!  exits ───────┼─▶ actor ── decide_transition ─────┤
//!  operation ◀──┘                                   └─▶ published state (watch) ─▶ handles, editors
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::build::{BuildSummary, CompletedBuild};
use super::build_rounds::BuildRounds;
use super::commands::{ActorMessage, CommandResult, OperationOutcome, WindowCommand};
use super::context::{PublishedState, WindowContext};
use super::live_window::LiveWindow;
use super::operations::{self, ReplaceError};
use super::state::{WindowEffect, WindowInput, WindowPhase, decide_transition};
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};
use crate::process::ProcessExit;

/// What an operation returned.
enum OperationResult {
    Reconnected(Option<LiveWindow>),
    Built { outcome: Result<CompletedBuild>, rounds: BuildRounds, took: Duration },
    Launched { outcome: Result<LiveWindow, ReplaceError>, took: Duration },
    Closed(Result<()>),
}

/// The owner of the window: see the module.
pub struct WindowActor {
    context: Arc<WindowContext>,
    inbox: mpsc::Receiver<ActorMessage>,
    operation: JoinSet<OperationResult>,
    /// The callers that wait for the running operation.
    waiters: Vec<oneshot::Sender<CommandResult>>,
    /// Commands to be handled after the running operation has ended.
    deferred: Vec<WindowCommand>,
    outcome: OperationOutcome,
    /// Set between a build and the launch of its result.
    build: Option<CompletedBuild>,
    rounds: BuildRounds,
}

impl WindowActor {
    /// The actor of one workspace's window; [`Self::drive`] runs it.
    pub fn new(context: Arc<WindowContext>, inbox: mpsc::Receiver<ActorMessage>) -> WindowActor {
        WindowActor {
            context,
            inbox,
            operation: JoinSet::new(),
            waiters: Vec::new(),
            deferred: Vec::new(),
            outcome: OperationOutcome::default(),
            build: None,
            rounds: BuildRounds::default(),
        }
    }

    /// Searches for the window of an earlier supervisor, then runs until the last handle is dropped.
    pub async fn drive(mut self) {
        let context = Arc::clone(&self.context);
        self.operation.spawn(async move { OperationResult::Reconnected(operations::reconnect_window(&context).await) });
        loop {
            let window = self.read(|published| published.window.clone());
            tokio::select! {
                biased; // events before commands: a window that has exited cannot be kept
                exit = wait_for_exit(window.as_deref()) => self.handle_exit(exit),
                Some(result) = self.operation.join_next() => match result {
                    Ok(result) => self.handle_result(result),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => warn!("a window operation failed: {error}"),
                },
                message = self.inbox.recv() => match message {
                    Some(ActorMessage::Command(command)) => self.handle_command(command),
                    Some(ActorMessage::CallerCancelled) => self.handle_cancellation(),
                    None => return,
                },
            }
        }
    }

    fn read<T>(&self, read: impl FnOnce(&PublishedState) -> T) -> T {
        read(&self.context.published.borrow())
    }

    fn publish(&self, change: impl FnOnce(&mut PublishedState)) {
        self.context.published.send_modify(change);
    }

    /// Enters the next phase; returns what is to be done.
    fn apply_input(&mut self, input: WindowInput) -> WindowEffect {
        let phase = self.read(|published| published.phase);
        let (next, effect) = decide_transition(phase, input);
        if let Some(next) = next {
            info!("{phase:?} + {input:?} → {next:?}");
            self.publish(|published| published.phase = next);
        }
        effect
    }

    fn handle_command(&mut self, command: WindowCommand) {
        match self.apply_input(command.input) {
            WindowEffect::JoinOperation => self.waiters.push(command.reply),
            WindowEffect::Defer => self.deferred.push(command),
            WindowEffect::Respond => {
                let _ = command.reply.send(Ok(OperationOutcome::default()));
            }
            operation => {
                // Only `Close` aborts an operation: its callers get an error.
                self.respond_to_waiters(&Err(Arc::new(stopped_error())));
                self.outcome = OperationOutcome::default();
                self.publish(|published| published.notes.clear());
                self.waiters.push(command.reply);
                self.start_operation(operation);
            }
        }
    }

    /// Aborts the running build when no caller waits for it any more.
    fn handle_cancellation(&mut self) {
        self.waiters.retain(|waiter| !waiter.is_closed());
        if self.waiters.is_empty() && self.apply_input(WindowInput::Cancelled) == WindowEffect::AbortBuild {
            self.operation.abort_all();
            self.build = None;
            self.publish(|published| published.progress = None);
            self.handle_deferred();
        }
    }

    fn handle_deferred(&mut self) {
        for command in std::mem::take(&mut self.deferred) {
            self.handle_command(command);
        }
    }

    fn start_operation(&mut self, effect: WindowEffect) {
        let context = Arc::clone(&self.context);
        match effect {
            WindowEffect::Build => {
                let mut rounds = std::mem::take(&mut self.rounds);
                self.operation.spawn(async move {
                    let started = Instant::now();
                    let outcome = operations::build_window(&context, &mut rounds).await;
                    OperationResult::Built { outcome, rounds, took: started.elapsed() }
                });
            }
            WindowEffect::Launch | WindowEffect::Replace => {
                let old = self.take_window();
                let build = self.build.take();
                self.operation.spawn(async move {
                    let started = Instant::now();
                    let outcome = operations::replace_window(&context, old, build).await;
                    OperationResult::Launched { outcome, took: started.elapsed() }
                });
            }
            WindowEffect::Close => {
                // Kills the process groups of a build, or what a launch has started so far.
                self.operation.abort_all();
                let old = self.take_window();
                self.operation
                    .spawn(async move { OperationResult::Closed(operations::close_window(&context, old).await) });
            }
            WindowEffect::Nothing
            | WindowEffect::AbortBuild
            | WindowEffect::Respond
            | WindowEffect::JoinOperation
            | WindowEffect::Defer
            | WindowEffect::RespondToWaiters
            | WindowEffect::ReapAfterExit => {}
        }
    }

    fn take_window(&self) -> Option<Arc<LiveWindow>> {
        let mut window = None;
        self.publish(|published| window = published.window.take());
        window
    }

    fn handle_result(&mut self, result: OperationResult) {
        match result {
            OperationResult::Reconnected(found) => {
                match found {
                    Some(window) => self.handle_launched(Ok(window)),
                    None => self.finish_operation(WindowInput::LaunchFinished { ok: false }, Ok(())),
                }
                self.publish(|published| published.search_done = true);
            }
            OperationResult::Built { outcome, rounds, took } => {
                self.rounds = rounds;
                // A build that ended while it was being aborted is dropped.
                if matches!(self.read(|published| published.phase), WindowPhase::Building { .. }) {
                    self.handle_built(outcome, took);
                }
            }
            OperationResult::Launched { outcome, took } => {
                self.outcome.launch = took;
                self.handle_launched(outcome);
            }
            OperationResult::Closed(outcome) => {
                self.publish(|published| published.exit = None);
                self.finish_operation(WindowInput::CloseFinished, outcome);
            }
        }
    }

    fn handle_built(&mut self, result: Result<CompletedBuild>, took: Duration) {
        let ended_at_ms = now_ms();
        let summary = match &result {
            Ok(build) => {
                Some(BuildSummary { ok: true, ended_at_ms, duration: build.duration, tail: build.tail.clone() })
            }
            Err(error) if error.kind == ErrorKind::BuildFailed => {
                Some(BuildSummary { ok: false, ended_at_ms, duration: took, tail: error.to_string() })
            }
            // The build was not started.
            Err(_) => None,
        };
        if let Some(summary) = summary {
            self.publish(|published| published.last_build = Some(summary));
        }
        match result {
            Err(error) => self.finish_operation(WindowInput::BuildFinished { ok: false }, Err(error)),
            Ok(build) => {
                self.outcome.build = build.duration;
                self.outcome.notes.extend(build.notes.iter().cloned());
                self.publish(|published| published.notes.extend(build.notes.iter().cloned()));
                self.build = Some(build);
                let effect = self.apply_input(WindowInput::BuildFinished { ok: true });
                self.start_operation(effect);
            }
        }
    }

    fn handle_launched(&mut self, outcome: Result<LiveWindow, ReplaceError>) {
        match outcome {
            // A stop came first: the close operation that now runs kills the new window by its launch id.
            Ok(_) if self.read(|published| published.phase) != WindowPhase::Starting => {}
            Ok(window) => {
                let generation = self.context.assign_generation(&window.session.launch_id);
                let window = Arc::new(window);
                self.publish(|published| {
                    published.generation = generation;
                    published.exit = None;
                    published.notes.extend(window.notes.iter().cloned());
                    published.window = Some(window);
                });
                self.finish_operation(WindowInput::LaunchFinished { ok: true }, Ok(()));
            }
            Err(ReplaceError { error, old_window: Some(old) }) => {
                self.publish(|published| published.window = Some(old));
                self.finish_operation(WindowInput::OldWindowKept, Err(error));
            }
            Err(ReplaceError { error, old_window: None }) => {
                self.finish_operation(WindowInput::LaunchFinished { ok: false }, Err(error));
            }
        }
    }

    /// Responds to the waiting callers, then handles the deferred commands.
    fn finish_operation(&mut self, input: WindowInput, result: Result<()>) {
        if self.apply_input(input) != WindowEffect::RespondToWaiters {
            return;
        }
        self.publish(|published| published.progress = None);
        if let Err(error) = &result {
            warn!("{error}");
        }
        let outcome = std::mem::take(&mut self.outcome);
        self.respond_to_waiters(&result.map(|()| outcome).map_err(Arc::new));
        self.handle_deferred();
    }

    fn respond_to_waiters(&mut self, result: &CommandResult) {
        for waiter in self.waiters.drain(..) {
            // A caller that has gone needs no response.
            let _ = waiter.send(result.clone());
        }
    }

    /// The window's process has exited without being stopped.
    fn handle_exit(&mut self, exit: ProcessExit) {
        let Some(window) = self.take_window() else { return };
        warn!(pid = window.session.electron_pid, "the window ended by itself: {exit}");
        let exit = window.exit_report(exit, self.context.in_flight.describe_calls());
        if exit.is_crash() {
            self.context.crash_loop().record_crash(Instant::now());
        }
        self.publish(|published| published.exit = Some(exit));
        if self.apply_input(WindowInput::WindowExited) == WindowEffect::ReapAfterExit {
            operations::remove_session_files(&self.context);
            let context = Arc::clone(&self.context);
            // Independent of other operations; only the end of the supervisor waits for it.
            self.context.exit_cleanups.spawn(async move { operations::clean_up_after_exit(&context, &window).await });
        }
    }
}

async fn wait_for_exit(window: Option<&LiveWindow>) -> ProcessExit {
    match window {
        Some(window) => window.process.wait_for_exit().await,
        None => std::future::pending().await,
    }
}

fn stopped_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the window was stopped meanwhile").hint("`tether start` starts it again")
}
