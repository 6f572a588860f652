//! Which commands of workspace files the user has agreed to run.
//!
//! Opening a project must not run it. What `devtools.toml` wants to run is shown by `tether trust`, and a SHA-256 of
//! exactly that is recorded outside the workspace; a change by one byte asks again. MCP can never record consent.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{FILE_NAME, Settings, WindowKind, folders};
use crate::error::{Context, Error, Kind, Result};

/// What the workspace's files want to run, one line each, unambiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands(Vec<String>);

/// What has been agreed to, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    workspace: PathBuf,
    sha256: String,
    commands: Vec<String>,
    agreed_at: u64,
}

impl Commands {
    /// The commands of these settings.
    pub fn of(settings: &Settings) -> Commands {
        let (window, mut lines) = (&settings.window, Vec::new());
        if !settings.build.command.is_empty() {
            lines.push(format!("build: {}", json!(settings.build.command)));
        }
        let mut line = |name: &str, value: serde_json::Value| match &value {
            serde_json::Value::Null => {}
            value if value.as_array().is_some_and(Vec::is_empty) => {}
            value if value.as_object().is_some_and(serde_json::Map::is_empty) => {}
            value => lines.push(format!("window.{name}: {value}")),
        };
        line("kind", json!(window.kind.map(WindowKind::name)));
        line("program", json!(window.program));
        line("url", json!(window.url));
        line("command", json!(window.command));
        line("args", json!(window.args));
        line("env", json!(window.env));
        line("browser", json!(window.browser));
        line("node", json!(window.node));
        line("codeServer", json!(window.code_server));
        line("vscode", json!(window.vscode));
        line("extension", json!(window.extension));
        line("profile", json!(window.profile));
        Commands(lines)
    }

    pub fn lines(&self) -> &[String] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// SHA-256 of the lines, in hex.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.0.join("\n")))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the files of a (canonical) workspace want to run.
pub fn effective(workspace: &Path) -> Result<Commands> {
    Ok(Commands::of(&Settings::load(workspace)?))
}

/// Agrees, unless the user has agreed to exactly these commands, with the error that says how to.
pub fn check(workspace: &Path, settings: &Settings) -> Result<()> {
    let wanted = Commands::of(settings);
    if wanted.is_empty() {
        return Ok(());
    }
    let known =
        std::fs::read(record_of(workspace)?).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    let reason = match known {
        Some(record) if record.workspace != workspace => "nobody has agreed to them yet".to_owned(),
        Some(record) if record.sha256 == wanted.digest() => return Ok(()),
        Some(record) => match wanted.0.iter().find(|line| !record.commands.contains(line)) {
            Some(line) => format!("this has changed since you agreed: {line}"),
            None => "they have changed since you agreed".to_owned(),
        },
        None => "nobody has agreed to them yet".to_owned(),
    };
    Err(Error::new(
        Kind::NotTrusted,
        format!("the commands of {} are not trusted", workspace.join(FILE_NAME).display()),
    )
    .because(reason)
    .hint(format!("`tether trust --workspace {}` shows them and asks for your consent", workspace.display())))
}

/// Records the user's consent; answers where.
pub fn record(workspace: &Path, commands: &Commands) -> Result<PathBuf> {
    let file = record_of(workspace)?;
    let doing = || format!("cannot record your consent in {}", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).doing(doing)?;
    let record = Record {
        workspace: workspace.to_owned(),
        sha256: commands.digest(),
        commands: commands.0.clone(),
        agreed_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64),
    };
    let mut draft = tempfile::NamedTempFile::new_in(folder).doing(doing)?;
    draft.write_all(&serde_json::to_vec_pretty(&record).doing(doing)?).doing(doing)?;
    draft.as_file().sync_all().doing(doing)?;
    draft.persist(&file).doing(doing)?;
    Ok(file)
}

fn record_of(workspace: &Path) -> Result<PathBuf> {
    let name = hex(&Sha256::digest(workspace.as_os_str().as_bytes())[..8]);
    Ok(folders::config()?.join("trust").join(format!("{name}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn one_byte_more_is_another_digest_and_watching_is_no_command() {
        let before = Commands::of(&settings("[build]\ncommand = ['npm', 'run', 'compile']"));
        assert_eq!(before.lines(), [r#"build: ["npm","run","compile"]"#]);
        let check = |text: &str, same: bool| {
            assert_eq!(Commands::of(&settings(text)).digest() == before.digest(), same, "{text}");
        };
        check("[build]\ncommand = ['npm', 'run', 'compile']\ntimeout = '5m'\n[watch]\nroot = 'src'", true);
        check("[build]\ncommand = ['npm', 'run', 'compile ']", false);
        check("[build]\ncommand = ['npm', 'run compile']", false);
        check("[build]\ncommand = ['npm', 'run', 'compile']\n[window]\nenv = { A = '1' }", false);
        check("[build]\ncommand = ['npm', 'run', 'compile']\n[window]\nkind = 'node'", false);
        assert!(Commands::of(&Settings::default()).is_empty());
    }
}
