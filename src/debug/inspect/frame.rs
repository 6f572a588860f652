//! Stack frames of a stopped thread.

use tether_dap::types::{DapSource, DapStackFrame};

use super::scoped_id::ScopedId;

/// One stack frame.
#[derive(Clone, Debug, PartialEq)]
pub struct StackFrameInfo {
    pub id: ScopedId,
    pub name: String,
    pub source: Option<DapSource>,
    /// From 1; 0 if unknown.
    pub line: i64,
    pub column: i64,
    /// Not the user's own code, or not code at all.
    pub subtle: bool,
}

impl StackFrameInfo {
    /// A frame of a `stackTrace` response for that thread.
    pub fn from_response(thread: ScopedId, frame: DapStackFrame) -> StackFrameInfo {
        let hint = frame.presentation_hint.as_deref();
        let dim = frame.source.as_ref().is_some_and(|it| it.presentation_hint.as_deref() == Some("deemphasize"));
        StackFrameInfo {
            id: thread.with_id(frame.id),
            subtle: dim || matches!(hint, Some("subtle" | "label")),
            name: frame.name,
            source: frame.source,
            line: frame.line,
            column: frame.column,
        }
    }

    /// The path of its source file, if it has one.
    pub fn path(&self) -> Option<&str> {
        self.source.as_ref()?.path.as_deref()
    }
}

/// The stack of one thread, or its topmost frames.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadStack {
    pub thread: ScopedId,
    /// The topmost first.
    pub frames: Vec<StackFrameInfo>,
    /// How many frames there are in all, if the adapter reports it.
    pub total: Option<i64>,
}
