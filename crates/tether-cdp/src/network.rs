//! Names and shapes of the commands and events of the Network and Fetch domains by which requests are recorded, read and
//! answered.
//!
//! Times are in seconds of the browser's own clock. Fields that a peer may omit are optional.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::types::{CdpCommand, StackTrace, command, received};

command!(
    /// The sizes, in bytes, limit the bodies that the browser keeps: per page, per response, and per request. Durable ones
    /// survive the end of their page's process.
    EnableNetwork, "Network.enable", IgnoredAny, {
        max_total_buffer_size: u64,
        max_resource_buffer_size: u64,
        max_post_data_size: u64,
        enable_durable_messages: bool,
    }
);
command!(GetResponseBody, "Network.getResponseBody", GetResponseBodyResult, { request_id: String });
command!(
    /// Requests that match a pattern are paused, and reported by `Fetch.requestPaused`.
    EnableFetch, "Fetch.enable", IgnoredAny, { patterns: Vec<RequestPattern> });
command!(DisableFetch, "Fetch.disable", IgnoredAny, {});
command!(ContinueRequest, "Fetch.continueRequest", IgnoredAny, { request_id: String });
command!(FailRequest, "Fetch.failRequest", IgnoredAny, { request_id: String, error_reason: &'static str });
command!(
    /// `body` is base64.
    FulfillRequest, "Fetch.fulfillRequest", IgnoredAny, {
        request_id: String,
        response_code: u32,
        response_headers: Vec<FetchHeader>,
        body: String,
    }
);

/// CDP's `Fetch.RequestPattern`: `*` is any text, `?` any character.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPattern {
    pub url_pattern: String,
}

/// CDP's `Fetch.HeaderEntry`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FetchHeader {
    pub name: String,
    pub value: String,
}

received! {
    /// Result of `Network.getResponseBody`.
    struct GetResponseBodyResult {
        body: String,
        base64_encoded: bool,
    }

    /// `Network.requestWillBeSent`
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
        initiator: Option<Initiator>,
    }

    /// CDP's `Network.Request`.
    struct RequestInfo {
        url: String,
        method: String,
        #[serde(default)]
        headers: Value,
        post_data: Option<String>,
        has_post_data: Option<bool>,
    }

    /// CDP's `Network.Initiator`: `parser`, `script`, `preload`, `other`, …; the line is 0-based.
    struct Initiator {
        #[serde(rename = "type", default)]
        kind: String,
        stack: Option<StackTrace>,
        url: Option<String>,
        line_number: Option<f64>,
        column_number: Option<f64>,
    }

    /// `Network.requestWillBeSentExtraInfo`: the headers as they were sent.
    struct RequestExtraInfo {
        request_id: String,
        #[serde(default)]
        headers: Value,
    }

    /// `Network.responseReceivedExtraInfo`: the headers as they were received.
    struct ResponseExtraInfo {
        request_id: String,
        #[serde(default)]
        headers: Value,
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
        status_text: String,
        #[serde(default)]
        headers: Value,
        #[serde(default)]
        mime_type: String,
        #[serde(default)]
        from_disk_cache: bool,
        #[serde(default)]
        from_service_worker: bool,
        #[serde(default)]
        encoded_data_length: f64,
        #[serde(rename = "remoteIPAddress")]
        remote_ip_address: Option<String>,
        remote_port: Option<i64>,
        protocol: Option<String>,
        timing: Option<ResourceTiming>,
    }

    /// CDP's `Network.ResourceTiming`: `requestTime` in seconds, all else in milliseconds from there, or -1.
    struct ResourceTiming {
        request_time: f64,
        #[serde(default)]
        dns_start: f64,
        #[serde(default)]
        dns_end: f64,
        #[serde(default)]
        connect_start: f64,
        #[serde(default)]
        connect_end: f64,
        #[serde(default)]
        ssl_start: f64,
        #[serde(default)]
        ssl_end: f64,
        #[serde(default)]
        send_start: f64,
        #[serde(default)]
        send_end: f64,
        #[serde(default)]
        receive_headers_end: f64,
    }

    /// `Network.dataReceived`
    struct DataReceived {
        request_id: String,
        /// Decoded.
        data_length: i64,
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
    struct WebSocketCreated {
        request_id: String,
        url: String,
        initiator: Option<Initiator>,
    }

    /// `Network.webSocketHandshakeResponseReceived`
    struct WebSocketHandshakeResponse {
        request_id: String,
        response: WebSocketResponse,
    }

    /// CDP's `Network.WebSocketResponse`.
    struct WebSocketResponse {
        #[serde(default)]
        headers: Value,
        request_headers: Option<Value>,
    }

    /// `Network.webSocketFrameReceived`, `Network.webSocketFrameSent`
    struct WebSocketFrameEvent {
        request_id: String,
        response: WebSocketFrame,
    }

    /// CDP's `Network.WebSocketFrame`; `payloadData` is text, and base64 where `opcode` is 2.
    struct WebSocketFrame {
        opcode: f64,
        payload_data: String,
    }

    /// `Network.webSocketClosed`
    struct WebSocketClosed { request_id: String }

    /// `Network.eventSourceMessageReceived`
    struct EventSourceMessage {
        request_id: String,
        event_name: String,
        data: String,
    }

    /// `Fetch.requestPaused`
    struct RequestPaused {
        request_id: String,
        request: RequestInfo,
    }
}
