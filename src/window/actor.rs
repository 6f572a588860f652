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

use super::build::{Built, LastBuild, Rounds};
use super::shared::{Outcome, Published, Shared};
use super::state::{Effect, Input, Phase, step};
use super::up::Up;
use super::work::{self, NotSwapped};
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};
use crate::process::Exit;

/// How those who waited for a work are answered: they share its outcome.
pub type Settled = Result<Outcome, Arc<Error>>;

/// A wish, and who waits for what comes of it.
pub struct Wish {
    pub input: Input,
    pub reply: oneshot::Sender<Settled>,
}

/// What comes to the actor from the handles.
pub enum Message {
    Wish(Wish),
    /// Somebody who waited called it off; the other end of the wish's reply is gone.
    CalledOff,
}

/// What a work under way came to.
pub enum Done {
    Reconnected(Option<Up>),
    Built { outcome: Result<Built>, rounds: Rounds, took: Duration },
    Launched { outcome: Result<Up, NotSwapped>, took: Duration },
    Closed(Result<()>),
}

pub struct Actor {
    shared: Arc<Shared>,
    wishes: mpsc::Receiver<Message>,
    work: JoinSet<Done>,
    /// Who waits for the work under way.
    waiters: Vec<oneshot::Sender<Settled>>,
    /// Wishes that can be looked at only when the work under way has ended.
    later: Vec<Wish>,
    outcome: Outcome,
    /// Between a build and the launch of what it made.
    built: Option<Built>,
    rounds: Rounds,
}

impl Actor {
    pub fn new(shared: Arc<Shared>, wishes: mpsc::Receiver<Message>) -> Actor {
        Actor {
            shared,
            wishes,
            work: JoinSet::new(),
            waiters: Vec::new(),
            later: Vec::new(),
            outcome: Outcome::default(),
            built: None,
            rounds: Rounds::default(),
        }
    }

    /// Lives until the last handle is gone. First looks for the window of an earlier supervisor.
    pub async fn drive(mut self) {
        let shared = Arc::clone(&self.shared);
        self.work.spawn(async move { Done::Reconnected(work::reconnect(&shared).await) });
        loop {
            let up = self.now(|published| published.up.clone());
            tokio::select! {
                biased; // facts before wishes: a window that has ended is not kept
                exit = ended(up.as_deref()) => self.gone(exit),
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.finish(done),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => warn!("a work failed: {error}"),
                },
                wish = self.wishes.recv() => match wish {
                    Some(Message::Wish(wish)) => self.wish(wish),
                    Some(Message::CalledOff) => self.called_off(),
                    None => return,
                },
            }
        }
    }

    fn now<T>(&self, look: impl FnOnce(&Published) -> T) -> T {
        look(&self.shared.published.borrow())
    }

    fn publish(&self, change: impl FnOnce(&mut Published)) {
        self.shared.published.send_modify(change);
    }

    fn step(&mut self, input: Input) -> Effect {
        let phase = self.now(|published| published.phase);
        let (next, effect) = step(phase, input);
        if let Some(next) = next {
            info!("{phase:?} + {input:?} → {next:?}");
            self.publish(|published| published.phase = next);
        }
        effect
    }

    fn wish(&mut self, wish: Wish) {
        match self.step(wish.input) {
            Effect::Join => self.waiters.push(wish.reply),
            Effect::Wait => self.later.push(wish),
            Effect::Answer => {
                let _ = wish.reply.send(Ok(Outcome::default()));
            }
            begins => {
                // Whoever waited for the work that ends now is told so; only `Close` ends one.
                self.settle(&Err(Arc::new(stopped())));
                self.outcome = Outcome::default();
                self.publish(|published| published.notes.clear());
                self.waiters.push(wish.reply);
                self.begin(begins);
            }
        }
    }

    /// When nobody is left who waits for the build under way, it is ended.
    fn called_off(&mut self) {
        self.waiters.retain(|waiter| !waiter.is_closed());
        if self.waiters.is_empty() && self.step(Input::CalledOff) == Effect::Abandon {
            self.work.abort_all();
            self.built = None;
            self.publish(|published| published.doing = None);
            for wish in std::mem::take(&mut self.later) {
                self.wish(wish);
            }
        }
    }

    fn begin(&mut self, effect: Effect) {
        let shared = Arc::clone(&self.shared);
        match effect {
            Effect::Build => {
                let mut rounds = std::mem::take(&mut self.rounds);
                self.work.spawn(async move {
                    let started = Instant::now();
                    let outcome = work::build(&shared, &mut rounds).await;
                    Done::Built { outcome, rounds, took: started.elapsed() }
                });
            }
            Effect::Launch | Effect::Swap => {
                let old = self.take_up();
                let built = self.built.take();
                self.work.spawn(async move {
                    let started = Instant::now();
                    let outcome = work::swap(&shared, old, built).await;
                    Done::Launched { outcome, took: started.elapsed() }
                });
            }
            Effect::Close => {
                // Ends a build's group, or what a launch has started so far.
                self.work.abort_all();
                let old = self.take_up();
                self.work.spawn(async move { Done::Closed(work::close(&shared, old).await) });
            }
            Effect::Nothing
            | Effect::Abandon
            | Effect::Answer
            | Effect::Join
            | Effect::Wait
            | Effect::Settle
            | Effect::Mourn => {}
        }
    }

    fn take_up(&self) -> Option<Arc<Up>> {
        let mut up = None;
        self.publish(|published| up = published.up.take());
        up
    }

    fn finish(&mut self, done: Done) {
        match done {
            Done::Reconnected(found) => {
                match found {
                    Some(up) => self.came_up(Ok(up)),
                    None => self.step_and_settle(Input::Launched { ok: false }, Ok(())),
                }
                self.publish(|published| published.searched = true);
            }
            Done::Built { outcome, rounds, took } => {
                self.rounds = rounds;
                // One that was ended in the moment in which it was done has built nothing for anybody.
                if matches!(self.now(|published| published.phase), Phase::Building { .. }) {
                    self.built_is(outcome, took);
                }
            }
            Done::Launched { outcome, took } => {
                self.outcome.launch = took;
                self.came_up(outcome);
            }
            Done::Closed(outcome) => {
                self.publish(|published| published.exit = None);
                self.step_and_settle(Input::Closed, outcome);
            }
        }
    }

    fn built_is(&mut self, built: Result<Built>, took: Duration) {
        let ended_at_ms = now_ms();
        let last = match &built {
            Ok(built) => Some(LastBuild { ok: true, ended_at_ms, duration: built.duration, tail: built.tail.clone() }),
            Err(error) if error.kind == ErrorKind::BuildFailed => {
                Some(LastBuild { ok: false, ended_at_ms, duration: took, tail: error.to_string() })
            }
            // It was not even begun.
            Err(_) => None,
        };
        if let Some(last) = last {
            self.publish(|published| published.last_build = Some(last));
        }
        match built {
            Err(error) => self.step_and_settle(Input::Built { ok: false }, Err(error)),
            Ok(built) => {
                self.outcome.build = built.duration;
                self.outcome.notes.extend(built.notes.iter().cloned());
                self.publish(|published| published.notes.extend(built.notes.iter().cloned()));
                self.built = Some(built);
                let effect = self.step(Input::Built { ok: true });
                self.begin(effect);
            }
        }
    }

    fn came_up(&mut self, outcome: Result<Up, NotSwapped>) {
        match outcome {
            // It came up in the moment in which it was stopped: the closing that is under way ends it by its launch id.
            Ok(_) if self.now(|published| published.phase) != Phase::Starting => {}
            Ok(up) => {
                let generation = self.shared.generation_of(&up.facts.launch_id);
                let up = Arc::new(up);
                self.publish(|published| {
                    published.generation = generation;
                    published.exit = None;
                    published.notes.extend(up.notes.iter().cloned());
                    published.up = Some(up);
                });
                self.step_and_settle(Input::Launched { ok: true }, Ok(()));
            }
            Err(NotSwapped { error, kept: Some(old) }) => {
                self.publish(|published| published.up = Some(old));
                self.step_and_settle(Input::Kept, Err(error));
            }
            Err(NotSwapped { error, kept: None }) => self.step_and_settle(Input::Launched { ok: false }, Err(error)),
        }
    }

    fn step_and_settle(&mut self, input: Input, outcome: Result<()>) {
        if self.step(input) != Effect::Settle {
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

    fn settle(&mut self, settled: &Settled) {
        for waiter in self.waiters.drain(..) {
            // Whoever no longer waits need not hear.
            let _ = waiter.send(settled.clone());
        }
    }

    /// The window's process has ended by itself.
    fn gone(&mut self, exit: Exit) {
        let Some(up) = self.take_up() else { return };
        warn!(pid = up.facts.electron_pid, "the window ended by itself: {exit}");
        let ended = up.last_words(exit, self.shared.deeds.now());
        if ended.is_crash() {
            self.shared.crashes().note(Instant::now());
        }
        self.publish(|published| published.exit = Some(ended));
        if self.step(Input::Gone) == Effect::Mourn {
            work::forget(&self.shared);
            let shared = Arc::clone(&self.shared);
            // Its remains go whatever else is under way; only the supervisor's end waits for it.
            self.shared.mourners.spawn(async move { work::mourn(&shared, &up).await });
        }
    }
}

async fn ended(up: Option<&Up>) -> Exit {
    match up {
        Some(up) => up.process.exited().await,
        None => std::future::pending().await,
    }
}

fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "the window was stopped meanwhile").hint("`tether start` starts it again")
}
