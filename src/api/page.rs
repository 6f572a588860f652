//! The operations that inspect the window's page. Fields are camelCase; times are epoch ms; durations
//! end in `Ms`.
//!
//! Evaluate, screenshot and snapshot check for changes first, and rebuild and relaunch when there are some; console only reads
//! what was recorded.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::debug::results::StoppedSession;
use super::window::RefreshNotice;
use crate::vocabulary::ImageFormat;

/// Evaluate JavaScript in the window's page, or in the global scope of a Node window.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageEvaluateParams {
    /// JavaScript expression; promises are awaited. With `ref`: a function, or `element` in it.
    pub expression: String,
    /// Time limit in milliseconds (default 30000).
    #[arg(long)]
    pub timeout_ms: Option<u64>,
    /// Element to evaluate on.
    #[serde(rename = "ref")]
    #[arg(long = "ref", value_name = "REF")]
    pub element: Option<String>,
    /// Frame: ref of its element, name, or part of its URL.
    #[arg(long)]
    pub frame: Option<String>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
}

/// Take a screenshot of the window's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageScreenshotParams {
    /// Show only this element: a ref from a snapshot, such as e12.
    #[serde(rename = "ref")]
    #[arg(long = "ref", value_name = "REF")]
    pub element: Option<String>,
    /// Show the whole page, not only the visible part.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub full_page: Option<bool>,
    /// Image format (default png).
    #[arg(long, value_enum)]
    pub format: Option<ImageFormat>,
    /// Image pixels per CSS pixel (default: at most 1, and within 1500 tokens).
    #[arg(long)]
    pub scale: Option<f64>,
    /// Quality of jpeg and webp, 1 to 100.
    #[arg(long)]
    pub quality: Option<u8>,
    /// Part of the viewport: x,y,width,height.
    #[arg(long)]
    pub clip: Option<String>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
}

/// Show the page as text, with element refs (such as e12) for the other operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageSnapshotParams {
    /// Maximum size in bytes (default 40000).
    #[arg(long)]
    pub max: Option<usize>,
    /// Show only this element and its contents: a ref such as e12.
    #[serde(rename = "ref")]
    #[arg(long = "ref", value_name = "REF")]
    pub from: Option<String>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
}

/// Read console messages of the page, its iframes and workers, and the extension host or Node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageConsoleParams {
    /// Cursor from an earlier result: only newer entries (default: the newest).
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum number of entries (default 50, at most 1000).
    #[arg(long)]
    pub limit: Option<usize>,
    /// Show only messages that contain this text, or have this level or source.
    #[arg(long)]
    pub filter: Option<String>,
}

/// The page as text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageSnapshotResult {
    pub text: String,
    /// Not all of it fitted in.
    #[serde(default)]
    pub cut: bool,
    pub generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreshed: Option<RefreshNotice>,
    /// Dialogs, downloads, crashes, new pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Entries of the console, and where the next read continues.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleEntries {
    /// Oldest first.
    pub entries: Vec<ConsoleEntry>,
    #[serde(flatten)]
    pub place: PageLogCursor,
}

/// Where the next read of a log continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageLogCursor {
    /// For the next `since`.
    pub cursor: u64,
    /// Entries after `since` that are no longer there.
    pub dropped: u64,
    /// Entries that the limit has left out: newer ones with `since`, older ones without.
    #[serde(default)]
    pub more: u64,
    pub generation: u64,
    /// A remark for the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One console message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleEntry {
    pub at: u64,
    /// `page`, `iframe` (in a process of its own), `worker`, `extensionHost`, `node`, or `tether` itself.
    pub source: String,
    /// `log`, `info`, `warning`, `error`, `exception`, …
    pub level: String,
    pub text: String,
    /// `file.js:12:3`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// `value` or `exception`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageEvaluateResult {
    #[serde(default, deserialize_with = "deserialize_present")]
    pub value: Option<Value>,
    pub exception: Option<String>,
    /// A session in the window is stopped; with neither a value nor an exception, so is the evaluation.
    pub stopped: Option<StoppedSession>,
    /// The launch of the window that evaluated it.
    pub generation: u64,
    pub refreshed: Option<RefreshNotice>,
    /// Dialogs, downloads, crashes, new pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A value that is there, even if it is `null`.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An image of the page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageImage {
    pub mime_type: String,
    /// Base64.
    pub data: String,
    pub generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreshed: Option<RefreshNotice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
