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

    /// `Page.frameStartedLoading`, `Page.frameStoppedLoading`
    struct FrameEvent { frame_id: String }

    /// `Network.requestWillBeSent`; times are in seconds of the browser's own clock.
    struct RequestWillBeSent {
        request_id: String,
        request: RequestInfo,
        timestamp: f64,
        /// Epoch seconds.
        wall_time: f64,
        #[serde(rename = "type")]
        kind: Option<String>,
        /// The response of the previous hop, when this request follows a redirect.
        redirect_response: Option<ResponseInfo>,
    }

    /// CDP's `Network.Request`.
    struct RequestInfo {
        url: String,
        method: String,
    }

    /// `Network.responseReceived`
    struct ResponseReceived {
        request_id: String,
        response: ResponseInfo,
        #[serde(rename = "type")]
        kind: Option<String>,
    }

    /// CDP's `Network.Response`.
    struct ResponseInfo {
        status: i64,
        #[serde(default)]
        mime_type: String,
        #[serde(default)]
        from_disk_cache: bool,
        #[serde(default)]
        from_service_worker: bool,
        #[serde(default)]
        encoded_data_length: f64,
    }

    /// `Network.loadingFinished`
    struct LoadingFinished {
        request_id: String,
        timestamp: f64,
        #[serde(default)]
        encoded_data_length: f64,
    }

    /// `Network.loadingFailed`
    struct LoadingFailed {
        request_id: String,
        timestamp: f64,
        error_text: String,
        #[serde(default)]
        canceled: bool,
        blocked_reason: Option<String>,
    }

    /// `Network.webSocketCreated`
    struct WebSocketCreated { url: String }

    /// `Network.webSocketFrameReceived`
    struct WebSocketFrameReceived { response: WebSocketFrame }

    /// CDP's `Network.WebSocketFrame`; `payloadData` is text unless `opcode` is 2.
    struct WebSocketFrame { payload_data: String }

    /// `Runtime.executionContextDestroyed`
    struct ExecutionContextDestroyed { execution_context_id: i64 }
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
