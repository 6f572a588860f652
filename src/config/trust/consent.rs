//! The commands that the files of a workspace run, and whether the user has consented to exactly these.
//!
//! Opening a project must not run it. `tether trust` lists what devtools.toml, launch.json, tasks.json and package.json
//! run, and records a SHA-256 of it outside of the workspace; a change of one byte needs consent again. Consent is
//! separate for each launch configuration, and for its window and its debug sessions. MCP can never record consent.
//! Which npm scripts count: [`crate::config::npm::consented_scripts`].

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::file_owner::other_owner;

use crate::config::consent_line::ConsentLine;
use crate::config::extension_tests::test_source::ExtensionTestSource;
use crate::config::named_test::resolve::build_consent_lines;
use crate::config::trust::consent_record::{CommandPurpose, Consent, ConsentRecord};
use crate::config::trust::programs::program_lines;
use crate::config::vscode::debug_plan::DebugPlan;
use crate::config::vscode::shell_quoting::quote_word;
use crate::config::window_config::WindowConfig;

/// What the files of a workspace run for one purpose, one line each.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceCommands {
    workspace: PathBuf,
    configuration: Option<String>,
    /// What the commands are for.
    pub purpose: CommandPurpose,
    /// One line per command, setting or script, with its origin.
    pub lines: Vec<ConsentLine>,
}

impl WorkspaceCommands {
    /// The build and the window.
    pub fn of_window(config: &WindowConfig) -> WorkspaceCommands {
        let configuration = config.configuration.clone();
        let commands = WorkspaceCommands::empty(&config.workspace, CommandPurpose::Window);
        WorkspaceCommands { configuration, ..commands }.with_lines(config.consent_lines())
    }

    /// The tasks and programs of a launch configuration, or of a compound.
    pub fn of_debug_plan(plan: &DebugPlan) -> WorkspaceCommands {
        let configuration = Some(plan.name.clone());
        let commands = WorkspaceCommands::empty(&plan.workspace, CommandPurpose::Debugging);
        WorkspaceCommands { configuration, ..commands }.with_lines(plan.consent_lines())
    }

    /// The command that builds the tests of a workspace.
    pub fn of_tests(workspace: &Path) -> WorkspaceCommands {
        WorkspaceCommands::empty(workspace, CommandPurpose::Tests).with_lines(build_consent_lines())
    }

    /// What builds and runs the tests of an extension.
    pub fn of_extension_tests(source: &ExtensionTestSource) -> WorkspaceCommands {
        let configuration = source.configuration.clone();
        let commands = WorkspaceCommands::empty(&source.workspace, CommandPurpose::ExtensionTests);
        WorkspaceCommands { configuration, ..commands }.with_lines(source.consent_lines())
    }

    /// The workspace's own interpreters and debug adapters. Consent to each: [`consented_programs`].
    ///
    /// [`consented_programs`]: crate::config::trust::consented_programs
    pub fn of_programs(workspace: &Path) -> WorkspaceCommands {
        WorkspaceCommands::empty(workspace, CommandPurpose::Programs).with_lines(program_lines(workspace))
    }

    /// No commands.
    pub(super) fn empty(workspace: &Path, purpose: CommandPurpose) -> WorkspaceCommands {
        WorkspaceCommands { workspace: workspace.to_owned(), configuration: None, purpose, lines: Vec::new() }
    }

    /// With the owner of the workspace as a last line, if that is another user.
    fn with_lines(self, mut lines: Vec<ConsentLine>) -> WorkspaceCommands {
        let owner = owner_line(&self.workspace).filter(|_| !lines.is_empty());
        lines.extend(owner);
        WorkspaceCommands { lines, ..self }
    }

    /// The texts of the lines.
    pub fn texts(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.text.clone()).collect()
    }

    /// Whether nothing is run.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// SHA-256 of the lines, in hex. No line contains a line break: their values are JSON.
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.texts().join("\n")))
    }

    /// Whether the user has consented to exactly these commands.
    pub fn are_trusted(&self) -> bool {
        self.require_consent().is_ok()
    }

    /// Errors: the user has not consented to exactly these commands; the hint is the command with which they do.
    pub fn require_consent(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let record = ConsentRecord::load(&self.workspace)?;
        let reason = match record.find(self.configuration.as_deref(), self.purpose) {
            Some(consent) if consent.sha256 == self.digest() => return Ok(()),
            Some(consent) => self.describe_change(&consent.commands),
            None => "consent to them is not recorded yet".to_owned(),
        };
        let of = match &self.configuration {
            Some(name) => format!(" for {name:?}"),
            None if self.purpose == CommandPurpose::Tests => " that build its tests".to_owned(),
            None if self.purpose == CommandPurpose::ExtensionTests => " that run its tests".to_owned(),
            None => String::new(),
        };
        let doing = format!("the commands of {}{of} are not trusted", self.workspace.display());
        let hint = format!("`{}` shows them and asks for your consent", self.trust_command());
        Err(Error::new(ErrorKind::NotTrusted, doing).because(reason).hint(hint))
    }

    /// The command that lists these commands and records consent.
    pub fn trust_command(&self) -> String {
        let config = match &self.configuration {
            Some(name) => format!(" --config {}", quote_word(name)),
            None if matches!(self.purpose, CommandPurpose::Tests | CommandPurpose::ExtensionTests) => {
                " --tests".to_owned()
            }
            None if self.purpose == CommandPurpose::Programs => " --programs".to_owned(),
            None => String::new(),
        };
        format!("tether trust --workspace {}{config}", quote_word(&self.workspace.to_string_lossy()))
    }

    fn describe_change(&self, agreed: &[String]) -> String {
        let new = self.lines.iter().find(|line| !agreed.contains(&line.text));
        if let Some(ConsentLine { text, origin }) = new {
            let at = origin.as_ref().map(|origin| format!(" ({origin})")).unwrap_or_default();
            return format!("this has changed since you agreed: {text}{at}");
        }
        let texts = self.texts();
        match agreed.iter().find(|text| !texts.contains(text)) {
            Some(gone) => format!("this has been taken out since you agreed: {gone}"),
            None => "their order has changed since you agreed".to_owned(),
        }
    }

    /// Records the user's consent; returns the path of the record.
    pub fn record_consent(&self) -> Result<PathBuf> {
        let consent = Consent {
            configuration: self.configuration.clone(),
            purpose: self.purpose,
            sha256: self.digest(),
            commands: self.texts(),
            agreed_at: now_ms(),
        };
        ConsentRecord::save(&self.workspace, consent)
    }
}

/// What consent to the commands of another user's workspace includes: the programs behind them are theirs. As git's
/// `safe.directory`, consent is to that owner.
pub(super) fn owner_line(workspace: &Path) -> Option<ConsentLine> {
    let owner = other_owner(workspace)?;
    let text = format!("owner: the workspace belongs to user {owner}, who can change at any time what is run");
    Some(ConsentLine { text, origin: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(toml: &str, files: &[(&str, &str)]) -> (WorkspaceCommands, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("devtools.toml"), toml).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        (WorkspaceCommands::of_window(&WindowConfig::resolve(folder.path(), None).unwrap()), folder)
    }

    #[test]
    fn a_change_of_one_byte_changes_the_digest_and_watch_settings_do_not() {
        let files = [("package.json", "{\"scripts\": {\"compile\": \"tsc\"}}")];
        let (before, _) = commands("[build]\ncommand = ['npm', 'run', 'compile']", &files);
        assert_eq!(before.texts(), [r#"build: ["npm","run","compile"]"#, r#"script "compile": "tsc""#]);
        assert_eq!(before.lines[1].origin.as_ref().unwrap().to_string(), "package.json:1");
        let check = |text: &str, same: bool| {
            assert_eq!(commands(text, &files).0.digest() == before.digest(), same, "{text}");
        };
        check("[build]\ncommand = ['npm', 'run', 'compile']\ntimeout = '5m'\n[watch]\nroot = 'src'", true);
        check("[build]\ncommand = ['npm', 'run', 'compile ']", false);
        check("[build]\ncommand = ['npm', 'run compile']", false);
        check("[build]\ncommand = ['npm', 'run', 'compile']\n[window]\nenv = { A = '1' }", false);
        check("[build]\ncommand = ['npm', 'run', 'compile']\n[window]\nkind = 'node'", false);
        let other = [("package.json", "{\"scripts\": {\"compile\": \"tsc \"}}")];
        let (changed, _) = commands("[build]\ncommand = ['npm', 'run', 'compile']", &other);
        assert_eq!(
            changed.describe_change(&before.texts()),
            "this has changed since you agreed: script \"compile\": \"tsc \" (package.json:1)"
        );
        assert!(commands("", &[]).0.is_empty());
    }

    #[test]
    fn the_trust_command_is_quoted_for_a_shell() {
        let check = |workspace: &str, configuration: Option<&str>, purpose: CommandPurpose, expect: &str| {
            let (workspace, configuration) = (workspace.into(), configuration.map(str::to_owned));
            let commands = WorkspaceCommands { workspace, configuration, purpose, lines: Vec::new() };
            assert_eq!(commands.trust_command(), format!("tether trust --workspace {expect}"));
        };
        check("/ws", None, CommandPurpose::Window, "/ws");
        check("/my app", Some("App"), CommandPurpose::Debugging, "'/my app' --config App");
        check("/it's", Some("Run \"it\" $X"), CommandPurpose::Window, r#"'/it'\''s' --config 'Run "it" $X'"#);
        check("/ws", None, CommandPurpose::Tests, "/ws --tests");
        check("/ws", None, CommandPurpose::Programs, "/ws --programs");
    }
}
