//! The one task that owns the window: wishes and facts go in, a published state comes out.
//!
//! It decides nothing by itself ([`state::step`] does) and waits for nothing but its next input: reconnecting, building,
//! launching and closing run beside it, at most one at a time, and die with it without touching the window.
//!
//! ```text
//!  wishes ─┐                       ┌─▶ work (reconnect │ build │ launch │ swap │ close)
//!  exits ──┼─▶ actor ── step ──────┤
//!  work ◀──┘                       └─▶ published (watch) ─▶ handles, editors
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::build::{BuildRounds, BuildSummary, CompletedBuild};
use super::context::{OperationOutcome, PublishedState, WindowContext};
use super::live_window::LiveWindow;
use super::operations::{self, ReplaceError};
use super::state::{WindowEffect, WindowInput, WindowPhase, decide_transition};
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};
use crate::process::ProcessExit;

/// How those who waited for a work are answered: they share its outcome.
pub type CommandResult = Result<OperationOutcome, Arc<Error>>;

/// A wish, and who waits for what comes of it.
pub struct WindowCommand {
    pub input: WindowInput,
    pub reply: oneshot::Sender<CommandResult>,
}

/// What comes to the actor from the handles.
pub enum ActorMessage {
    Wish(WindowCommand),
    /// Somebody who waited called it off; the other end of the wish's reply is gone.
    CalledOff,
}

/// What a work under way came to.
pub enum OperationResult {
    Reconnected(Option<LiveWindow>),
    Built { outcome: Result<CompletedBuild>, rounds: BuildRounds, took: Duration },
    Launched { outcome: Result<LiveWindow, ReplaceError>, took: Duration },
    Closed(Result<()>),
}

pub struct WindowActor {
    shared: Arc<WindowContext>,
    wishes: mpsc::Receiver<ActorMessage>,
    work: JoinSet<OperationResult>,
    /// Who waits for the work under way.
    waiters: Vec<oneshot::Sender<CommandResult>>,
    /// Wishes that can be looked at only when the work under way has ended.
    later: Vec<WindowCommand>,
    outcome: OperationOutcome,
    /// Between a build and the launch of what it made.
    built: Option<CompletedBuild>,
    rounds: BuildRounds,
}

impl WindowActor {
    pub fn new(shared: Arc<WindowContext>, wishes: mpsc::Receiver<ActorMessage>) -> WindowActor {
        WindowActor {
            shared,
            wishes,
            work: JoinSet::new(),
            waiters: Vec::new(),
            later: Vec::new(),
            outcome: OperationOutcome::default(),
            built: None,
            rounds: BuildRounds::default(),
        }
    }

    /// Lives until the last handle is gone. First looks for the window of an earlier supervisor.
    pub async fn drive(mut self) {
        let shared = Arc::clone(&self.shared);
        self.work.spawn(async move { OperationResult::Reconnected(operations::reconnect_window(&shared).await) });
        loop {
            let up = self.now(|published| published.window.clone());
            tokio::select! {
                biased; // facts before wishes: a window that has ended is not kept
                exit = ended(up.as_deref()) => self.gone(exit),
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.finish(done),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => warn!("a work failed: {error}"),
                },
                wish = self.wishes.recv() => match wish {
                    Some(ActorMessage::Wish(wish)) => self.wish(wish),
                    Some(ActorMessage::CalledOff) => self.called_off(),
                    None => return,
                },
            }
        }
    }

    fn now<T>(&self, look: impl FnOnce(&PublishedState) -> T) -> T {
        look(&self.shared.published.borrow())
    }

    fn publish(&self, change: impl FnOnce(&mut PublishedState)) {
        self.shared.published.send_modify(change);
    }

    fn step(&mut self, input: WindowInput) -> WindowEffect {
        let phase = self.now(|published| published.phase);
        let (next, effect) = decide_transition(phase, input);
        if let Some(next) = next {
            info!("{phase:?} + {input:?} → {next:?}");
            self.publish(|published| published.phase = next);
        }
        effect
    }

    fn wish(&mut self, wish: WindowCommand) {
        match self.step(wish.input) {
            WindowEffect::JoinOperation => self.waiters.push(wish.reply),
            WindowEffect::Defer => self.later.push(wish),
            WindowEffect::Respond => {
                let _ = wish.reply.send(Ok(OperationOutcome::default()));
            }
            begins => {
                // Whoever waited for the work that ends now is told so; only `Close` ends one.
                self.settle(&Err(Arc::new(stopped())));
                self.outcome = OperationOutcome::default();
                self.publish(|published| published.notes.clear());
                self.waiters.push(wish.reply);
                self.begin(begins);
            }
        }
    }

    /// When nobody is left who waits for the build under way, it is ended.
    fn called_off(&mut self) {
        self.waiters.retain(|waiter| !waiter.is_closed());
        if self.waiters.is_empty() && self.step(WindowInput::Cancelled) == WindowEffect::AbortBuild {
            self.work.abort_all();
            self.built = None;
            self.publish(|published| published.doing = None);
            for wish in std::mem::take(&mut self.later) {
                self.wish(wish);
            }
        }
    }

    fn begin(&mut self, effect: WindowEffect) {
        let shared = Arc::clone(&self.shared);
        match effect {
            WindowEffect::Build => {
                let mut rounds = std::mem::take(&mut self.rounds);
                self.work.spawn(async move {
                    let started = Instant::now();
                    let outcome = operations::build_window(&shared, &mut rounds).await;
                    OperationResult::Built { outcome, rounds, took: started.elapsed() }
                });
            }
            WindowEffect::Launch | WindowEffect::Replace => {
                let old = self.take_up();
                let built = self.built.take();
                self.work.spawn(async move {
                    let started = Instant::now();
                    let outcome = operations::replace_window(&shared, old, built).await;
                    OperationResult::Launched { outcome, took: started.elapsed() }
                });
            }
            WindowEffect::Close => {
                // Ends a build's group, or what a launch has started so far.
                self.work.abort_all();
                let old = self.take_up();
                self.work.spawn(async move { OperationResult::Closed(operations::close_window(&shared, old).await) });
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

    fn take_up(&self) -> Option<Arc<LiveWindow>> {
        let mut up = None;
        self.publish(|published| up = published.window.take());
        up
    }

    fn finish(&mut self, done: OperationResult) {
        match done {
            OperationResult::Reconnected(found) => {
                match found {
                    Some(up) => self.came_up(Ok(up)),
                    None => self.step_and_settle(WindowInput::LaunchFinished { ok: false }, Ok(())),
                }
                self.publish(|published| published.search_done = true);
            }
            OperationResult::Built { outcome, rounds, took } => {
                self.rounds = rounds;
                // One that was ended in the moment in which it was done has built nothing for anybody.
                if matches!(self.now(|published| published.phase), WindowPhase::Building { .. }) {
                    self.built_is(outcome, took);
                }
            }
            OperationResult::Launched { outcome, took } => {
                self.outcome.launch = took;
                self.came_up(outcome);
            }
            OperationResult::Closed(outcome) => {
                self.publish(|published| published.exit = None);
                self.step_and_settle(WindowInput::CloseFinished, outcome);
            }
        }
    }

    fn built_is(&mut self, built: Result<CompletedBuild>, took: Duration) {
        let ended_at_ms = now_ms();
        let last = match &built {
            Ok(built) => {
                Some(BuildSummary { ok: true, ended_at_ms, duration: built.duration, tail: built.tail.clone() })
            }
            Err(error) if error.kind == ErrorKind::BuildFailed => {
                Some(BuildSummary { ok: false, ended_at_ms, duration: took, tail: error.to_string() })
            }
            // It was not even begun.
            Err(_) => None,
        };
        if let Some(last) = last {
            self.publish(|published| published.last_build = Some(last));
        }
        match built {
            Err(error) => self.step_and_settle(WindowInput::BuildFinished { ok: false }, Err(error)),
            Ok(built) => {
                self.outcome.build = built.duration;
                self.outcome.notes.extend(built.notes.iter().cloned());
                self.publish(|published| published.notes.extend(built.notes.iter().cloned()));
                self.built = Some(built);
                let effect = self.step(WindowInput::BuildFinished { ok: true });
                self.begin(effect);
            }
        }
    }

    fn came_up(&mut self, outcome: Result<LiveWindow, ReplaceError>) {
        match outcome {
            // It came up in the moment in which it was stopped: the closing that is under way ends it by its launch id.
            Ok(_) if self.now(|published| published.phase) != WindowPhase::Starting => {}
            Ok(up) => {
                let generation = self.shared.assign_generation(&up.facts.launch_id);
                let up = Arc::new(up);
                self.publish(|published| {
                    published.generation = generation;
                    published.exit = None;
                    published.notes.extend(up.notes.iter().cloned());
                    published.window = Some(up);
                });
                self.step_and_settle(WindowInput::LaunchFinished { ok: true }, Ok(()));
            }
            Err(ReplaceError { error, kept: Some(old) }) => {
                self.publish(|published| published.window = Some(old));
                self.step_and_settle(WindowInput::OldWindowKept, Err(error));
            }
            Err(ReplaceError { error, kept: None }) => {
                self.step_and_settle(WindowInput::LaunchFinished { ok: false }, Err(error))
            }
        }
    }

    fn step_and_settle(&mut self, input: WindowInput, outcome: Result<()>) {
        if self.step(input) != WindowEffect::RespondToWaiters {
            return;
        }
        self.publish(|published| published.doing = None);
        if let Err(error) = &outcome {
            warn!("{error}");
        }
        let done = std::mem::take(&mut self.outcome);
        self.settle(&outcome.map(|()| done).map_err(Arc::new));
        for wish in std::mem::take(&mut self.later) {
            self.wish(wish);
        }
    }

    fn settle(&mut self, settled: &CommandResult) {
        for waiter in self.waiters.drain(..) {
            // Whoever no longer waits need not hear.
            let _ = waiter.send(settled.clone());
        }
    }

    /// The window's process has ended by itself.
    fn gone(&mut self, exit: ProcessExit) {
        let Some(up) = self.take_up() else { return };
        warn!(pid = up.facts.electron_pid, "the window ended by itself: {exit}");
        let ended = up.exit_report(exit, self.shared.deeds.describe_calls());
        if ended.is_crash() {
            self.shared.crash_loop().record_crash(Instant::now());
        }
        self.publish(|published| published.exit = Some(ended));
        if self.step(WindowInput::WindowExited) == WindowEffect::ReapAfterExit {
            operations::remove_session_files(&self.shared);
            let shared = Arc::clone(&self.shared);
            // Its remains go whatever else is under way; only the supervisor's end waits for it.
            self.shared.mourners.spawn(async move { operations::clean_up_after_exit(&shared, &up).await });
        }
    }
}

async fn ended(up: Option<&LiveWindow>) -> ProcessExit {
    match up {
        Some(up) => up.process.wait_for_exit().await,
        None => std::future::pending().await,
    }
}

fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "the window was stopped meanwhile").hint("`tether start` starts it again")
}
