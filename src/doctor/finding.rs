//! A finding of the doctor: its topic, its level, the text and the hints.

use serde::Serialize;
use tether_base::error::{Error, ErrorData};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    /// Works.
    Ok,
    /// Works in part, or will fail when it is used.
    Warning,
    /// Does not work, and this workspace needs it.
    Problem,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingTopic {
    /// Settings, trust, watches.
    Workspace,
    /// The supervisor and the window.
    Running,
    /// Outside programs and debug adapters.
    Tools,
    /// Disks and folders.
    Machine,
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub topic: FindingTopic,
    pub level: FindingLevel,
    /// One line; for an error, or a block.
    pub what: String,
    /// Each a command to run, or a setting to change.
    pub hints: Vec<String>,
}

impl Finding {
    pub(super) fn new(topic: FindingTopic, level: FindingLevel, what: impl Into<String>) -> Finding {
        // It may name a path with a line break.
        Finding { topic, level, what: what.into().replace('\n', "\\n"), hints: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hints.push(hint.into());
        self
    }

    /// An error as a finding: its causes in the text, its hints unchanged.
    pub(super) fn from_error(topic: FindingTopic, level: FindingLevel, error: &Error) -> Finding {
        let data = ErrorData::from(error);
        let what = std::iter::once(data.doing.replace('\n', "\\n")).chain(data.because).collect::<Vec<_>>().join(": ");
        Finding { topic, level, what, hints: data.hints }
    }
}

/// All findings, in the order of the checks.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReport {
    pub findings: Vec<Finding>,
}

impl DoctorReport {
    /// The number of findings of this level.
    pub fn count(&self, level: FindingLevel) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
}
