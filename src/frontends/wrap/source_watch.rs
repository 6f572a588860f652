//! Whether the sources are newer than the running server, and the build that comes before its restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::error::{Error, ErrorContext, Result};
use tether_changes::{ChangeTracker, FileChange, FileSnapshot};
use tether_process::{CapturedCommand, RunOutcome, clean_environment, run_command};

use crate::config::trust::WorkspaceCommands;
use crate::config::{self, BuildPlan, BuildStep, Settings, StepCompletion, WindowConfig};
use crate::supervisor::connect::SupervisorPaths;

/// Changes that were tried: their number, and those that are listed.
type ChangedFiles = (usize, Vec<FileChange>);

pub(super) struct SourceWatch {
    tracker: ChangeTracker,
    workspace: PathBuf,
    build: Option<BuildPlan>,
    /// For these no server came up.
    tried: Option<ChangedFiles>,
}

impl SourceWatch {
    /// Errors: the workspace cannot be watched; what it wants to build with is not trusted.
    pub fn open(workspace: &Path) -> Result<SourceWatch> {
        let settings = WindowConfig::watch_settings(workspace, None)?;
        let paths = SupervisorPaths::of_workspace(workspace)?;
        std::fs::create_dir_all(&paths.state).doing(|| format!("cannot make {}", paths.state.display()))?;
        let options = config::tracker_options(workspace, &settings, &paths.state)?;
        let build = trusted_build(workspace)?;
        Ok(SourceWatch { tracker: ChangeTracker::start(options), workspace: workspace.to_owned(), build, tried: None })
    }

    /// The files as they are now. Errors: they cannot be read.
    pub async fn take_current(&self) -> Result<Arc<FileSnapshot>> {
        self.tracker.take_snapshot().await
    }

    /// The running server is of these files.
    pub async fn set_current(&mut self, files: Arc<FileSnapshot>) {
        self.tracker.set_baseline(files).await;
        self.tried = None;
    }

    /// The newest change since the server was started, unless no server came up for it.
    pub async fn find_change(&self) -> Option<String> {
        let (_, newest) = self.changed_files().await.filter(|(changed, _)| self.tried.as_ref() != Some(changed))?;
        Some(newest)
    }

    /// For what has changed until now no server comes up: it is not tried again.
    pub async fn mark_tried(&mut self) {
        self.tried = self.changed_files().await.map(|(changed, _)| changed);
    }

    async fn changed_files(&self) -> Option<(ChangedFiles, String)> {
        let report = self.tracker.compare_with_baseline().await.ok()?;
        let newest = report.newest.as_ref().filter(|_| report.stale).map(ToString::to_string)?;
        Some(((report.total, report.changed), newest))
    }

    /// Runs the build, if there is one. Errors: it fails, with its last lines.
    pub async fn build(&self) -> Result<()> {
        let Some(build) = &self.build else { return Ok(()) };
        for step in &build.steps {
            self.run_step(step, build).await?;
        }
        Ok(())
    }

    async fn run_step(&self, step: &BuildStep, build: &BuildPlan) -> Result<()> {
        let env = clean_environment(step.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        let argv = step.argv.iter().map(Into::into).collect();
        let command = CapturedCommand { argv, cwd: step.cwd.clone(), env, timeout: build.timeout };
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
