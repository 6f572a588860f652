//! What can be wanted: lines, functions, exceptions, data.
//!
//! Must not know targets.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::anchor::{AnchorStatus, LineAnchor};

/// One breakpoint that a user asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointSpec {
    /// Unique in the workspace, never given again.
    pub id: u32,
    #[serde(flatten)]
    pub kind: BreakpointKind,
    #[serde(flatten)]
    pub conditions: BreakpointConditions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum BreakpointKind {
    Line {
        /// Absolute.
        file: PathBuf,
        /// As of the last look at the file.
        line: u32,
        anchor: LineAnchor,
        #[serde(rename = "whereabouts", default, skip_serializing_if = "AnchorStatus::is_kept")]
        anchor_status: AnchorStatus,
    },
    Function {
        name: String,
    },
    Data {
        /// As the debuggee's language writes it; of a class's field: `Class.field`.
        expression: String,
        access: DataAccess,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakpointConditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_condition: Option<String>,
    /// Prints this, with `{expressions}` in it, and does not stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_message: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DataAccess {
    Read,
    #[default]
    Write,
    ReadWrite,
}

impl DataAccess {
    /// As the protocol names it.
    pub fn name(self) -> &'static str {
        match self {
            DataAccess::Read => "read",
            DataAccess::Write => "write",
            DataAccess::ReadWrite => "readWrite",
        }
    }
}

/// On which exceptions the program stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionSpec {
    pub caught: bool,
    pub uncaught: bool,
    /// Only those of this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The adapter's own filters, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
}

impl ExceptionSpec {
    pub fn is_empty(&self) -> bool {
        *self == ExceptionSpec::default()
    }
}

impl BreakpointSpec {
    /// The file of a line breakpoint.
    pub fn file(&self) -> Option<&Path> {
        match &self.kind {
            BreakpointKind::Line { file, .. } => Some(file),
            _ => None,
        }
    }
}
