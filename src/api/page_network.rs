//! The operations on the requests of the window's page: what was recorded, and rules for what is requested next.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::page::PageLogCursor;
use crate::vocabulary::RequestRule;

/// Read the page's network requests, finished or in progress; one in full with `id`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageNetworkParams {
    /// Cursor from an earlier result: only newer entries (default: the newest).
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum number of entries (default 50, at most 1000).
    #[arg(long)]
    pub limit: Option<usize>,
    /// Words that must all match: part of the URL, method, type, status (404, 4xx), `failed`.
    #[arg(long)]
    pub filter: Option<String>,
    /// A request to show with headers, body, timing, initiator, messages.
    #[arg(long)]
    pub id: Option<u64>,
    /// Export the entries as a HAR file of this name.
    #[arg(long, value_name = "NAME")]
    pub har: Option<String>,
}

/// Block, delay or mock requests by rules, or list the rules. They end with the launch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageRouteParams {
    /// New rule for these: URL with `*`, or part of it.
    pub url: Option<String>,
    /// Fail them.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub block: Option<bool>,
    /// Answer with this file of the workspace.
    #[arg(long)]
    pub file: Option<String>,
    /// Answer with this status.
    #[arg(long)]
    pub status: Option<u16>,
    /// Content type of the answer.
    #[arg(long)]
    pub content_type: Option<String>,
    /// Wait this long first.
    #[arg(long)]
    pub delay_ms: Option<u64>,
    /// Keep it over relaunches.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub keep: Option<bool>,
    /// Remove the rule with this id, or `all`.
    #[arg(long, value_name = "ID")]
    pub remove: Option<String>,
}

/// The rules for requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestRules {
    /// Oldest first; of several that match, the newest counts.
    pub rules: Vec<RequestRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Network requests, and where the next read continues.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkEntries {
    /// Requests that have ended, oldest first.
    pub entries: Vec<NetworkEntry>,
    /// Requests on their way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<NetworkEntry>,
    #[serde(flatten)]
    pub place: PageLogCursor,
    /// Of the one with the requested id.
    pub detail: Option<NetworkDetail>,
    /// The HAR file, from the workspace.
    pub har: Option<String>,
}

/// One network request.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkEntry {
    pub id: u64,
    pub at: u64,
    pub method: String,
    pub url: String,
    pub status: Option<u16>,
    /// `Document`, `Script`, `Fetch`, `XHR`, …
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// As received, headers included.
    pub bytes: u64,
    pub duration_ms: Option<u64>,
    pub failure: Option<String>,
    /// `cache` or `serviceWorker`.
    pub from: Option<String>,
}

/// What is known of a request beside its entry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDetail {
    /// `name: value`
    #[serde(default)]
    pub request_headers: Vec<String>,
    #[serde(default)]
    pub response_headers: Vec<String>,
    pub request_body: Option<String>,
    /// As text, JSON indented; the beginning of a long one.
    pub body: Option<String>,
    /// Decoded.
    #[serde(default)]
    pub body_bytes: u64,
    /// Of a binary or long body: the file with all of it.
    pub body_file: Option<String>,
    /// Why there is no body, or not all of it.
    pub body_note: Option<String>,
    pub protocol: Option<String>,
    /// `address:port`
    pub remote: Option<String>,
    pub timing: Option<NetworkTiming>,
    /// Why it was made: its type, and the calls, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initiator: Vec<String>,
    /// Of a WebSocket or an event stream, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<NetworkMessage>,
    /// Messages before those.
    #[serde(default)]
    pub dropped_messages: u64,
}

/// The phases of a request, in ms; absent where there was none.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkTiming {
    pub dns_ms: Option<f64>,
    pub connect_ms: Option<f64>,
    pub tls_ms: Option<f64>,
    pub send_ms: Option<f64>,
    /// Until the first byte.
    pub wait_ms: Option<f64>,
    pub receive_ms: Option<f64>,
}

/// A message of a WebSocket or an event stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkMessage {
    pub at: u64,
    /// `sent`, `received`, `closed`, or the name of a stream's event.
    pub kind: String,
    /// The beginning; base64 where it is binary.
    pub text: String,
    pub bytes: usize,
}
