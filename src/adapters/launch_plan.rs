//! How an adapter is started: the process, the connections, the first request. Plain data.
//!
//! Does not depend on any adapter, nor on how a plan is carried out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use super::debug_target::Address;
use crate::dap::types::{Fields, StartRequest};

/// Everything that is needed to start debugging a target.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// What is started first: the adapter, or the program itself; `None` when both are running already.
    pub process: Option<ProcessPlan>,
    /// How connections to the adapter are opened.
    pub connect: ConnectMethod,
    /// The first request. `{scratch}` in its texts stands for a private folder of this session.
    pub start: StartRequest,
    /// The started process is the program itself, and not an adapter beside it.
    pub is_program: bool,
    /// The program's output comes through the pipes of the started process, and not in `output` events.
    pub output_by_pipe: bool,
}

/// A process to be started, in its own process group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessPlan {
    /// May contain `{address}` or `{socket}` of the [`ConnectMethod`], and `{scratch}`, a private folder of this session.
    pub argv: Vec<OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Added to tether's own environment; `None` unsets a variable.
    pub env: BTreeMap<String, Option<String>>,
}

/// How connections to an adapter are opened.
#[derive(Clone, Debug)]
pub enum ConnectMethod {
    /// Over the pipes of the process: one connection only.
    Pipes,
    /// It connects to us at `{address}` (HOST:PORT): one connection only.
    ConnectBack,
    /// It listens on the Unix socket `{socket}` once `is_ready` is true for a line of its output.
    UnixSocket { is_ready: fn(&str) -> bool },
    /// It listens on a TCP port of its choice; `parse_address` gets it from a line of its output.
    TcpPort { parse_address: fn(&str) -> Option<SocketAddr> },
    /// It is listening there already.
    Existing(Address),
}

/// Replaces the placeholder `name` in the text fields of the first request.
pub(super) fn fill_start_request(start: StartRequest, name: &str, value: &str) -> StartRequest {
    match start {
        StartRequest::Launch(fields) => StartRequest::Launch(fill_fields(fields, name, value)),
        StartRequest::Attach(fields) => StartRequest::Attach(fill_fields(fields, name, value)),
    }
}

/// Only in whole values and at the start of paths: the rows write no others, and braces in a user's texts stay.
fn fill_fields(mut fields: Fields, name: &str, value: &str) -> Fields {
    for field in fields.values_mut() {
        if let Value::String(text) = field
            && let Some(rest) = text.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            *text = format!("{value}{rest}");
        }
    }
    fields
}
