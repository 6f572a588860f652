//! The file that records which commands of a workspace the user has consented to, outside of the workspace.
//!
//! Does not depend on what the commands are for.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::xdg;

use crate::config::source_file::replace_file;

/// What commands are for: a launch configuration runs other commands as a window than under a debugger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandPurpose {
    /// Building and launching the window.
    #[default]
    Window,
    /// A debug session of a launch configuration.
    Debugging,
    /// Building a test before it is debugged.
    Tests,
    /// Building and running the tests of an extension.
    ExtensionTests,
    /// The workspace's own interpreters and debug adapters; the digest is not compared, but each line.
    Programs,
}

/// Every consent of one workspace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ConsentRecord {
    workspace: PathBuf,
    /// At most one per configuration and purpose.
    #[serde(rename = "agreed")]
    consents: Vec<Consent>,
}

/// Consent to exactly these commands.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// The launch configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// What the commands are for.
    #[serde(default)]
    pub purpose: CommandPurpose,
    /// Of the commands, in hex.
    pub sha256: String,
    /// For messages about what has changed since.
    pub commands: Vec<String>,
    /// Epoch ms.
    pub agreed_at: u64,
}

impl ConsentRecord {
    /// The record of a workspace; empty when there is none, it cannot be parsed, or it is another workspace's.
    /// Errors: the record would be in the workspace.
    pub fn load(workspace: &Path) -> Result<ConsentRecord> {
        let bytes = std::fs::read(record_path(workspace)?).unwrap_or_default();
        let record: ConsentRecord = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(if record.workspace == workspace { record } else { ConsentRecord::default() })
    }

    /// The consent for a configuration and purpose.
    pub fn find(&self, configuration: Option<&str>, purpose: CommandPurpose) -> Option<&Consent> {
        self.consents.iter().find(|consent| consent.covers(configuration, purpose))
    }

    /// Replaces the consent for the same configuration and purpose, and writes the file; returns its path.
    pub fn save(workspace: &Path, consent: Consent) -> Result<PathBuf> {
        let file = record_path(workspace)?;
        let doing = || format!("cannot record your consent in {}", file.display());
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).doing(doing)?;
        let mut record = ConsentRecord::load(workspace)?;
        record.workspace = workspace.to_owned();
        record.consents.retain(|known| !known.covers(consent.configuration.as_deref(), consent.purpose));
        record.consents.push(consent);
        replace_file(&file, &serde_json::to_vec_pretty(&record).doing(doing)?).doing(doing)?;
        Ok(file)
    }
}

impl Consent {
    fn covers(&self, configuration: Option<&str>, purpose: CommandPurpose) -> bool {
        self.configuration.as_deref() == configuration && self.purpose == purpose
    }
}

/// The file of a workspace's record. Errors: it would be in the workspace, which could then contain its own consent.
fn record_path(workspace: &Path) -> Result<PathBuf> {
    let name = hex::encode(&Sha256::digest(workspace.as_os_str().as_bytes())[..8]);
    let folder = xdg::config_dir()?.join("trust");
    let real = folder.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or_default();
    if real.starts_with(workspace) {
        return Err(Error::new(ErrorKind::NotTrusted, format!("cannot use the trust records in {}", folder.display()))
            .because(format!("they are inside the workspace {}, which could bring its own", workspace.display()))
            .hint("set XDG_CONFIG_HOME to a folder outside of the workspace"));
    }
    Ok(folder.join(format!("{name}.json")))
}
