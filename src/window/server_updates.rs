//! The windows of dev servers, which update their page themselves: a change is followed there, and is no reason to relaunch.
//!
//! Does not depend on how a server tells its page: [`super::page`] does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::clipped_text::first_chars;
use tether_base::clock::{monotonic_ms, now_ms};
use tether_base::error::Result;
use tether_changes::ChangeReport;

use super::live_window::{LiveWindow, format_server_error};
use super::page::{ConsoleMessage, ConsoleSource, UpdateOutcome, follow_server_update};
use super::window_handle::Window;
use crate::config::{StepCompletion, WindowConfig};

/// Files that decide what runs: after a change of one, the window is relaunched.
const COMMAND_FILES: &[&str] = &["devtools.toml", "package.json", ".vscode/launch.json", ".vscode/tasks.json"];

/// How many of the newest console messages are looked at for errors, and how much of one is shown.
const MAX_MESSAGES: usize = 200;
const MAX_ERROR_CHARS: usize = 300;

/// Whether the dev server of a window updates its page after these changes.
pub(super) async fn is_updated_by_server(window: &Window, live: &LiveWindow, check: &ChangeReport) -> bool {
    let tasks = live.background_tasks();
    let servers = || tasks.iter().filter(|task| task.process.is_alive());
    let Ok(config) = window.context.read_config() else { return false };
    let mut facts = ServerFacts {
        lists_all_changes: check.changed.len() == check.total,
        changed: check.changed.iter().map(|change| change.path.clone()).collect(),
        runs: servers().next().is_some(),
        runs_only_servers: runs_only_servers(&config),
        has_same_settings: has_same_settings(live, config),
        is_connected: servers().any(|task| task.address.get().is_some()),
    };
    if !facts.is_connected && (ServerFacts { is_connected: true, ..facts.clone() }).updates_page() {
        facts.is_connected = live.page().await.is_ok_and(|page| page.has_server_channel());
    }
    facts.updates_page()
}

/// Lets the dev server's update of the page end, and compares the files with those of now from then on. Returns what
/// has come of the change that is described as `because`.
pub(super) async fn follow_dev_server(window: &Window, live: &Arc<LiveWindow>, because: &str) -> Result<String> {
    let tracker = window.tracker()?;
    let files = tracker.take_snapshot().await?;
    // After the snapshot: an update for what has changed since is not one for these files.
    let since = tracker.last_noticed().await?.unwrap_or_else(monotonic_ms);
    let noticed_ms = now_ms().saturating_sub(monotonic_ms().saturating_sub(since));
    let page = live.page().await?;
    let outcome = follow_server_update(&page, since).await?;
    page.mark_loads_told();
    let errors = new_errors(&window.context.history.last_messages(MAX_MESSAGES, noticed_ms));
    let is_current = window.watch().borrow().window.as_ref().is_some_and(|now| Arc::ptr_eq(now, live));
    if is_current {
        window.context.save_baseline(&live.session.launch_id, &files).await?;
        window.context.set_baseline(&tracker, files).await;
    }
    Ok(match outcome {
        UpdateOutcome::UpdatedInPlace => {
            format!(
                "{because}: the dev server updated the page in place{}",
                errors.unwrap_or(", and it stays".to_owned())
            )
        }
        UpdateOutcome::LoadedByServer => {
            format!("{because}: the dev server reloaded the page{}", errors.unwrap_or_default())
        }
        UpdateOutcome::Reloaded => {
            let errors = errors.unwrap_or_default();
            format!("{because}: the page was reloaded, since its dev server announced no update{errors}")
        }
        UpdateOutcome::Failed(text) => {
            format!("{because}: {}", format_server_error(&text))
        }
    })
}

/// What the page says of its new code: `; 1 new error: …`. `None`: nothing.
fn new_errors(messages: &[ConsoleMessage]) -> Option<String> {
    let is_error = |message: &&ConsoleMessage| {
        let of_page = matches!(message.source, ConsoleSource::Page | ConsoleSource::Iframe | ConsoleSource::Worker);
        of_page && matches!(message.level.as_str(), "error" | "exception")
    };
    let errors: Vec<&ConsoleMessage> = messages.iter().filter(is_error).collect();
    let first = errors.first()?.text.lines().next().unwrap_or_default();
    let first = first_chars(first, MAX_ERROR_CHARS);
    Some(match errors.len() {
        1 => format!("; 1 new error: {first}"),
        count => format!("; {count} new errors, the first: {first}"),
    })
}

/// What decides whether a dev server alone takes up a change.
#[derive(Clone, Debug)]
struct ServerFacts {
    /// Whether `changed` has all changes.
    lists_all_changes: bool,
    /// Relative to the tracked folder.
    changed: Vec<PathBuf>,
    /// Whether a server of the window runs.
    runs: bool,
    /// Whether nothing else is built before a launch.
    runs_only_servers: bool,
    /// Whether the window would be launched, and its server started, as they were.
    has_same_settings: bool,
    /// Whether the page is the server's, or has a connection to it.
    is_connected: bool,
}

impl ServerFacts {
    fn updates_page(&self) -> bool {
        let ServerFacts { lists_all_changes, changed, runs, runs_only_servers, has_same_settings, is_connected } = self;
        let decides_commands = |path: &PathBuf| COMMAND_FILES.iter().any(|file| path == Path::new(file));
        let changes_code = *lists_all_changes && !changed.iter().any(decides_commands);
        changes_code && *runs && *runs_only_servers && *has_same_settings && *is_connected
    }
}

/// Also by what is in no tracked file, such as a file of environment variables. It is not known of a window that is found again.
fn has_same_settings(window: &LiveWindow, config: WindowConfig) -> bool {
    let Some(from) = &window.launched_from else { return true };
    let config = config.with_environment_values();
    from.configuration == config.configuration
        && from.window == config.window
        && from.consent_lines() == config.consent_lines()
}

/// Whether nothing ends before a launch that a change would have to be built with.
fn runs_only_servers(config: &WindowConfig) -> bool {
    let steps = &config.build.steps;
    !steps.is_empty() && !steps.iter().any(|step| matches!(step.completion, StepCompletion::OnExit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_new_code_are_counted_and_the_first_is_shown() {
        let message = |source, level: &str, text: &str| ConsoleMessage {
            at: 1,
            source,
            level: level.to_owned(),
            text: text.to_owned(),
            location: None,
        };
        let log = message(ConsoleSource::Page, "log", "hot updated");
        let thrown = message(ConsoleSource::Page, "exception", "TypeError: x is undefined\n    at app.js:1");
        let workbench = message(ConsoleSource::Workbench, "error", "noise");
        assert_eq!(new_errors(&[log.clone(), workbench]), None);
        assert_eq!(new_errors(&[log, thrown.clone()]).unwrap(), "; 1 new error: TypeError: x is undefined");
        let two = new_errors(&[thrown.clone(), thrown]).unwrap();
        assert_eq!(two, "; 2 new errors, the first: TypeError: x is undefined");
    }

    #[test]
    fn a_change_is_left_to_the_server_only_if_everything_that_decides_it_speaks_for_that() {
        let facts = || ServerFacts {
            lists_all_changes: true,
            changed: vec!["src/app.js".into(), "sub/package.json".into()],
            runs: true,
            runs_only_servers: true,
            has_same_settings: true,
            is_connected: true,
        };
        assert!(facts().updates_page());
        let with_file = |file: &str| ServerFacts { changed: vec!["src/app.js".into(), file.into()], ..facts() };
        for (input, changed) in [
            ("more changes than are listed", ServerFacts { lists_all_changes: false, ..facts() }),
            ("the server has exited", ServerFacts { runs: false, ..facts() }),
            ("a build step", ServerFacts { runs_only_servers: false, ..facts() }),
            ("other settings", ServerFacts { has_same_settings: false, ..facts() }),
            ("no connection to the page", ServerFacts { is_connected: false, ..facts() }),
            ("devtools.toml", with_file("devtools.toml")),
            ("package.json", with_file("package.json")),
            ("launch.json", with_file(".vscode/launch.json")),
            ("tasks.json", with_file(".vscode/tasks.json")),
        ] {
            assert!(!changed.updates_page(), "{input}");
        }
    }
}
