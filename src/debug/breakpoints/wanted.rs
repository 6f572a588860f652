//! What can be wanted: lines, functions, exceptions, data.
//!
//! Must not know targets.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::anchor::Anchor;

/// One breakpoint that a user asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// Unique in the workspace, never given again.
    pub id: u32,
    #[serde(flatten)]
    pub what: What,
    #[serde(flatten)]
    pub conditions: Conditions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum What {
    Line {
        /// Absolute.
        file: PathBuf,
        /// As of the last look at the file.
        line: u32,
        anchor: Anchor,
        #[serde(default, skip_serializing_if = "Whereabouts::is_kept")]
        whereabouts: Whereabouts,
    },
    Function {
        name: String,
    },
    Data {
        /// As the debuggee's language writes it; of a class's field: `Class.field`.
        expression: String,
        access: Access,
    },
}

/// What became of a line's code since it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "is")]
pub enum Whereabouts {
    #[default]
    Kept,
    Moved {
        from: u32,
    },
    /// The code stands in several places; none is taken.
    Ambiguous {
        from: u32,
        lines: Vec<u32>,
    },
    Lost {
        from: u32,
    },
}

impl Whereabouts {
    fn is_kept(&self) -> bool {
        *self == Whereabouts::Kept
    }

    /// Whether it can be set: the line is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Whereabouts::Kept | Whereabouts::Moved { .. })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conditions {
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
pub enum Access {
    Read,
    #[default]
    Write,
    ReadWrite,
}

impl Access {
    /// As the protocol names it.
    pub fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "readWrite",
        }
    }
}

/// On which exceptions the program stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exceptions {
    pub caught: bool,
    pub uncaught: bool,
    /// Only those of this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The adapter's own filters, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
}

impl Exceptions {
    pub fn is_none(&self) -> bool {
        *self == Exceptions::default()
    }
}

impl Wanted {
    /// The file of a line breakpoint.
    pub fn file(&self) -> Option<&Path> {
        match &self.what {
            What::Line { file, .. } => Some(file),
            _ => None,
        }
    }
}
