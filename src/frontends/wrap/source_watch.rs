//! Whether the sources are newer than the running server, and the build that comes before its restart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, Result};
use tether_changes::{ChangeTracker, FileChange, FileSnapshot};
use tether_process::{CapturedCommand, RunOutcome, clean_environment, run_command};

use crate::config::trust::WorkspaceCommands;
use crate::config::{self, BuildPlan, BuildStep, Settings, StepCompletion, WindowConfig};
use crate::supervisor::connect::SupervisorPaths;

/// After so many builds in a row that have written the same files, these are taken for the build's own.
const MAX_ROUNDS: u32 = 3;

/// The tracked files that differ from those of the running server: their number, and those that are listed.
type ChangedFiles = (usize, Vec<FileChange>);

/// What makes the next server necessary.
pub(super) struct SourceChange {
    files: ChangedFiles,
    /// The newest file, for readers.
    pub newest: String,
}

/// Cheap to clone: the clones share the watch.
#[derive(Clone)]
struct Sources {
    tracker: ChangeTracker,
    workspace: PathBuf,
    build: Option<Arc<BuildPlan>>,
}

pub(super) struct SourceWatch {
    sources: Sources,
    /// For these no server came up.
    tried: Option<ChangedFiles>,
    /// The files that had changed while the last server was built, and in how many builds in a row: a build may write them.
    written: BTreeSet<PathBuf>,
    rounds: u32,
}

impl SourceWatch {
    /// Errors: the workspace cannot be watched; what it wants to build with is not trusted.
    pub fn open(workspace: &Path) -> Result<SourceWatch> {
        let settings = WindowConfig::watch_settings(workspace, None)?;
        let paths = SupervisorPaths::of_workspace(workspace)?;
        std::fs::create_dir_all(&paths.state).doing(|| format!("cannot make {}", paths.state.display()))?;
        let options = config::tracker_options(workspace, &settings, &paths.state)?;
        let build = trusted_build(workspace)?.map(Arc::new);
        let sources = Sources { tracker: ChangeTracker::start(options), workspace: workspace.to_owned(), build };
        Ok(SourceWatch { sources, tried: None, written: BTreeSet::new(), rounds: 0 })
    }

    /// Runs the build, if there is one. Returns the files of before it: what changes from there on is newer than the build. Errors:
    /// the files cannot be read; the build fails, with its last lines.
    pub fn build(&self) -> impl Future<Output = Result<Arc<FileSnapshot>>> + Send + 'static {
        let sources = self.sources.clone();
        async move {
            let before = sources.tracker.take_snapshot().await?;
            for step in sources.build.iter().flat_map(|build| build.written_steps()) {
                sources.run_step(step).await?;
            }
            Ok(before)
        }
    }

    /// The running server is of these files.
    pub async fn set_current(&mut self, files: Arc<FileSnapshot>) {
        self.sources.tracker.set_baseline(files).await;
        self.tried = None;
        if self.sources.build.is_none() {
            return;
        }
        let change = self.sources.changed_files().await;
        let written = change.iter().flat_map(|change| &change.files.1).map(|file| file.path.clone()).collect();
        if self.is_written_by_each_build(written)
            && let Ok(now) = self.sources.tracker.take_snapshot().await
        {
            self.sources.tracker.set_baseline(now).await;
        }
    }

    /// What each build writes is no edit.
    fn is_written_by_each_build(&mut self, written: BTreeSet<PathBuf>) -> bool {
        let is_again = !written.is_empty() && written.is_subset(&self.written);
        self.rounds = if is_again { self.rounds + 1 } else { 1 };
        self.written = written;
        is_again && self.rounds >= MAX_ROUNDS
    }

    /// The newest change since the server was started, unless no server came up for it.
    pub async fn find_change(&self) -> Option<SourceChange> {
        self.sources.changed_files().await.filter(|change| self.tried.as_ref() != Some(&change.files))
    }

    /// For a change no server comes up: it is not tried again. What has changed since then is, unless each attempt writes it.
    pub async fn mark_tried(&mut self, tried: Option<SourceChange>) {
        let now = self.sources.changed_files().await;
        let files = |of: Option<&SourceChange>| of.map(|of| of.files.1.clone()).unwrap_or_default();
        let before = files(tried.as_ref());
        let is_new = |file: &&FileChange| !before.contains(file);
        let written = files(now.as_ref()).iter().filter(is_new).map(|file| file.path.clone()).collect::<BTreeSet<_>>();
        let is_same = written.is_empty() || self.is_written_by_each_build(written);
        self.tried = if is_same { now } else { tried }.map(|change| change.files);
    }
}

impl Sources {
    async fn changed_files(&self) -> Option<SourceChange> {
        let report = self.tracker.compare_with_baseline().await.ok()?;
        let newest = report.newest.as_ref().filter(|_| report.stale).map(ToString::to_string)?;
        Some(SourceChange { files: (report.total, report.changed), newest })
    }

    async fn run_step(&self, step: &BuildStep) -> Result<()> {
        let env = clean_environment(step.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        let argv = step.argv.iter().map(Into::into).collect();
        let timeout = self.build.as_ref().map_or(Duration::MAX, |build| build.timeout);
        let command = CapturedCommand { argv, cwd: step.cwd.clone(), env, timeout };
        let finished = run_command(&command, std::future::pending()).await?;
        if finished.is_success() {
            return Ok(());
        }
        let how = match finished.outcome {
            RunOutcome::Exited(exit) => format!("it {exit}"),
            _ => "it was not finished".to_owned(),
        };
        let tail = step.secrets.mask(&finished.tail);
        let error = Error::other(format!("the build `{}` failed in {}", step.label, self.workspace.display()));
        Err(error.because(format!("{how}; its last lines:\n{tail}")))
    }
}

/// The `[build]` of devtools.toml; what other files describe is the build of a window. Errors: it is not trusted; it runs on.
fn trusted_build(workspace: &Path) -> Result<Option<BuildPlan>> {
    if Settings::load(workspace)?.build.command.is_none_or(|command| command.is_empty()) {
        return Ok(None);
    }
    let config = WindowConfig::resolve(workspace, None)?.with_environment_values();
    WorkspaceCommands::of_window(&config).require_consent()?;
    if config.build.steps.iter().any(|step| !matches!(step.completion, StepCompletion::OnExit)) {
        let error = Error::usage("cannot build before a restart").because("the build is a watcher, which runs on");
        return Err(error.hint("set `[build] command` in devtools.toml to a command that ends"));
    }
    Ok(Some(config.build))
}
