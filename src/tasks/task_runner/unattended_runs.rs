//! Runs of plans that go on when their caller has left, for [`UNATTENDED_LIMIT`]: the next call with the same plan finds the
//! run, or its result.
//!
//! ```text
//!  begun ──▶ a caller waits ──result──▶ answered, forgotten
//!               │      ▲
//!      it leaves│      │the next call with this plan
//!               ▼      │
//!           unattended ─┴─result: kept──▶ UNATTENDED_LIMIT, or the user's Ctrl-C: ended, its background tasks too
//! ```
//! Does not depend on who calls, nor on what counts as a source.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorData, ErrorKind, Result};
use tether_base::sync::lock;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::info;

/// How long a build or a task goes on without a caller that waits for it.
pub const UNATTENDED_LIMIT: Duration = Duration::from_secs(5 * 60);

/// The runs of a queue with a result `T`, and the tasks that drive them; clones share them.
pub struct UnattendedRuns<T>(Arc<SharedRuns<T>>);

struct SharedRuns<T> {
    runs: Mutex<Vec<Arc<PlanRun<T>>>>,
    drivers: Mutex<JoinSet<()>>,
}

/// Receives a short line about the current step of a run.
pub type ReportStep = Box<dyn Fn(&str) + Send + Sync>;

/// A plan, as the runs know it.
pub struct RunPlan {
    /// The same for the same plan.
    pub digest: String,
    /// For messages.
    pub label: String,
}

impl<T> Clone for UnattendedRuns<T> {
    fn clone(&self) -> Self {
        UnattendedRuns(Arc::clone(&self.0))
    }
}

impl<T> Default for UnattendedRuns<T> {
    fn default() -> Self {
        UnattendedRuns(Arc::new(SharedRuns { runs: Mutex::default(), drivers: Mutex::default() }))
    }
}

/// What a run has to know of its caller.
pub struct RunCaller<'a> {
    /// Receives a short line about the current step.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
    /// Whether the user gives up what the call has begun.
    pub is_interrupted: &'a (dyn Fn() -> bool + Send + Sync),
    /// Whether a source has changed since this time, epoch milliseconds.
    pub changed_since: &'a (dyn Fn(u64) -> BoxFuture<'a, bool> + Send + Sync),
}

/// One run of a plan.
struct PlanRun<T> {
    plan: RunPlan,
    began_ms: u64,
    /// Whether it was begun instead of one that was ended since sources had changed. It is not ended for that: the tasks may
    /// change sources themselves.
    follows_obsolete: bool,
    attendance: watch::Sender<Attendance>,
    progress: watch::Sender<Option<String>>,
    result: watch::Sender<Option<Result<T, Arc<Error>>>>,
}

/// Who waits for a run.
#[derive(Clone, Copy, Debug)]
struct Attendance {
    callers: usize,
    /// When the last caller has left; of no meaning while there are some.
    left: Instant,
    is_ended: bool,
}

/// A caller that waits for a run, until it is dropped.
struct WaitingCaller<'a, T> {
    run: Arc<PlanRun<T>>,
    is_interrupted: &'a (dyn Fn() -> bool + Send + Sync),
}

impl<T> Drop for WaitingCaller<'_, T> {
    fn drop(&mut self) {
        let is_interrupted = (self.is_interrupted)();
        self.run.attendance.send_modify(|attendance| {
            attendance.callers -= 1;
            attendance.left = Instant::now();
            attendance.is_ended |= is_interrupted && attendance.callers == 0;
        });
    }
}

impl<T: Clone> PlanRun<T> {
    /// Resolves when nobody has waited for it for [`UNATTENDED_LIMIT`], or it was given up.
    async fn wait_until_given_up(&self) {
        let mut attendance = self.attendance.subscribe();
        loop {
            let now = *attendance.borrow_and_update();
            if now.is_ended {
                return;
            }
            tokio::select! {
                () = sleep_until(now.left + UNATTENDED_LIMIT), if now.callers == 0 => return,
                _ = attendance.changed() => {}
            }
        }
    }

    fn end(&self) {
        self.attendance.send_modify(|attendance| attendance.is_ended = true);
    }

    async fn wait_for_result(&self, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<T> {
        let (mut result, mut steps) = (self.result.subscribe(), self.progress.subscribe());
        loop {
            if let Some(step) = steps.borrow_and_update().as_deref() {
                progress(step);
            }
            // The senders are in `self`.
            tokio::select! {
                biased;
                Ok(result) = result.wait_for(Option::is_some) => if let Some(result) = result.clone() {
                    return result.map_err(|error| ErrorData::from(&*error).into());
                },
                _ = steps.changed() => {}
            }
        }
    }
}

impl<T: Clone + Send + Sync + 'static> UnattendedRuns<T> {
    /// Runs a plan with `start`. The run goes on for a while when this future is dropped, unless its user has interrupted it.
    /// Joins a run of the same plan whose caller has left, if no source has changed since it began; otherwise that one is
    /// ended. Returns also what a user should know of the result.
    pub async fn run_attended(
        &self,
        plan: RunPlan,
        caller: RunCaller<'_>,
        start: impl FnOnce(ReportStep) -> BoxFuture<'static, Result<T>>,
    ) -> Result<(T, Option<String>)> {
        let (mut waiting, mut note) = (self.join(&plan.digest, &caller), None);
        let mut follows_obsolete = false;
        if let Some(joined) = &waiting
            && (caller.changed_since)(joined.run.began_ms).await
        {
            let label = &joined.run.plan.label;
            if joined.run.follows_obsolete {
                note = Some(format!("files have changed since {label} began, which continued without a caller"));
            } else {
                info!("{label} is ended: files have changed since it began, and no call waited for it");
                joined.run.end();
                follows_obsolete = true;
                waiting = None;
            }
        }
        let waiting = waiting.unwrap_or_else(|| {
            let run = self.begin_run(plan, follows_obsolete, start);
            WaitingCaller { run, is_interrupted: caller.is_interrupted }
        });
        let result = waiting.run.wait_for_result(caller.progress).await;
        // It is the result of this call alone: the next one begins another run.
        self.forget(&waiting.run);
        waiting.run.end();
        Ok((result?, note))
    }

    /// Takes a run of this plan for which nobody waits: its caller waits for it from then on.
    fn join<'a>(&self, digest: &str, caller: &RunCaller<'a>) -> Option<WaitingCaller<'a, T>> {
        let runs = lock(&self.0.runs);
        let is_unattended = |run: &&Arc<PlanRun<T>>| {
            let attendance = *run.attendance.borrow();
            run.plan.digest == digest && attendance.callers == 0 && !attendance.is_ended
        };
        let run = Arc::clone(runs.iter().find(is_unattended)?);
        run.attendance.send_modify(|attendance| attendance.callers += 1);
        Some(WaitingCaller { run, is_interrupted: caller.is_interrupted })
    }

    /// Begins a run that one caller waits for.
    fn begin_run(
        &self,
        plan: RunPlan,
        follows_obsolete: bool,
        start: impl FnOnce(ReportStep) -> BoxFuture<'static, Result<T>>,
    ) -> Arc<PlanRun<T>> {
        let run = Arc::new(PlanRun {
            plan,
            began_ms: now_ms(),
            follows_obsolete,
            attendance: watch::Sender::new(Attendance { callers: 1, left: Instant::now(), is_ended: false }),
            progress: watch::Sender::new(None),
            result: watch::Sender::new(None),
        });
        lock(&self.0.runs).push(Arc::clone(&run));
        let reported = Arc::clone(&run);
        let running = start(Box::new(move |step| drop(reported.progress.send_replace(Some(step.to_owned())))));
        let driver = self.clone().drive_run(Arc::clone(&run), running);
        let mut drivers = lock(&self.0.drivers);
        while drivers.try_join_next().is_some() {}
        drivers.spawn(driver);
        run
    }

    async fn drive_run(self, run: Arc<PlanRun<T>>, running: BoxFuture<'static, Result<T>>) {
        let result = tokio::select! {
            result = running => result.map_err(Arc::new),
            () = run.wait_until_given_up() => {
                let ended = Error::new(ErrorKind::Cancelled, format!("{} was ended", run.plan.label));
                Err(Arc::new(ended.because("no call waited for it")))
            }
        };
        run.result.send_replace(Some(result));
        let mut attendance = run.attendance.subscribe();
        while !self.forget_attended(&run) {
            // Nobody waits: the next call gets the result.
            tokio::select! {
                _ = attendance.wait_for(|attendance| attendance.callers > 0) => {}
                () = run.wait_until_given_up() => return self.forget(&run),
            }
        }
    }

    /// Forgets a run if a caller waits for its result.
    fn forget_attended(&self, run: &Arc<PlanRun<T>>) -> bool {
        let mut runs = lock(&self.0.runs);
        let is_attended = run.attendance.borrow().callers > 0;
        if is_attended {
            runs.retain(|other| !Arc::ptr_eq(other, run));
        }
        is_attended
    }

    fn forget(&self, run: &Arc<PlanRun<T>>) {
        lock(&self.0.runs).retain(|other| !Arc::ptr_eq(other, run));
    }

    /// The runs that go on, or have ended, without a caller that waits for them: one sentence each.
    pub fn describe_unattended(&self) -> Vec<String> {
        let describe = |run: &Arc<PlanRun<T>>| {
            let attendance = *run.attendance.borrow();
            let left = (attendance.left + UNATTENDED_LIMIT).saturating_duration_since(Instant::now()).as_secs();
            let what = if run.result.borrow().is_some() { "has ended and is kept" } else { "still runs" };
            let is_unattended = attendance.callers == 0 && !attendance.is_ended;
            is_unattended.then(|| {
                format!("{} {what} without a caller, for another {left} s: the next call finds it", run.plan.label)
            })
        };
        lock(&self.0.runs).iter().filter_map(describe).collect()
    }

    /// Ends all runs: the supervisor exits.
    pub async fn end_all(&self) {
        let mut drivers = std::mem::take(&mut *lock(&self.0.drivers));
        drivers.shutdown().await;
        lock(&self.0.runs).clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::FutureExt;
    use tokio::sync::Notify;

    use super::*;

    /// A run that ends when it may, and says that it has begun, ended or been dropped.
    #[derive(Default)]
    struct Fixture {
        runs: UnattendedRuns<usize>,
        log: Arc<Mutex<Vec<&'static str>>>,
        go: Arc<Notify>,
        interrupted: AtomicBool,
    }

    struct Logged(Arc<Mutex<Vec<&'static str>>>);

    impl Drop for Logged {
        fn drop(&mut self) {
            lock(&self.0).push("dropped");
        }
    }

    impl Fixture {
        async fn run(&self, has_changed: bool) -> Result<(usize, Option<String>)> {
            let plan = RunPlan { digest: "a".to_owned(), label: "the task \"slow\"".to_owned() };
            let caller = RunCaller {
                progress: &|step| assert_eq!(step, "begun"),
                is_interrupted: &|| self.interrupted.load(Ordering::Relaxed),
                changed_since: &|_| async move { has_changed }.boxed(),
            };
            let (log, go) = (Arc::clone(&self.log), Arc::clone(&self.go));
            let start = |report: ReportStep| {
                lock(&log).push("begun");
                let logged = Logged(log);
                async move {
                    report("begun");
                    go.notified().await;
                    lock(&logged.0).push("ended");
                    std::mem::forget(logged);
                    Ok(7)
                }
                .boxed()
            };
            self.runs.run_attended(plan, caller, start).await
        }

        /// Calls, and leaves once it waits.
        async fn call_and_leave(&self, has_changed: bool, is_interrupted: bool) {
            let call = self.run(has_changed);
            tokio::pin!(call);
            tokio::select! {
                biased;
                _ = &mut call => panic!("it cannot end"),
                () = std::future::ready(()) => {}
            }
            self.interrupted.store(is_interrupted, Ordering::Relaxed);
        }

        fn log(&self) -> Vec<&'static str> {
            lock(&self.log).clone()
        }

        async fn wait_for_log(&self, expected: &[&str]) {
            while self.log() != expected {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_run_goes_on_without_its_caller_and_the_next_call_joins_it() {
        let fixture = Fixture::default();
        for _ in 0..4 {
            fixture.call_and_leave(false, false).await;
        }
        let notes = fixture.runs.describe_unattended();
        assert!(notes[0].starts_with("the task \"slow\" still runs without a caller"), "{notes:?}");
        fixture.go.notify_one();
        assert_eq!(fixture.run(false).await.unwrap(), (7, None));
        assert_eq!(fixture.log(), ["begun", "ended"]);
        assert!(fixture.runs.describe_unattended().is_empty());
        // A caller that has waited to the end has its result: the next call is another one.
        fixture.go.notify_one();
        fixture.run(false).await.unwrap();
        assert_eq!(fixture.log(), ["begun", "ended"].repeat(2));
    }

    #[tokio::test]
    async fn the_result_of_a_run_that_ends_without_a_caller_is_that_of_the_next_call() {
        let fixture = Fixture::default();
        fixture.call_and_leave(false, false).await;
        fixture.go.notify_one();
        fixture.wait_for_log(&["begun", "ended"]).await;
        assert_eq!(fixture.run(false).await.unwrap(), (7, None));
        assert_eq!(fixture.log(), ["begun", "ended"]);
        fixture.call_and_leave(false, false).await;
        fixture.runs.end_all().await;
        assert_eq!(fixture.log(), ["begun", "ended", "begun", "dropped"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_is_ended_once_nobody_has_waited_for_it_for_the_time_limit() {
        let fixture = Fixture::default();
        fixture.call_and_leave(false, false).await;
        tokio::time::advance(UNATTENDED_LIMIT - Duration::from_secs(1)).await;
        // A call that joins it begins the time anew.
        fixture.call_and_leave(false, false).await;
        tokio::time::advance(UNATTENDED_LIMIT - Duration::from_secs(1)).await;
        assert_eq!(fixture.runs.describe_unattended().len(), 1);
        assert_eq!(fixture.log(), ["begun"]);
        tokio::time::advance(Duration::from_secs(2)).await;
        fixture.wait_for_log(&["begun", "dropped"]).await;
        while !fixture.runs.describe_unattended().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_interrupt_ends_a_run_that_nobody_else_waits_for() {
        let fixture = Fixture::default();
        fixture.call_and_leave(false, true).await;
        fixture.wait_for_log(&["begun", "dropped"]).await;
    }

    #[tokio::test]
    async fn newer_sources_end_a_run_that_nobody_waits_for_once() {
        let fixture = Fixture::default();
        fixture.call_and_leave(false, false).await;
        fixture.call_and_leave(true, false).await;
        fixture.wait_for_log(&["begun", "begun", "dropped"]).await;
        // The tasks may change sources themselves.
        fixture.go.notify_one();
        let (_, note) = fixture.run(true).await.unwrap();
        assert!(note.unwrap().starts_with("files have changed since the task \"slow\" began"));
        assert_eq!(fixture.log(), ["begun", "begun", "dropped", "ended"]);
    }
}
