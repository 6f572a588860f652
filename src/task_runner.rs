//! Runs the steps of a build, or the tasks before and after a debug session: in order, each in its own process group,
//! under one deadline.
//!
//! ```text
//!  by exit:      started ──────────────exit 0──▶ done          (anything else: failed)
//!  after cycle:  started ──end pattern──▶ its group is ended ──▶ done, unless the cycle had errors
//! ```
//! A watcher is ended with its first cycle: tether builds when it is needed, and two writers of one folder would race.
//! Dropping the future ends every group. Does not depend on trackers, windows or sessions.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::OnceCell;

use crate::config::{BackgroundCycle, BuildPlan, BuildStep, DEVTOOLS_TOML, StepCompletion, StepOrder};
use crate::error::{Error, ErrorKind, Result};
use crate::process::{self, CapturedCommand, FinishedCommand, LAUNCH_ID, RunOutcome, clean_environment};

/// How much of the output is kept, and goes into the error of a build that failed.
const TAIL_LINES: usize = 40;

/// The result of all steps.
#[derive(Debug, Default)]
pub struct BuildRun {
    pub duration: Duration,
    /// The last lines of what they printed, in the order in which they ended.
    pub tail: String,
    /// Processes that they have left running.
    pub left: Vec<String>,
}

/// Runs a plan. `mark` is the launch id of every process of it. Errors: the first step that failed, with its last lines.
pub async fn run_plan(plan: &BuildPlan, mark: &str, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<BuildRun> {
    let started = Instant::now();
    let runner = TaskRunner {
        plan,
        mark,
        progress,
        deadline: started + plan.timeout,
        done: plan.steps.iter().map(|_| OnceCell::new()).collect(),
        ran: Mutex::default(),
    };
    runner.order(&plan.order).await?;
    let mut ran = runner.ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    ran.duration = started.elapsed();
    ran.tail = last_lines(&ran.tail);
    Ok(ran)
}

struct TaskRunner<'a> {
    plan: &'a BuildPlan,
    mark: &'a str,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    deadline: Instant,
    /// A step that several others wait for runs once.
    done: Vec<OnceCell<()>>,
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

    async fn step(&self, step: &BuildStep) -> Result<()> {
        (self.progress)(&format!("building: {}", step.label));
        let own = step.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let what = CapturedCommand {
            argv: step.argv.iter().map(OsString::from).collect(),
            cwd: step.cwd.clone(),
            env: clean_environment(own.chain([(LAUNCH_ID, self.mark)])),
            timeout: self.deadline.saturating_duration_since(Instant::now()),
        };
        let (finished, tail) = match &step.completion {
            StepCompletion::OnExit => {
                let finished = process::run_command(&what, std::future::pending()).await;
                let finished = finished.map_err(|error| start_error(step, error))?;
                let tail = last_lines(&finished.tail);
                match finished.is_success() {
                    true => (finished, tail),
                    false => return Err(self.failed(step, &self.how(step, &finished), &tail)),
                }
            }
            StepCompletion::AfterCycle(cycle) => self.cycle(step, cycle, &what).await?,
        };
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        ran.tail = [ran.tail.as_str(), &tail].join("\n").trim_start().to_owned();
        ran.left.extend(finished.held_by);
        Ok(())
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
        let finished = process::run_until_line(what, |line| {
            let (before, ended) = (reading.error_count(), reading.is_ended());
            reading.read_line(line);
            if !ended || reading.error_count() > before {
                lines.push_back(line.to_owned());
                lines.drain(..lines.len().saturating_sub(TAIL_LINES));
            }
            reading.is_ended()
        });
        let finished = finished.await.map_err(|error| start_error(step, error))?;
        let tail = last_lines(&lines.make_contiguous().join("\n"));
        let how = match (finished.outcome, reading.error_count()) {
            // A watcher that ends well has done its work, too.
            (RunOutcome::Cancelled, 0) => return Ok((finished, tail)),
            (RunOutcome::Exited(exit), 0) if exit.is_success() => return Ok((finished, tail)),
            (RunOutcome::Cancelled, 1) => "failed with 1 error".to_owned(),
            (RunOutcome::Cancelled, errors) => format!("failed with {errors} errors"),
            (RunOutcome::TimedOut, _) => {
                let within = humantime::format_duration(self.plan.timeout);
                format!("did not print its end pattern `{}` within {within} and was stopped", cycle.ends_pattern)
            }
            (RunOutcome::Exited(exit), _) => {
                format!("ended before it printed its end pattern `{}`: {exit}", cycle.ends_pattern)
            }
        };
        Err(self.failed(step, &how, &tail))
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
        let error = Error::new(ErrorKind::BuildFailed, format!("the build `{}` ({}) {how}", step.label, step.origin));
        let error = if tail.is_empty() { error } else { error.because(tail) };
        let error = match Instant::now() >= self.deadline {
            false => error,
            true => {
                let error = error.hint(format!("[build] timeout in {DEVTOOLS_TOML} gives it more time"));
                match matches!(step.completion, StepCompletion::OnExit) && !step.origin.file.ends_with(DEVTOOLS_TOML) {
                    true => error
                        .hint("a task that never ends needs `isBackground` and a `problemMatcher` with an end pattern"),
                    false => error,
                }
            }
        };
        error.hint(format!("`{}` runs it by hand", step.shell_command_with_cd()))
    }
}

fn start_error(step: &BuildStep, error: Error) -> Error {
    let kind = if error.kind == ErrorKind::MissingTool { ErrorKind::MissingTool } else { ErrorKind::BuildFailed };
    let doing = format!("the build `{}` cannot be run", step.label);
    Error::new(kind, doing).because(error).hint(format!("check {}", step.origin))
}

/// Without colours, and without the clearing of the screen with which watchers begin.
fn last_lines(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    let all: Vec<_> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(TAIL_LINES)..].join("\n")
}
