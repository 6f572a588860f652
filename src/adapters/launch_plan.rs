//! How a conversation with an adapter begins: the process, the connections, the first request. Plain data.
//!
//! Must not know any adapter, nor how this is carried out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use super::debug_target::Address;
use crate::dap::types::{Fields, StartRequest};

/// Everything that is needed to begin.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// What is started first: the adapter, or the program itself; none where all of it is there already.
    pub process: Option<ProcessPlan>,
    pub connect: ConnectMethod,
    /// `{scratch}` in its texts stands for a folder of this session alone.
    pub start: StartRequest,
    /// What is started is the program itself.
    pub is_program: bool,
    /// The program's output comes out of the started process, and not in `output` events.
    pub output_by_pipe: bool,
}

/// A process to be started, in a group of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessPlan {
    /// `{address}`, `{socket}` and `{scratch}` in it stand for what [`Reach`] gives and for a folder of this session alone.
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    /// On top of our own environment; `None` takes a variable away.
    pub env: BTreeMap<String, Option<String>>,
}

/// How connections are made.
#[derive(Clone, Debug)]
pub enum ConnectMethod {
    /// Over the pipes of the process: one connection only.
    Pipes,
    /// It dials us at `{address}` (HOST:PORT): one connection only.
    ConnectBack,
    /// It listens on the Unix socket `{socket}`, and a line of its output says so.
    UnixSocket { is_ready: fn(&str) -> bool },
    /// It listens on a TCP port of its own choice, and a line of its output says which.
    TcpPort { parse_address: fn(&str) -> Option<SocketAddr> },
    /// Somebody listens there already.
    Existing(Address),
}

/// Puts what a name stands for into the texts of a start's fields.
pub(super) fn fill_start_request(start: StartRequest, name: &str, value: &str) -> StartRequest {
    match start {
        StartRequest::Launch(fields) => StartRequest::Launch(fill_fields(fields, name, value)),
        StartRequest::Attach(fields) => StartRequest::Attach(fill_fields(fields, name, value)),
    }
}

/// Only whole values and beginnings of paths that we have written ourselves: a user's own braces stay.
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
