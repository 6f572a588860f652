//! Shapes of the CDP events that tether handles.
//!
//! Field names are the protocol's own; fields that a peer may omit are optional.

use serde::Deserialize;

use super::types::{ExceptionDetails, FrameInfo, RemoteObject, StackTrace, TargetInfo};

/// `Runtime.consoleAPICalled`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleApiCalled {
    /// `log`, `warning`, `error`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub args: Vec<RemoteObject>,
    /// Epoch milliseconds.
    pub timestamp: f64,
    pub stack_trace: Option<StackTrace>,
}

/// `Runtime.exceptionThrown`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionThrown {
    pub timestamp: f64,
    pub exception_details: ExceptionDetails,
}

/// `Log.entryAdded`
/// An entry of the browser's log, as in `Log.entryAdded`.
#[derive(Clone, Debug, Deserialize)]
pub struct LogEntryAdded {
    pub entry: LogEntry,
}

/// An entry of the browser's log, as in `Log.entryAdded`.
#[derive(Clone, Debug, Deserialize)]
pub struct LogEntry {
    pub source: String,
    pub level: String,
    pub text: String,
    pub timestamp: f64,
    pub url: Option<String>,
    pub line_number: Option<u64>,
}

/// `Debugger.scriptParsed`
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptParsed {
    pub url: String,
}

/// `Target.detachedFromTarget`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DetachedFromTarget {
    pub session_id: String,
}

/// `Target.attachedToTarget`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedToTarget {
    pub session_id: String,
    pub target_info: TargetInfo,
}

/// `Target.targetCreated`, `Target.targetInfoChanged`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetInfoChanged {
    pub target_info: TargetInfo,
}

/// `Target.targetDestroyed`, `Target.targetCrashed`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetDestroyed {
    pub target_id: String,
}

/// `Page.javascriptDialogOpening`
#[derive(Clone, Debug, Deserialize)]
pub struct JavascriptDialogOpening {
    pub message: String,
    /// `alert`, `confirm`, `prompt`, `beforeunload`
    #[serde(rename = "type")]
    pub kind: String,
}

/// `Input.dragIntercepted`
#[derive(Clone, Debug, Deserialize)]
pub struct DragIntercepted {
    pub data: serde_json::Value,
}

/// `Page.downloadWillBegin`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DownloadWillBegin {
    pub url: String,
    #[serde(default)]
    pub suggested_filename: String,
}

/// `Page.frameNavigated`
#[derive(Clone, Debug, Deserialize)]
pub struct FrameNavigated {
    pub frame: FrameInfo,
}

/// `Page.frameStartedLoading`, `Page.frameStoppedLoading`, `Page.frameStartedNavigating`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameEvent {
    pub frame_id: String,
}

/// `Network.requestWillBeSent`; times are in seconds of the browser's own clock.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestWillBeSent {
    pub request_id: String,
    pub request: RequestInfo,
    pub timestamp: f64,
    /// Epoch seconds.
    pub wall_time: f64,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The response of the previous hop, when this request follows a redirect.
    pub redirect_response: Option<ResponseInfo>,
}

/// CDP's `Network.Request`.
#[derive(Clone, Debug, Deserialize)]
pub struct RequestInfo {
    pub url: String,
    pub method: String,
}

/// `Network.responseReceived`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseReceived {
    pub request_id: String,
    pub response: ResponseInfo,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// CDP's `Network.Response`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseInfo {
    pub status: u16,
    #[serde(default)]
    pub mime_type: String,
    #[serde(default)]
    pub from_disk_cache: bool,
    #[serde(default)]
    pub from_service_worker: bool,
    #[serde(default)]
    pub encoded_data_length: f64,
}

/// `Network.loadingFinished`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadingFinished {
    pub request_id: String,
    pub timestamp: f64,
    #[serde(default)]
    pub encoded_data_length: f64,
}

/// `Network.loadingFailed`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadingFailed {
    pub request_id: String,
    pub timestamp: f64,
    pub error_text: String,
    #[serde(default)]
    pub canceled: bool,
    pub blocked_reason: Option<String>,
}

/// `Network.webSocketCreated`
#[derive(Clone, Debug, Deserialize)]
pub struct WebSocketCreated {
    pub url: String,
}

/// `Runtime.executionContextDestroyed`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionContextDestroyed {
    pub execution_context_id: i64,
}
