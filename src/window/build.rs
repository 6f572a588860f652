//! Runs the build, and records the files that it was made from.
//!
//! The comparison point is the state of the files when the build *began*: an edit during the build makes its result
//! stale, and is built before the window is replaced. [`RepeatedBuilds`] decides how often.
//!
//! Does not depend on windows, nor on how a build step runs ([`crate::tasks::task_runner`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tether_base::error::Result;
use tether_base::sync::run_blocking;
use tether_changes::{ChangeTracker, FileSnapshot};
use tokio::time::Instant;

use super::repeated_builds::{ContentHashes, RepeatedBuilds, RoundOutcome};
use crate::config::WindowConfig;
use crate::tasks::background_tasks::{BackgroundTask, WINDOW_USER};
use crate::tasks::task_runner::{BackgroundUser, TaskQueue};

/// The time without changes after which the build, not a user, is taken to have changed files. Longer than the interval
/// in which an editor with autosave writes.
const QUIET: Duration = Duration::from_millis(1500);

/// The result of the last build, for the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    pub ok: bool,
    pub ended_at_ms: u64,
    pub duration: Duration,
    /// The last lines of its output, or the error.
    pub tail: String,
}

/// A build that has succeeded.
pub struct CompletedBuild {
    /// What was built and is to be launched; the workspace's files may contain another one by now.
    pub config: Box<WindowConfig>,
    /// The files when the build began.
    pub baseline: Arc<FileSnapshot>,
    pub duration: Duration,
    /// The last lines of its output.
    pub tail: String,
    /// What a user should know.
    pub notes: Vec<String>,
    /// The background tasks that run on with the window.
    pub background_tasks: Vec<Arc<BackgroundTask>>,
}

/// The files that the running build is made from, and those that it is known to change itself.
pub struct BuildSources {
    pub files: Arc<FileSnapshot>,
    pub by_build: Vec<PathBuf>,
}

/// A build of one workspace.
pub struct Build<'a> {
    pub config: &'a WindowConfig,
    pub tracker: &'a ChangeTracker,
    pub queue: &'a TaskQueue,
    /// Called before each round with what it is made from.
    pub on_round: &'a (dyn Fn(BuildSources) + Send + Sync),
}

impl Build<'_> {
    /// Builds until no file changes during a build, at most as often as `rounds` allows. Without build steps, only reads
    /// the files. `is_current` is called before each further round: `None` is returned if the commands are not those that
    /// the user trusts any more. Dropping the future kills the process groups of all steps.
    pub async fn run(
        &self,
        rounds: &mut RepeatedBuilds,
        is_current: impl Fn() -> Result<bool>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Option<CompletedBuild>> {
        let (config, baseline) = (Box::new(self.config.clone()), self.tracker.take_snapshot().await?);
        let mut build = CompletedBuild {
            config,
            baseline,
            duration: Duration::ZERO,
            tail: String::new(),
            notes: vec![],
            background_tasks: vec![],
        };
        if self.config.build.is_empty() {
            return Ok(Some(build));
        }
        rounds.start_build(&build.baseline);
        loop {
            (self.on_round)(BuildSources { files: Arc::clone(&build.baseline), by_build: rounds.changed_by_build() });
            let ran = self.queue.run_plan(&self.config.build, Some(self.background_user()), progress).await?;
            build.background_tasks = ran.background;
            build.duration += ran.duration;
            build.tail = ran.tail;
            build.notes =
                ran.left.iter().map(|process| format!("the build left a process behind: {process}")).collect();
            let (after, outcome) = self.finish_round(rounds, &build.baseline, progress).await?;
            match outcome {
                RoundOutcome::Done { accept } => {
                    rounds.end_build(Arc::clone(&after));
                    if accept {
                        // The window runs with what the build itself has changed.
                        build.baseline = after;
                    }
                    build.notes.extend(rounds.explanation());
                    return Ok(Some(build));
                }
                RoundOutcome::Repeat | RoundOutcome::Undecided if !is_current()? => return Ok(None),
                RoundOutcome::Repeat | RoundOutcome::Undecided => build.baseline = after,
            }
        }
    }

    fn background_user(&self) -> BackgroundUser<'static> {
        let keeps_watchers = self.config.keeps_background_tasks();
        BackgroundUser { name: WINDOW_USER, needs_new_cycle: true, keeps_watchers }
    }

    /// The files after a round, and whether another round is needed.
    async fn finish_round(
        &self,
        rounds: &mut RepeatedBuilds,
        baseline: &FileSnapshot,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<(Arc<FileSnapshot>, RoundOutcome)> {
        let after = self.tracker.take_snapshot().await?;
        let (root, changed) = (self.tracker.root().to_owned(), after.changed_paths(baseline));
        let hashes = run_blocking(move || ContentHashes::read(&root, &changed)).await;
        match rounds.add_round(hashes) {
            RoundOutcome::Undecided => {
                progress("checking whether the build itself changes tracked files");
                let later = self.wait_for_change(&after).await?;
                let outcome = rounds.decide(&later.changed_paths(&after));
                Ok((later, outcome))
            }
            outcome => Ok((after, outcome)),
        }
    }

    /// The files as soon as one of them has changed, at the latest after [`QUIET`].
    async fn wait_for_change(&self, before: &FileSnapshot) -> Result<Arc<FileSnapshot>> {
        let (mut hints, until) = (self.tracker.subscribe_hints(), Instant::now() + QUIET);
        loop {
            let timed_out = tokio::time::timeout_at(until, hints.changed()).await.is_err();
            let now = self.tracker.take_snapshot().await?;
            if timed_out || !now.changed_paths(before).is_empty() {
                return Ok(now);
            }
        }
    }
}
