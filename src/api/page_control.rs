//! The operations that control the window's pages: tabs and navigation, emulation, storage.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::window::RefreshNotice;
use crate::vocabulary::{ColorScheme, CssMedia, NetworkPreset, PageEmulation};

/// List the tabs; open, close, switch to or navigate one, until it has loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageControlParams {
    /// What to do (default list).
    #[serde(rename = "do")]
    #[arg(value_enum, value_name = "DO")]
    pub does: Option<PageVerb>,
    /// goto, new: address.
    pub url: Option<String>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
    /// reload: bypass the cache.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub ignore_cache: Option<bool>,
    /// Time limit (default 30000).
    #[arg(long)]
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum PageVerb {
    #[default]
    List,
    Goto,
    Back,
    Forward,
    Reload,
    New,
    Close,
    Switch,
}

/// The open pages.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageTabs {
    /// What was done.
    pub did: Option<String>,
    pub tabs: Vec<PageTab>,
    pub generation: u64,
    pub refreshed: Option<RefreshNotice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An open page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageTab {
    /// As long as it is open.
    pub id: String,
    pub title: String,
    pub url: String,
    /// The one that operations mean which name none.
    #[serde(default)]
    pub current: bool,
}

/// Emulate a device, preferences, a place or slow conditions, until reset. `none` ends one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageEmulateParams {
    /// Device name, such as "iPhone 15" or "Pixel 8".
    #[arg(long)]
    pub device: Option<String>,
    /// Size as 390x844, or 390x844x3 with a scale.
    #[arg(long)]
    pub viewport: Option<String>,
    /// Touch screen.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub touch: Option<bool>,
    /// User agent.
    #[arg(long)]
    pub user_agent: Option<String>,
    /// Preferred colour scheme.
    #[arg(long, value_enum)]
    pub color_scheme: Option<ColorScheme>,
    /// Prefer reduced motion.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub reduced_motion: Option<bool>,
    /// CSS media type.
    #[arg(long, value_enum)]
    pub media: Option<CssMedia>,
    /// As de-DE.
    #[arg(long)]
    pub locale: Option<String>,
    /// As Asia/Tokyo.
    #[arg(long)]
    pub time_zone: Option<String>,
    /// latitude,longitude
    #[arg(long, allow_hyphen_values = true)]
    pub geolocation: Option<String>,
    /// Slowdown factor.
    #[arg(long)]
    pub cpu: Option<f64>,
    /// Network conditions.
    #[arg(long, value_enum)]
    pub network: Option<NetworkPreset>,
    /// End all emulation first.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub reset: Option<bool>,
}

/// What is emulated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmulationReport {
    pub emulation: PageEmulation,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Record a load (`url`) or a span: trace with LCP, CLS, INP and long tasks; CPU profile; heap snapshot and growth since the last.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageProfileParams {
    /// What to record (default trace).
    #[serde(rename = "do")]
    #[arg(value_enum, value_name = "DO")]
    pub does: Option<ProfileVerb>,
    /// Address to load.
    pub url: Option<String>,
    /// Span (default 3000).
    #[arg(long)]
    pub ms: Option<u64>,
    /// Another page: its id, or part of its URL or title.
    #[arg(long)]
    pub page: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum ProfileVerb {
    #[default]
    Trace,
    Cpu,
    Heap,
}

/// What was recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileReport {
    /// A line for each finding.
    pub findings: Vec<String>,
    /// The file, from the workspace, that DevTools opens.
    pub file: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Read, set or clear cookies and storage of an origin; save or load them (Playwright's storage state).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageStorageParams {
    /// What to do (default get).
    #[serde(rename = "do")]
    #[arg(value_enum, value_name = "DO")]
    pub does: Option<StorageVerb>,
    /// Default cookies. all: clear everything.
    #[arg(value_enum, value_name = "AREA")]
    pub area: Option<StorageArea>,
    /// Name of the entry (default: all).
    #[arg(long)]
    pub name: Option<String>,
    /// set: value of the entry.
    #[arg(long)]
    pub value: Option<String>,
    /// Default: the page's.
    #[arg(long)]
    pub origin: Option<String>,
    /// set: cookie attributes as JSON (domain, path, expires, httpOnly, secure, sameSite).
    #[arg(long, value_parser = parse_json)]
    #[serde(default, deserialize_with = "read_json")]
    #[schemars(with = "Option<String>")]
    pub cookie: Option<Value>,
    /// save: name in .devtools/files. load: file of the workspace.
    #[arg(long)]
    pub file: Option<String>,
}

/// An object, or its JSON: not every provider of models takes an object without names.
fn read_json<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        Some(Value::String(text)) => parse_json(&text).map(Some).map_err(serde::de::Error::custom),
        given => Ok(given),
    }
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum StorageVerb {
    #[default]
    Get,
    Set,
    Clear,
    Save,
    Load,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum StorageArea {
    #[default]
    Cookies,
    Local,
    Session,
    All,
}

/// Entries of a storage, and what was done.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageReport {
    pub origin: Option<String>,
    #[serde(default)]
    pub entries: Vec<StorageItem>,
    /// Entries that are not shown.
    #[serde(default)]
    pub more: u64,
    /// What was done.
    pub did: Option<String>,
    /// The file that was written, from the workspace.
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An entry of a storage.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageItem {
    pub name: String,
    /// Cut at 1000 bytes.
    pub value: String,
    /// Of a cookie: its domain, path and attributes.
    pub attributes: Option<String>,
}
