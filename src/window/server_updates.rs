//! The windows of dev servers, which update their page themselves: a change is followed there, and is no reason to relaunch.
//!
//! Does not depend on how a server tells its page: [`super::page`] does.

use std::path::Path;
use std::sync::Arc;

use super::launch_id::baseline_file_of;
use super::live_window::{LiveWindow, format_server_error};
use super::page::{UpdateOutcome, follow_server_update};
use super::window_handle::Window;
use crate::changes::{ChangeReport, FileChange};
use crate::config::{StepCompletion, WindowConfig};
use crate::error::Result;

/// Files that decide what runs: after a change of one, the window is relaunched.
const COMMAND_FILES: &[&str] = &["devtools.toml", "package.json", ".vscode/launch.json", ".vscode/tasks.json"];

impl Window {
    /// Whether the dev server of a window updates its page after these changes: it runs, nothing else is built before a
    /// launch, and the page is connected to it.
    pub(super) async fn is_updated_by_server(&self, window: &LiveWindow, check: &ChangeReport) -> bool {
        let decides_commands = |change: &FileChange| COMMAND_FILES.iter().any(|file| change.path == Path::new(file));
        let is_complete = check.changed.len() == check.total;
        let servers = || window.background_tasks.iter().filter(|task| task.process.is_alive());
        if !is_complete || check.changed.iter().any(decides_commands) || servers().next().is_none() {
            return false;
        }
        let Ok(config) = self.context.read_config() else { return false };
        runs_only_servers(&config)
            && (servers().any(|task| task.address.get().is_some())
                || window.page().await.is_ok_and(|page| page.has_server_channel()))
    }

    /// Lets the dev server's update of the page end, and compares the files with those of now from then on. Returns what
    /// has come of the change `newest`, described as `because`.
    pub(super) async fn follow_dev_server(
        &self,
        window: &Arc<LiveWindow>,
        newest: &FileChange,
        because: &str,
    ) -> Result<String> {
        let tracker = self.tracker()?;
        let files = tracker.take_snapshot().await?;
        let outcome = follow_server_update(&*window.page().await?, newest.modified_at_ms).await?;
        let is_current = self.watch().borrow().window.as_ref().is_some_and(|now| Arc::ptr_eq(now, window));
        if is_current {
            files.save(&baseline_file_of(&self.context.paths.state, &window.session.launch_id))?;
            self.context.set_baseline(&tracker, files).await;
        }
        Ok(match outcome {
            UpdateOutcome::UpdatedInPlace => {
                format!("{because}: the dev server updated the page in place, and it stays")
            }
            UpdateOutcome::LoadedByServer => format!("{because}: the dev server reloaded the page"),
            UpdateOutcome::Reloaded => {
                format!("{because}: the page was reloaded, since its dev server announced no update")
            }
            UpdateOutcome::Failed(text) => {
                format!("{because}: {}", format_server_error(&text))
            }
        })
    }
}

/// Whether nothing ends before a launch that a change would have to be built with.
fn runs_only_servers(config: &WindowConfig) -> bool {
    let steps = &config.build.steps;
    !steps.is_empty() && !steps.iter().any(|step| matches!(step.completion, StepCompletion::OnExit))
}
