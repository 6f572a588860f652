//! Which commands of workspace files the user has agreed to run.
//!
//! Opening a project must not run it. What devtools.toml, launch.json, tasks.json and package.json want to run is shown by
//! `tether trust`, and a SHA-256 of exactly that is recorded outside the workspace; a change by one byte asks again. Each
//! launch configuration is agreed to by itself, as a window and as a debug session. MCP can never record consent.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::debugging::DebugPlan;
use super::folders;
use super::named_test;
use super::plan::ConsentLine;
use super::recipe::WindowConfig;
use super::shell;
use crate::clock::now_ms;
use crate::error::{Error, ErrorContext, ErrorKind, Result};

/// What the workspace's files want to run, one line each, unambiguous.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceCommands {
    workspace: PathBuf,
    configuration: Option<String>,
    purpose: CommandPurpose,
    lines: Vec<ConsentLine>,
}

/// What commands are for: the same configuration runs other things as a window than under a debugger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandPurpose {
    #[default]
    Window,
    Debugging,
    /// Building a test before it is debugged.
    Tests,
}

/// What has been agreed to in one workspace, as it is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ConsentRecord {
    workspace: PathBuf,
    /// At most one for each configuration and purpose.
    agreed: Vec<Consent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Consent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    #[serde(default)]
    purpose: CommandPurpose,
    sha256: String,
    commands: Vec<String>,
    agreed_at: u64,
}

impl WorkspaceCommands {
    pub fn of_window(recipe: &WindowConfig) -> WorkspaceCommands {
        let (workspace, configuration) = (recipe.workspace.clone(), recipe.configuration.clone());
        WorkspaceCommands { workspace, configuration, purpose: CommandPurpose::Window, lines: recipe.consent_lines() }
    }

    pub fn of_debug_plan(it: &DebugPlan) -> WorkspaceCommands {
        let (workspace, configuration) = (it.workspace.clone(), Some(it.name.clone()));
        WorkspaceCommands { workspace, configuration, purpose: CommandPurpose::Debugging, lines: it.lines() }
    }

    /// What builds the tests of a workspace.
    pub fn of_tests(workspace: &Path) -> WorkspaceCommands {
        WorkspaceCommands {
            workspace: workspace.to_owned(),
            configuration: None,
            purpose: CommandPurpose::Tests,
            lines: named_test::build_consent_lines(),
        }
    }

    pub fn purpose(&self) -> CommandPurpose {
        self.purpose
    }

    /// Each with where it stands.
    pub fn lines(&self) -> &[ConsentLine] {
        &self.lines
    }

    pub fn texts(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.text.clone()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// SHA-256 of the lines, in hex. No line contains a line break: their values are JSON.
    pub fn digest(&self) -> String {
        hex::encode(&Sha256::digest(self.texts().join("\n")))
    }

    /// Whether the user has agreed to exactly these.
    pub fn are_trusted(&self) -> bool {
        self.require_consent().is_ok()
    }

    /// Agrees, unless the user has agreed to exactly these commands, with the error that says how to.
    pub fn require_consent(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let known = ConsentRecord::load(&self.workspace)?;
        let known = known.agreed.iter().find(|agreed| self.matches_subject(agreed));
        let reason = match known {
            Some(agreed) if agreed.sha256 == self.digest() => return Ok(()),
            Some(agreed) => self.difference(&agreed.commands),
            None => "nobody has agreed to them yet".to_owned(),
        };
        let of = match (&self.configuration, self.purpose) {
            (Some(name), _) => format!(" for {name:?}"),
            (None, CommandPurpose::Tests) => " that build its tests".to_owned(),
            (None, _) => String::new(),
        };
        let doing = format!("the commands of {}{of} are not trusted", self.workspace.display());
        let hint = format!("`{}` shows them and asks for your consent", self.trust_command());
        Err(Error::new(ErrorKind::NotTrusted, doing).because(reason).hint(hint))
    }

    /// What the user would type to be asked.
    fn trust_command(&self) -> String {
        let config = match (&self.configuration, self.purpose) {
            (Some(name), _) => format!(" --config {}", shell::quote_word(name)),
            (None, CommandPurpose::Tests) => " --tests".to_owned(),
            (None, _) => String::new(),
        };
        format!("tether trust --workspace {}{config}", shell::quote_word(&self.workspace.to_string_lossy()))
    }

    fn matches_subject(&self, agreed: &Consent) -> bool {
        agreed.configuration == self.configuration && agreed.purpose == self.purpose
    }

    fn difference(&self, agreed: &[String]) -> String {
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

    /// Records the user's consent; answers where.
    pub fn record_consent(&self) -> Result<PathBuf> {
        let file = record_path(&self.workspace)?;
        let doing = || format!("cannot record your consent in {}", file.display());
        let folder = file.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).doing(doing)?;
        let mut record = ConsentRecord::load(&self.workspace)?;
        record.workspace.clone_from(&self.workspace);
        record.agreed.retain(|agreed| !self.matches_subject(agreed));
        record.agreed.push(Consent {
            configuration: self.configuration.clone(),
            purpose: self.purpose,
            sha256: self.digest(),
            commands: self.texts(),
            agreed_at: now_ms(),
        });
        let mut draft = tempfile::NamedTempFile::new_in(folder).doing(doing)?;
        draft.write_all(&serde_json::to_vec_pretty(&record).doing(doing)?).doing(doing)?;
        draft.as_file().sync_all().doing(doing)?;
        draft.persist(&file).doing(doing)?;
        Ok(file)
    }
}

impl ConsentRecord {
    /// The record of a workspace; an empty one when there is none, or another workspace's.
    fn load(workspace: &Path) -> Result<ConsentRecord> {
        let bytes = std::fs::read(record_path(workspace)?).unwrap_or_default();
        let record: ConsentRecord = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(if record.workspace == workspace { record } else { ConsentRecord::default() })
    }
}

/// Where the record of a workspace is. A workspace must not bring its own, whatever the environment says.
fn record_path(workspace: &Path) -> Result<PathBuf> {
    let name = hex::encode(&Sha256::digest(workspace.as_os_str().as_bytes())[..8]);
    let folder = folders::config_dir()?.join("trust");
    let real = folder.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or_default();
    if real.starts_with(workspace) {
        return Err(Error::new(
            ErrorKind::NotTrusted,
            format!("cannot believe the trust records in {}", folder.display()),
        )
        .because(format!("they lie inside the workspace {}, which could bring its own", workspace.display()))
        .hint("set XDG_CONFIG_HOME to a folder outside of the workspace"));
    }
    Ok(folder.join(format!("{name}.json")))
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
    fn one_byte_more_is_another_digest_and_watching_is_no_command() {
        let files = [("package.json", "{\"scripts\": {\"compile\": \"tsc\"}}")];
        let (before, _) = commands("[build]\ncommand = ['npm', 'run', 'compile']", &files);
        assert_eq!(before.texts(), [r#"build: ["npm","run","compile"]"#, r#"script "compile": "tsc""#]);
        assert_eq!(before.lines()[1].origin.as_ref().unwrap().to_string(), "package.json:1");
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
            changed.difference(&before.texts()),
            "this has changed since you agreed: script \"compile\": \"tsc \" (package.json:1)"
        );
        assert!(commands("", &[]).0.is_empty());
    }

    #[test]
    fn the_command_that_asks_can_be_typed_as_it_is_told() {
        let check = |workspace: &str, configuration: Option<&str>, purpose: CommandPurpose, expect: &str| {
            let (workspace, configuration) = (workspace.into(), configuration.map(str::to_owned));
            let commands = WorkspaceCommands { workspace, configuration, purpose, lines: Vec::new() };
            assert_eq!(commands.trust_command(), format!("tether trust --workspace {expect}"));
        };
        check("/ws", None, CommandPurpose::Window, "/ws");
        check("/my app", Some("App"), CommandPurpose::Debugging, "'/my app' --config App");
        check("/it's", Some("Run \"it\" $X"), CommandPurpose::Window, r#"'/it'\''s' --config 'Run "it" $X'"#);
        check("/ws", None, CommandPurpose::Tests, "/ws --tests");
    }
}
