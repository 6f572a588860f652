//! Node, extension hosts and pages: our own adapter, which needs nothing but Node.
//!
//! It runs in this process, and launches the program itself.

use std::path::PathBuf;

use serde_json::json;
use tether_base::error::{Error, Result};
use tether_dap::types::{Fields, StartRequest, set_field};
use tether_node::{find_program, serve_node};
use tether_tools::is_program;

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConnectMethod, DebugTarget, DebugTargetKind, DebuggedChildren, FoundAdapter,
    LaunchPlan, Quirks,
};

use super::typescript_runner::{TypescriptRunner, find_typescript_runner};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "node",
    id: "node",
    languages: &["javascript", "typescript", "js", "ts", "node", "nodejs"],
    extensions: &["js", "mjs", "cjs", "ts", "mts", "cts"],
    types: &["node", "pwa-node"],
    attach_types: &["extensionHost", "pwa-extensionHost", "chrome", "pwa-chrome", "msedge", "pwa-msedge"],
    runtimes: &["node", "nodejs"],
    children: debugged_children,
    quirks: Quirks {
        resumes_one_thread: true,
        keeps_read_values: true,
        finds_lines_by_anchor: true,
        test_failure_filter: Some("assertions"),
        ..Quirks::NONE
    },
    install: "`apt-get install nodejs` installs Node, which is all that it needs",
    find: find_node,
    plan: plan_launch,
};

/// By a script that `NODE_OPTIONS` names.
fn debugged_children(target: &DebugTarget) -> DebuggedChildren {
    match target.bool_field("autoAttachChildProcesses") {
        Some(false) => DebuggedChildren::None("`autoAttachChildProcesses` is false"),
        _ if target.is_attach() => DebuggedChildren::None("children of what is attached to are not debugged"),
        _ => DebuggedChildren::WithEnvironment,
    }
}

fn find_node(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(search, is_program, &[])
        .try_on_path(&["node", "nodejs"])
        .finish("for node (Node itself)", ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let runner = find_typescript_runner(target);
    let mut workspace = json!({"cwd": target.cwd(), "__workspaceFolder": target.cwd});
    if !target.paths.is_empty() {
        set_field(&mut workspace, "__paths", json!(target.paths));
    }
    let start = match &target.kind {
        DebugTargetKind::Listener(address) => {
            let mut fields = workspace;
            set_field(&mut fields, "port", address.port);
            // A host that was not named must be one of our own programs.
            if target.is_host_named || address.host != "127.0.0.1" {
                set_field(&mut fields, "address", address.host.as_str());
            }
            StartRequest::Attach(target.with_configuration(fields))
        }
        DebugTargetKind::Configuration if target.is_attach() => {
            StartRequest::Attach(target.with_configuration(workspace))
        }
        DebugTargetKind::Pid(pid) => {
            let mut fields = workspace;
            set_field(&mut fields, "processId", json!(pid));
            StartRequest::Attach(target.with_configuration(fields))
        }
        DebugTargetKind::Page { url, port } => {
            let filter = format!("{}*", url.trim_end_matches('*'));
            let mut fields = workspace;
            set_field(&mut fields, "type", "pwa-chrome");
            set_field(&mut fields, "port", *port);
            set_field(&mut fields, "urlFilter", filter);
            set_field(&mut fields, "webRoot", json!(target.cwd()));
            StartRequest::Attach(target.with_configuration(fields))
        }
        DebugTargetKind::Module(_) | DebugTargetKind::Core { .. } => {
            return Err(target.unsupported_error(ADAPTER.name, "it runs files"));
        }
        DebugTargetKind::Program(_) | DebugTargetKind::Configuration => {
            StartRequest::Launch(launch_fields(found, target, runner.as_ref())?)
        }
    };
    let plan = LaunchPlan::serve_in_process(ConnectMethod::InProcess { serve: serve_node }, start);
    Ok(LaunchPlan { note: runner.map(|runner| runner.note), ..plan })
}

/// Errors: nothing is named that could run, or there is no such file.
pub(super) fn require_program(target: &DebugTarget) -> Result<Option<PathBuf>> {
    let is_named = |key: &str| target.fields.get(key).is_some_and(|value| !value.is_null());
    match target.program() {
        Some(program) => target.require_file(&find_program(&program).unwrap_or(program)).map(Some),
        None if ["runtimeExecutable", "runtimeArgs", "args"].into_iter().any(is_named) => Ok(None),
        None => Err(Error::usage("cannot launch Node")
            .because("there is no `program`, no `runtimeExecutable` and no `runtimeArgs`")
            .hint("`tether debug launch app.js` debugs a file")),
    }
}

fn launch_fields(found: &FoundAdapter, target: &DebugTarget, runner: Option<&TypescriptRunner>) -> Result<Fields> {
    let mut ours = json!({"stopOnEntry": target.stop_on_entry(), "__workspaceFolder": target.cwd});
    let program = require_program(target)?;
    if !target.fields.contains_key("runtimeExecutable") {
        let runtime = runner.and_then(|runner| runner.program.as_ref()).unwrap_or(&found.path);
        set_field(&mut ours, "runtimeExecutable", json!(runtime));
    }
    let mut fields = target.with_configuration(ours);
    // These are resolved here: they may be relative to the workspace.
    let env: serde_json::Map<String, serde_json::Value> =
        target.env().into_iter().map(|(name, value)| (name, value.into())).collect();
    let cwd: PathBuf = target.cwd();
    for (name, value) in [("cwd", json!(cwd)), ("env", env.into()), ("args", json!(target.args()?))] {
        fields.insert(name.to_owned(), value);
    }
    if let Some(program) = program {
        fields.insert("program".to_owned(), json!(program));
    }
    Ok(fields)
}
