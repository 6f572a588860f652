//! What is wrong with this machine, this workspace and this tether; each with the command that cures it.
//!
//! | file | looks at |
//! |---|---|
//! | `adapters` | the debug adapters that are on this machine |
//! | `machine` | programs and tools, limits of the kernel, disks, our own folders |
//! | `workspace` | settings, trust, what a watch needs |
//! | `running` | the supervisor, the window, what an earlier window left in `session.json` |
//! | `orphans` | processes of launches that nobody will find again; the only part that acts, when asked |
//!
//! It needs no supervisor, and starts none. Must not know how its findings are shown.

pub mod adapters;
mod machine;
pub mod orphans;
mod running;
mod workspace;

use std::path::Path;

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    Ok,
    /// Something does less than it could, or will not work when it is wanted.
    Warning,
    /// Something that this workspace needs does not work.
    Problem,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingTopic {
    Workspace,
    Running,
    Tools,
    Machine,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub topic: FindingTopic,
    pub level: FindingLevel,
    /// In one line, or a block.
    pub what: String,
    /// Each a command to run, or a setting to change.
    pub hints: Vec<String>,
}

impl Finding {
    fn new(topic: FindingTopic, level: FindingLevel, what: impl Into<String>) -> Finding {
        Finding { topic, level, what: what.into(), hints: Vec::new() }
    }

    fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hints.push(hint.into());
        self
    }

    /// An error as a finding: its causes in the text, its hints as they are.
    fn from_error(topic: FindingTopic, level: FindingLevel, error: &crate::error::Error) -> Finding {
        let data = crate::error::ErrorData::from(error);
        let what = std::iter::once(data.doing).chain(data.because).collect::<Vec<_>>().join(": ");
        Finding { topic, level, what, hints: data.hints }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReport {
    pub findings: Vec<Finding>,
}

impl DoctorReport {
    /// How many findings are as bad as this.
    pub fn count(&self, level: FindingLevel) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
}

/// Looks at everything. What cannot be looked at is a finding, too.
pub async fn examine_workspace(workspace: &Path) -> DoctorReport {
    let (about, kind) = workspace::check_workspace(workspace);
    let mut findings = about;
    findings.extend(running::check_running(workspace).await);
    findings.extend(machine::check_tools(kind.as_ref()).await);
    findings.extend(adapters::check_adapters(workspace));
    findings.extend(machine::check_folders(workspace));
    DoctorReport { findings }
}
