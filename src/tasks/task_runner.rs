//! Runs the steps of a build, or the tasks before and after a debug session: in order, each in its own process group,
//! under one deadline. A workspace has one queue of them.
//!
//! ```text
//!  by exit:      started ──────────────exit 0──▶ done          (anything else: failed)
//!  after cycle:  started ──end pattern──▶ its group is ended ──▶ done, unless the cycle had errors
//!                                    └──▶ it runs on with the window or session that uses it (background_tasks)
//!  after address: started ──it listens on the address that it prints──▶ it runs on
//! ```
//! The watcher of an extension host is ended with its first cycle: tether builds when it is needed, and two writers of one
//! folder would race. Dropping the future ends every group, and what it has started in the background. Does not depend on
//! trackers, windows or sessions.

mod unattended_runs;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::try_join_all;
use sha2::{Digest, Sha256};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::lock;
use tether_process::{CapturedCommand, FinishedCommand, LAUNCH_ID, RunOutcome, clean_environment};
use tokio::sync::{MutexGuard, OnceCell};

use crate::config::{BackgroundCycle, BuildPlan, BuildStep, DEVTOOLS_TOML, StepCompletion, StepOrder};
use crate::tasks::background_tasks::{BackgroundTask, BackgroundTasks, TaskCommand, describe_other_server};

use self::unattended_runs::{ReportStep, RunPlan, UnattendedRuns};
pub use self::unattended_runs::{RunCaller, UNATTENDED_LIMIT};

/// How much of the output is kept, and goes into the error of a build that failed.
const TAIL_LINES: usize = 40;

/// Between SIGTERM and SIGKILL of what a build that was given up has left.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// The result of all steps.
#[derive(Clone, Default)]
pub struct BuildRun {
    pub duration: Duration,
    /// The last lines of what they printed, in the order in which they ended.
    pub tail: String,
    /// Processes that they have left running.
    pub left: Vec<String>,
    /// What a user should know besides.
    pub notes: Vec<String>,
    /// The background tasks that run on; one that nothing refers to is stopped.
    pub background: Vec<Arc<BackgroundTask>>,
}

/// Who uses the background tasks of a plan after it.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundUser<'a> {
    /// The name of the window or the session.
    pub name: &'a str,
    /// Whether a running task must complete another cycle: it is started again, unless it is a server.
    pub needs_new_cycle: bool,
    /// Whether watchers run on, too; otherwise only dev servers do.
    pub keeps_watchers: bool,
}

/// The builds and tasks of one workspace: two at a time would write the same files.
pub struct TaskQueue {
    turn: tokio::sync::Mutex<()>,
    /// The launch id of their processes, by which a later supervisor finds remaining ones.
    pub launch_id: String,
    pub background: BackgroundTasks,
    unattended: UnattendedRuns<BuildRun>,
}

impl TaskQueue {
    /// An empty queue.
    pub fn new(launch_id: String, background: BackgroundTasks) -> TaskQueue {
        TaskQueue { turn: tokio::sync::Mutex::default(), launch_id, background, unattended: UnattendedRuns::default() }
    }

    /// Whether a build or a task runs.
    pub fn is_busy(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Waits until no other build or task runs; none begins while the guard is held.
    pub async fn wait_for_turn(&self, progress: &(dyn Fn(&str) + Send + Sync)) -> MutexGuard<'_, ()> {
        if let Ok(turn) = self.turn.try_lock() {
            return turn;
        }
        progress("waiting for another build or task to end");
        self.turn.lock().await
    }

    /// Ends what a build or task that was given up has left, unless another one runs. Errors: a process cannot be ended.
    pub async fn end_leftovers(&self) -> Result<()> {
        let Ok(_turn) = self.turn.try_lock() else { return Ok(()) };
        let swept = tether_process::sweep_launch(&self.launch_id, None, LEFTOVER_GRACE).await;
        swept.map(drop).doing(|| "cannot end what a build has left".to_owned())
    }

    /// As [`TaskQueue::run_plan`], but the run goes on for a while when this future is dropped, and another call with the same
    /// plan finds it: see `unattended_runs`.
    pub async fn run_attended(
        self: &Arc<Self>,
        plan: &BuildPlan,
        user: BackgroundUser<'static>,
        caller: RunCaller<'_>,
    ) -> Result<BuildRun> {
        let labels: Vec<String> = plan.steps.iter().map(|step| step.secrets.mask(&step.label)).collect();
        let run_plan = RunPlan {
            digest: hex::encode(Sha256::digest(format!("{plan:?} {user:?}"))),
            label: format!("the task {:?}", labels.join(", ")),
        };
        let (queue, plan) = (Arc::clone(self), plan.clone());
        let start = |report: ReportStep| async move { queue.run_plan(&plan, Some(user), &*report).await }.boxed();
        let (mut ran, note) = self.unattended.run_attended(run_plan, caller, start).await?;
        ran.notes.extend(note);
        Ok(ran)
    }

    /// The tasks that run on, or have ended, without a caller that waits for them: one sentence each.
    pub fn describe_unattended(&self) -> Vec<String> {
        self.unattended.describe_unattended()
    }

    /// Ends the tasks of [`TaskQueue::run_attended`]: the supervisor exits.
    pub async fn end_runs(&self) {
        self.unattended.end_all().await;
    }

    /// Runs a plan in its turn. Its background tasks run on for `user`; without one they are ended after their first
    /// cycle. Errors: the first step that failed, with its last lines.
    pub async fn run_plan(
        &self,
        plan: &BuildPlan,
        user: Option<BackgroundUser<'_>>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<BuildRun> {
        let _turn = self.wait_for_turn(progress).await;
        let started = Instant::now();
        let runner = TaskRunner {
            plan,
            queue: self,
            user,
            progress,
            deadline: started + plan.timeout,
            done: plan.steps.iter().map(|_| OnceCell::new()).collect(),
            shared_done: plan.shared.iter().map(|_| OnceCell::new()).collect(),
            ran: Mutex::default(),
        };
        runner.order(&plan.order).await?;
        let mut ran = runner.ran.into_inner().unwrap_or_else(PoisonError::into_inner);
        ran.duration = started.elapsed();
        ran.tail = last_lines(&ran.tail);
        Ok(ran)
    }

    /// Runs a step of a plan that only checks: beside builds and tasks, since it writes nothing. Errors: it has failed, with its
    /// last lines.
    pub async fn run_check(&self, plan: &BuildPlan, step: usize) -> Result<()> {
        let runner = TaskRunner {
            plan,
            queue: self,
            user: None,
            progress: &|_| {},
            deadline: Instant::now() + plan.timeout,
            done: Vec::new(),
            shared_done: Vec::new(),
            ran: Mutex::default(),
        };
        match plan.steps.get(step) {
            Some(step) => runner.step(step).await,
            None => Ok(()),
        }
    }
}

struct TaskRunner<'a> {
    plan: &'a BuildPlan,
    queue: &'a TaskQueue,
    user: Option<BackgroundUser<'a>>,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    deadline: Instant,
    /// A step that several others wait for runs once.
    done: Vec<OnceCell<()>>,
    /// The same for the shared tasks.
    shared_done: Vec<OnceCell<()>>,
    ran: Mutex<BuildRun>,
}

impl TaskRunner<'_> {
    fn order<'s>(&'s self, order: &'s StepOrder) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 's>> {
        Box::pin(async move {
            match order {
                StepOrder::Step(index) => {
                    let done = &self.done[*index];
                    done.get_or_try_init(|| self.step(&self.plan.steps[*index])).await.copied()
                }
                StepOrder::Shared(index) => {
                    let run = || self.order(&self.plan.shared[*index].order);
                    self.shared_done[*index].get_or_try_init(run).await.copied()
                }
                StepOrder::Sequence(orders) => {
                    for order in orders {
                        self.order(order).await?;
                    }
                    Ok(())
                }
                StepOrder::Parallel(orders) => {
                    try_join_all(orders.iter().map(|order| self.order(order))).await.map(drop)
                }
            }
        })
    }

    /// No value of the step's variables is in its error, nor in what is kept of its output.
    async fn step(&self, step: &BuildStep) -> Result<()> {
        self.run_step(step).await.map_err(|error| step.secrets.mask_error(error))
    }

    async fn run_step(&self, step: &BuildStep) -> Result<()> {
        (self.progress)(&format!("building: {}", step.label));
        match (&step.completion, self.user) {
            (StepCompletion::AfterCycle(cycle), Some(user)) if user.keeps_watchers => {
                return self.run_in_background(step, Some(cycle), user).await;
            }
            (StepCompletion::AfterAddress, Some(user)) => return self.run_in_background(step, None, user).await,
            _ => {}
        }
        let own = step.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let what = CapturedCommand {
            argv: step.argv.iter().map(OsString::from).collect(),
            cwd: step.cwd.clone(),
            env: clean_environment(own.chain([(LAUNCH_ID, self.queue.launch_id.as_str())])),
            timeout: self.deadline.saturating_duration_since(Instant::now()),
        };
        let (finished, tail) = match &step.completion {
            // Without anyone who uses it, a server would only be started to be ended.
            StepCompletion::AfterAddress => return Ok(()),
            StepCompletion::OnExit => {
                let finished = tether_process::run_command(&what, std::future::pending()).await;
                let finished = finished.map_err(|error| start_error(step, error))?;
                let tail = last_lines(&finished.tail);
                match finished.is_success() {
                    true => (finished, tail),
                    false => return Err(self.failed(step, &self.how(step, &finished), &tail)),
                }
            }
            StepCompletion::AfterCycle(cycle) => self.cycle(step, cycle, &what).await?,
        };
        self.add_tail(step, &tail);
        lock(&self.ran).left.extend(finished.held_by);
        Ok(())
    }

    fn add_tail(&self, step: &BuildStep, tail: &str) {
        let mut ran = lock(&self.ran);
        ran.tail = [ran.tail.as_str(), &step.secrets.mask(tail)].join("\n").trim_start().to_owned();
    }

    /// A background task that runs on: starts it and waits for its first cycle (a dev server, which has none: for its
    /// address), or uses the one that runs.
    async fn run_in_background(
        &self,
        step: &BuildStep,
        cycle: Option<&BackgroundCycle>,
        user: BackgroundUser<'_>,
    ) -> Result<()> {
        let all = &self.queue.background;
        let BuildStep { label, argv, cwd, env, secrets, .. } = step;
        let command = TaskCommand { label, argv, cwd, env, secrets };
        if let Some(running) = all.find_ready(command) {
            if !user.needs_new_cycle || running.is_listening().await {
                all.add_user(&running, user.name);
                lock(&self.ran).background.push(running);
                return Ok(());
            }
            running.stop().await;
        }
        let task = all.start(command, user.name).await.map_err(|error| start_error(step, error))?;
        let failure = match cycle {
            Some(cycle) => self.wait_for_cycle(&task, cycle).await,
            None => self.wait_for_address(&task).await,
        };
        let tail = output_tail(&task);
        if let Some(how) = failure {
            return Err(self.failed(step, &how, &tail));
        }
        all.mark_ready(&task);
        self.add_tail(step, &tail);
        lock(&self.ran).background.push(task);
        Ok(())
    }

    /// Waits for the first cycle of a background task; returns how it has failed.
    async fn wait_for_cycle(&self, task: &BackgroundTask, cycle: &BackgroundCycle) -> Option<String> {
        let mut reading = cycle.start_tracking();
        let cycle_end = tether_process::wait_for_line(&task.output, 0, |line| reading.read_line(line).then_some(()));
        let outcome = self.wait_for_task(task, cycle_end).await.err().unwrap_or(RunOutcome::Cancelled);
        if let RunOutcome::Exited(_) = outcome {
            // What it printed last may not have been read yet.
            reading = cycle.start_tracking();
            for line in output_tail(task).lines() {
                reading.read_line(line);
            }
        }
        self.cycle_failure(cycle, outcome, reading.error_count())
    }

    /// Waits until a dev server listens on the address that it prints; returns how it has failed.
    async fn wait_for_address(&self, task: &BackgroundTask) -> Option<String> {
        let outcome = self.wait_for_task(task, task.find_address()).await;
        Some(match outcome {
            Ok(address) => {
                self.queue.background.set_address(task, address);
                return None;
            }
            Err(RunOutcome::Exited(exit)) => format!("ended before it served a page: {exit}"),
            Err(RunOutcome::TimedOut | RunOutcome::Cancelled) => {
                let within = humantime::format_duration(self.plan.timeout);
                format!("did not print the address of a page that it serves within {within} and was stopped")
            }
        })
    }

    /// Waits for what a background task does; `Err`: it exits first, or the deadline passes.
    async fn wait_for_task<T>(
        &self,
        task: &BackgroundTask,
        ready: impl Future<Output = std::io::Result<T>>,
    ) -> Result<T, RunOutcome> {
        tokio::select! {
            biased;
            // Where its output cannot be read, its exit or the deadline is next.
            Ok(value) = ready => Ok(value),
            exit = task.process.wait_for_exit() => Err(RunOutcome::Exited(exit)),
            () = tokio::time::sleep_until(self.deadline.into()) => Err(RunOutcome::TimedOut),
        }
    }

    /// A background task to the end of its first cycle.
    async fn cycle(
        &self,
        step: &BuildStep,
        cycle: &BackgroundCycle,
        what: &CapturedCommand,
    ) -> Result<(FinishedCommand, String)> {
        let mut reading = cycle.start_tracking();
        // What it prints when it is ended is not the build's.
        let mut lines = VecDeque::new();
        let finished = tether_process::run_until_line(what, |line| {
            let (before, ended) = (reading.error_count(), reading.ended);
            reading.read_line(line);
            if !ended || reading.error_count() > before {
                lines.push_back(line.to_owned());
                lines.drain(..lines.len().saturating_sub(TAIL_LINES));
            }
            reading.ended
        });
        let finished = finished.await.map_err(|error| start_error(step, error))?;
        let tail = last_lines(&lines.make_contiguous().join("\n"));
        match self.cycle_failure(cycle, finished.outcome, reading.error_count()) {
            None => Ok((finished, tail)),
            Some(how) => Err(self.failed(step, &how, &tail)),
        }
    }

    /// How a first cycle has failed: `Cancelled` means that it was completed.
    fn cycle_failure(&self, cycle: &BackgroundCycle, outcome: RunOutcome, errors: usize) -> Option<String> {
        Some(match (outcome, errors) {
            // A watcher that ends well has done its work, too.
            (RunOutcome::Cancelled, 0) => return None,
            (RunOutcome::Exited(exit), 0) if exit.is_success() => return None,
            (RunOutcome::Cancelled, 1) => "failed with 1 error".to_owned(),
            (RunOutcome::Cancelled, errors) => format!("failed with {errors} errors"),
            (RunOutcome::TimedOut, _) => {
                let within = humantime::format_duration(self.plan.timeout);
                format!("did not print its end pattern `{}` within {within} and was stopped", cycle.ends_pattern)
            }
            (RunOutcome::Exited(exit), _) => {
                format!("ended before it printed its end pattern `{}`: {exit}", cycle.ends_pattern)
            }
        })
    }

    fn how(&self, step: &BuildStep, finished: &FinishedCommand) -> String {
        match finished.outcome {
            RunOutcome::TimedOut => {
                let within = humantime::format_duration(self.plan.timeout);
                let all = if self.plan.steps.len() > 1 { ", all steps together," } else { "" };
                format!("did not end within {within}{all} and was stopped")
            }
            RunOutcome::Cancelled => "was stopped".to_owned(),
            RunOutcome::Exited(exit) => format!("failed: {exit} ({})", step.shell_command()),
        }
    }

    fn failed(&self, step: &BuildStep, how: &str, tail: &str) -> Error {
        let doing = format!("the build `{}` ({}) {how}", step.label, step.origin);
        let mut error = Error::new(ErrorKind::BuildFailed, doing);
        if !tail.is_empty() {
            error = error.because(format!("its last output:\n{tail}"));
        }
        if Instant::now() >= self.deadline {
            error = error.hint(format!("[build] timeout in {DEVTOOLS_TOML} gives it more time"));
            if matches!(step.completion, StepCompletion::OnExit) && !step.origin.file.ends_with(DEVTOOLS_TOML) {
                error = error
                    .hint("a task that never ends needs `isBackground` and a `problemMatcher` with an end pattern");
            }
        }
        match describe_other_server(tail) {
            Some(other) => error.hint(other),
            None => error.hint(format!("`{}` runs it by hand", step.shell_command_with_cd())),
        }
    }
}

fn start_error(step: &BuildStep, error: Error) -> Error {
    let kind = if error.kind == ErrorKind::MissingTool { ErrorKind::MissingTool } else { ErrorKind::BuildFailed };
    let doing = format!("the build `{}` cannot be run", step.label);
    Error::new(kind, doing).because(error).hint(format!("check {}", step.origin))
}

/// The last lines of a background task.
fn output_tail(task: &BackgroundTask) -> String {
    last_lines(&tether_process::read_tail(&task.output, TAIL_LINES).unwrap_or_default())
}

/// Without colours, and without the clearing of the screen with which watchers begin.
fn last_lines(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    let all: Vec<_> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(TAIL_LINES)..].join("\n")
}
