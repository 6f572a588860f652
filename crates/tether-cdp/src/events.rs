//! Shapes of the CDP events that tether handles.
//!
//! Field names are the protocol's own; fields that a peer may omit are optional.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Deserialize;

use super::types::{ExceptionDetails, FrameInfo, RemoteObject, StackTrace, TargetInfo, received};

received! {
    /// `Runtime.consoleAPICalled`
    struct ConsoleApiCalled {
        /// `log`, `warning`, `error`, …
        #[serde(rename = "type")]
        kind: String,
        args: Vec<RemoteObject>,
        /// Epoch milliseconds.
        timestamp: f64,
        stack_trace: Option<StackTrace>,
    }

    /// `Runtime.exceptionThrown`
    struct ExceptionThrown {
        timestamp: f64,
        exception_details: ExceptionDetails,
    }

    /// `Log.entryAdded`
    struct LogEntryAdded { entry: LogEntry }

    /// `Runtime.bindingCalled`
    struct BindingCalled {
        name: String,
        payload: String,
    }

    /// `Debugger.scriptParsed`
    struct ScriptParsed { url: String }

    /// `Target.detachedFromTarget`
    struct DetachedFromTarget { session_id: String }

    /// `Target.attachedToTarget`
    struct AttachedToTarget {
        session_id: String,
        target_info: TargetInfo,
    }

    /// `Target.targetCreated`, `Target.targetInfoChanged`
    struct TargetInfoChanged { target_info: TargetInfo }

    /// `Target.targetDestroyed`
    struct TargetDestroyed { target_id: String }

    /// `Page.javascriptDialogOpening`
    struct JavascriptDialogOpening {
        message: String,
        /// `alert`, `confirm`, `prompt`, `beforeunload`
        #[serde(rename = "type")]
        kind: String,
        default_prompt: Option<String>,
    }

    /// `Input.dragIntercepted`
    struct DragIntercepted { data: serde_json::Value }

    /// `Page.downloadWillBegin`
    struct DownloadWillBegin {
        url: String,
        #[serde(default)]
        suggested_filename: String,
    }

    /// `Page.frameNavigated`
    struct FrameNavigated { frame: FrameInfo }

    /// `Page.navigatedWithinDocument`
    struct NavigatedWithinDocument {
        frame_id: String,
        url: String,
    }

    /// `Page.frameStartedLoading`, `Page.frameStoppedLoading`
    struct FrameEvent { frame_id: String }

    /// `Runtime.executionContextDestroyed`
    struct ExecutionContextDestroyed { execution_context_id: i64 }

    /// `Runtime.executionContextCreated`
    struct ExecutionContextCreated { context: ExecutionContextDescription }

    /// CDP's `Runtime.ExecutionContextDescription`.
    struct ExecutionContextDescription {
        id: i64,
        /// Of a page: `frameId`, and whether it is the document's own world, `isDefault`.
        #[serde(default)]
        aux_data: serde_json::Value,
    }
}

/// An entry of the browser's log, as in `Log.entryAdded`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub source: String,
    pub level: String,
    pub text: String,
    pub timestamp: f64,
    pub url: Option<String>,
    pub line_number: Option<i64>,
}
