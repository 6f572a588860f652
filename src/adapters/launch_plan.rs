//! How an adapter is started: the process, the connections, the first request. Plain data.
//!
//! Does not depend on any adapter, nor on how a plan is carried out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_backend::ServeAdapter;

use super::child_listener::ChildPlan;
use super::debug_target::{Address, DebugTarget};
use super::exit_report::ExitReporter;
use super::process_reports::ProcessReporter;

use tether_dap::types::{Fields, StartRequest};
use tether_process::{LAUNCH_ID, LAUNCH_SESSION};

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
    /// A local listener may belong to another user: the caller has named its host.
    pub allows_foreign_listener: bool,
    /// Each child of the program connects to us, too: only with [`ConnectMethod::ConnectBack`].
    pub children: Option<ChildPlan>,
    /// The adapter knows how the program exits, and reports it only with this.
    pub exit_reporter: Option<ExitReporter>,
    /// What the caller should know of how the program is run.
    pub note: Option<String>,
    /// The processes of the program report what of them is not debugged.
    pub process_reporter: Option<ProcessReporter>,
    /// Why the started process exits at once, where its last output tells: words of that, and what to do then.
    pub exit_hints: &'static [(&'static str, &'static str)],
}

impl LaunchPlan {
    /// An adapter that is started beside the program, and reports its output in events.
    pub fn start_adapter(process: ProcessPlan, connect: ConnectMethod, start: StartRequest) -> LaunchPlan {
        LaunchPlan { process: Some(process), ..LaunchPlan::connect_only(connect, start) }
    }

    /// What runs already.
    fn connect_only(connect: ConnectMethod, start: StartRequest) -> LaunchPlan {
        LaunchPlan {
            process: None,
            connect,
            start,
            is_program: false,
            output_by_pipe: false,
            allows_foreign_listener: false,
            children: None,
            exit_reporter: None,
            note: None,
            exit_hints: &[],
            process_reporter: None,
        }
    }

    /// A program that serves the protocol itself, and prints into our pipes.
    pub fn start_program(process: ProcessPlan, connect: ConnectMethod, start: StartRequest) -> LaunchPlan {
        let plan = LaunchPlan::start_adapter(process, connect, start);
        LaunchPlan { is_program: true, output_by_pipe: true, ..plan }
    }

    /// Whether the adapter may request that we run a program: only one that we have started, beside the program, for a
    /// launch. Whoever listens on a port that is attached to, and a program that connects to us itself, may not.
    pub fn allows_run_in_terminal(&self) -> bool {
        self.process.is_some() && !self.is_program && matches!(self.start, StartRequest::Launch(_))
    }

    /// An adapter in this process, which launches or attaches by itself.
    pub fn serve_in_process(connect: ConnectMethod, start: StartRequest) -> LaunchPlan {
        LaunchPlan::connect_only(connect, start)
    }

    /// What is listening at this address already.
    pub fn attach_to_listener(address: Address, target: &DebugTarget, fields: Fields) -> LaunchPlan {
        let plan = LaunchPlan::connect_only(ConnectMethod::Existing(address), StartRequest::Attach(fields));
        LaunchPlan { allows_foreign_listener: target.is_host_named, ..plan }
    }
}

/// A process to be started, in its own process group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessPlan {
    /// May contain `{address}` or `{socket}` of the [`ConnectMethod`], and `{scratch}`, a private folder of this
    /// session.
    pub argv: Vec<OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Added to tether's own environment; `None` unsets a variable. Placeholders as in `argv`, as a whole value or before a `/`.
    pub env: BTreeMap<String, Option<String>>,
}

impl ProcessPlan {
    /// A process with the environment of tether itself.
    pub fn new(argv: Vec<OsString>, cwd: &Path) -> ProcessPlan {
        ProcessPlan { argv, cwd: cwd.to_owned(), env: BTreeMap::new() }
    }
}

/// How connections to an adapter are opened.
#[derive(Clone, Debug)]
pub enum ConnectMethod {
    /// Over the pipes of the process: one connection only.
    Pipes,
    /// It connects to us at `{address}` (HOST:PORT): one connection only, apart from those of its children.
    ConnectBack,
    /// It listens on the Unix socket `{socket}` once `is_ready` is true for a line of its output.
    UnixSocket { is_ready: fn(&str) -> bool },
    /// It listens on a TCP port of its choice; `parse_address` gets it from a line of its output.
    TcpPort { parse_address: fn(&str) -> Option<SocketAddr> },
    /// It is listening there already.
    Existing(Address),
    /// It runs in this process: `serve` gets the other end of a connection.
    InProcess { serve: ServeAdapter },
}

/// Removes our own variables from the environment that the first request gives to the program: it has those of its
/// adapter, by which it is found.
pub(super) fn remove_launch_variables(start: &mut StartRequest) {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = start;
    let is_ours = |name: Option<&str>| name.is_some_and(|name| [LAUNCH_ID, LAUNCH_SESSION].contains(&name));
    match fields.get_mut("env") {
        Some(Value::Object(env)) => env.retain(|name, _| !is_ours(Some(name))),
        Some(Value::Array(env)) => env.retain(|one| !is_ours(one.as_str().and_then(|it| it.split('=').next()))),
        _ => {}
    }
    if let Some(Value::Array(environment)) = fields.get_mut("environment") {
        environment.retain(|one| !is_ours(one.get("name").and_then(Value::as_str)));
    }
}

/// Replaces the placeholder `name` in the text fields of the first request: only in whole values and at the start of
/// paths, since the rows write no others, and braces in a user's texts stay.
pub(super) fn fill_start_request(mut start: StartRequest, name: &str, value: &str) -> StartRequest {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
    for field in fields.values_mut() {
        if let Value::String(text) = field
            && let Some(rest) = text.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            *text = format!("{value}{rest}");
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_callers_environment_cannot_replace_the_launch_id() {
        let check = |given: Value, expect: Value| {
            let mut start = StartRequest::Launch(given.as_object().unwrap().clone());
            remove_launch_variables(&mut start);
            let StartRequest::Launch(fields) = start else { panic!() };
            assert_eq!(Value::Object(fields), expect);
        };
        let ours = "DEVTETHER_LAUNCH_ID";
        check(json!({"env": {ours: "x", "DEVTETHER_LAUNCH_SESSION": "1", "A": "b"}}), json!({"env": {"A": "b"}}));
        check(json!({"env": ["DEVTETHER_LAUNCH_ID=x", "A=b"]}), json!({"env": ["A=b"]}));
        let named = |name: &str| json!({"name": name, "value": "x"});
        check(json!({"environment": [named(ours), named("A")]}), json!({"environment": [named("A")]}));
        check(json!({"program": ours}), json!({"program": ours}));
    }
}
