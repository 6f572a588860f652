//! The breakpoints that a user can set: on lines, functions, exceptions and data.
//!
//! Does not depend on targets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tether_base::line_anchor::{AnchorStatus, LineAnchor};
use tether_dap::types::ExceptionFilterOptions;

use crate::vocabulary::DataAccess;

/// A line of a file, or a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// From 1.
    pub line: u32,
    /// From 1, in UTF-16 code units; none: the first code on the line.
    pub column: Option<u32>,
}

impl From<u32> for LinePosition {
    fn from(line: u32) -> LinePosition {
        LinePosition { line, column: None }
    }
}

/// A file with breakpoints.
#[derive(Clone, Copy, Debug)]
pub struct BreakpointFile<'a> {
    /// Canonical path.
    pub path: &'a Path,
    /// The user's own, where that leads to it over a link.
    pub named: Option<&'a Path>,
}

impl<'a> From<&'a Path> for BreakpointFile<'a> {
    fn from(path: &'a Path) -> BreakpointFile<'a> {
        BreakpointFile { path, named: None }
    }
}

/// One breakpoint that a user has set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointSpec {
    /// Unique in the workspace, never reused.
    pub id: u32,
    /// Where the program stops.
    #[serde(flatten)]
    pub kind: BreakpointKind,
    /// When it stops there.
    #[serde(flatten)]
    pub conditions: BreakpointConditions,
    /// The joined editor that has set it, and with which it goes. None: it belongs to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<BreakpointOwner>,
}

/// An editor that has joined a session, as the owner of its breakpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointOwner {
    /// Unique among all editors of its process.
    pub editor: u64,
    /// The editor's name, for readers.
    pub name: Arc<str>,
    /// The launch id of the session whose host it has joined. None: it speaks to the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<str>>,
}

/// On which exceptions an editor wants to stop: filters of an adapter, or `caught` and `uncaught` for those of any adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditorExceptions {
    /// The editor.
    pub owner: BreakpointOwner,
    /// The filters, with their conditions.
    pub filters: Vec<ExceptionFilterOptions>,
}

/// Where a breakpoint stops the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum BreakpointKind {
    /// On a line.
    Line {
        /// Canonical path.
        file: PathBuf,
        /// The path by which the user has named the file, absolute, where that leads to it over a link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<PathBuf>,
        /// From 1, in the file as it was last read.
        line: u32,
        /// From 1, if it is on one of several places of the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        column: Option<u32>,
        /// What the line is found by when the file changes.
        anchor: LineAnchor,
        /// Whether the code is still on its line.
        #[serde(rename = "whereabouts", default, skip_serializing_if = "AnchorStatus::is_kept")]
        anchor_status: AnchorStatus,
    },
    /// At the entry of a function.
    Function {
        /// As the adapter resolves it.
        name: String,
    },
    /// On a line of a class, whichever file it is from.
    ClassLine {
        /// `com.example.OrderService`
        class_name: String,
        /// From 1.
        line: u32,
    },
    /// At an access to data.
    Data {
        /// In the debuggee's language; for a class's field: `Class.field`.
        expression: String,
        /// The accesses that stop the program.
        access: DataAccess,
        /// By which name an adapter finds the same data in any launch: `com.example.Counter.value`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        persistent_name: Option<String>,
    },
}

impl BreakpointKind {
    /// The name by which an adapter finds it, if it is set among the function breakpoints: `total`, or
    /// `com.example.OrderService:12`.
    pub fn function_name(&self) -> Option<String> {
        match self {
            BreakpointKind::Function { name } => Some(name.clone()),
            BreakpointKind::ClassLine { class_name, line } => Some(format!("{class_name}:{line}")),
            BreakpointKind::Line { .. } | BreakpointKind::Data { .. } => None,
        }
    }
}

/// When a breakpoint stops the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakpointConditions {
    /// An expression that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// A condition on the hit count, in the adapter's syntax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_condition: Option<String>,
    /// Makes it a log point: prints this text with its `{expressions}` instead of stopping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_message: Option<String>,
}

impl DataAccess {
    /// The `accessType` of DAP.
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
    /// Those that the program catches.
    pub caught: bool,
    /// Those that it does not.
    pub uncaught: bool,
    /// Only those of this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Ids of the adapter's own filters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
}

impl ExceptionSpec {
    /// Whether no exception stops the program.
    pub fn is_empty(&self) -> bool {
        *self == ExceptionSpec::default()
    }

    /// Whether the program has to stop at caught exceptions. A class may be caught or not: the program is stopped at all, and
    /// continued automatically at the others.
    pub fn needs_caught(&self) -> bool {
        self.caught || (self.class.is_some() && !self.uncaught)
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

    /// The user's own name for the file of a line breakpoint, where it leads there over a link.
    pub fn named(&self) -> Option<&Path> {
        match &self.kind {
            BreakpointKind::Line { named, .. } => named.as_deref(),
            _ => None,
        }
    }

    /// The column of a line breakpoint that has one.
    pub fn column(&self) -> Option<u32> {
        match self.kind {
            BreakpointKind::Line { column, .. } => column,
            _ => None,
        }
    }

    /// What its line is found by, if it is a line breakpoint.
    pub fn anchor(&self) -> Option<&LineAnchor> {
        match &self.kind {
            BreakpointKind::Line { anchor, .. } => Some(anchor),
            _ => None,
        }
    }

    /// As [`BreakpointSpec::file`], owned.
    pub fn owned_file(&self) -> Option<PathBuf> {
        self.file().map(Path::to_owned)
    }

    /// Whether it is a line breakpoint that was set at that place.
    pub fn is_at(&self, file: &Path, at: LinePosition) -> bool {
        match &self.kind {
            BreakpointKind::Line { file: own, line, column, .. } => {
                own == file && at == LinePosition { line: *line, column: *column }
            }
            _ => false,
        }
    }

    /// Whether its code is still found, if it is a line breakpoint.
    pub fn has_line(&self) -> bool {
        !matches!(&self.kind, BreakpointKind::Line { anchor_status, .. } if !anchor_status.has_line())
    }

    /// Whether it is a data breakpoint for reads only.
    pub fn is_read_watchpoint(&self) -> bool {
        matches!(self.kind, BreakpointKind::Data { access: DataAccess::Read, .. })
    }

    /// Whether it is a line breakpoint on that line of a file. `bound` is the line to which an adapter has bound it.
    pub fn is_on_line(&self, bound: Option<u32>, path: &Path, at: i64) -> bool {
        match &self.kind {
            BreakpointKind::Line { file, line, .. } => i64::from(bound.unwrap_or(*line)) == at && file == path,
            _ => false,
        }
    }
}
