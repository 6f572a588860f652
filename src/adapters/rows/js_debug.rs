//! js-debug: JavaScript and TypeScript in Node, and pages in Chromium.
//!
//! One server per session, on a private Unix socket; every target is another connection to it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};
use tether_dap::types::{Fields, StartRequest, set_field};

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConditionReport, ConnectMethod, DebugTarget, DebugTargetKind,
    DebuggedChildren, ExitReporter, FoundAdapter, HitCounting, INSTALLED, LaunchPlan, PathMapUse, ProcessPlan, Quirks,
};
use crate::workspace::workspace_programs::JS_DEBUG;

use super::node::require_program;
use super::typescript_runner::find_typescript_runner;

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "js-debug",
    id: "pwa-node",
    languages: &["javascript", "typescript", "js", "ts", "node", "nodejs", "page", "chrome"],
    extensions: &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"],
    types: &["node", "pwa-node", "chrome", "pwa-chrome", "msedge", "pwa-msedge", "extensionHost", "pwa-extensionHost"],
    attach_types: &[],
    runtimes: &["node", "nodejs"],
    children: debugged_children,
    quirks: Quirks {
        path_maps: PathMapUse::First,
        keeps_read_values: true,
        may_leave_debuggee: true,
        binds_late: true,
        names_processes: true,
        // What it refuses, and what it catches in the program.
        condition_reports: &[
            ConditionReport {
                is_lasting: true,
                runs_on: true,
                ..ConditionReport::named("Syntax error setting breakpoint with condition")
            },
            ConditionReport { runs_on: true, ..ConditionReport::unnamed("Breakpoint condition error") },
        ],
        map_report: Some("Could not read source map for "),
        logs_always: true,
        hit_counting: HitCounting::WithoutCondition,
        ..Quirks::NONE
    },
    install: "`tether adapters install js-debug` installs it",
    find: find_adapter,
    plan: plan_launch,
};

/// The paths of the server in the packages that contain it.
const SERVERS: &[&str] =
    &["vsDebugServer.cjs", "dapDebugServer.js", "src/dapDebugServer.js", "js-debug/src/dapDebugServer.js"];
/// The path of the server in the npm package that is one of tether's own tools.
const IN_PACKAGE: &str = "dist/vendor/js-debug/vsDebugServer.cjs";

/// The server knows how a program that it has launched exits, and does not report it.
const EXIT_REPORTER: ExitReporter = ExitReporter { script: include_str!("report_exit.js") };

/// By a script that `NODE_OPTIONS` names.
fn debugged_children(target: &DebugTarget) -> DebuggedChildren {
    match target.bool_field("autoAttachChildProcesses") {
        Some(false) => DebuggedChildren::None("`autoAttachChildProcesses` is false"),
        _ => DebuggedChildren::WithEnvironment,
    }
}

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let found = AdapterLookup::new(search, Path::is_file, SERVERS)
        .try_path(search.installed_tool("js-debug").map(|entry| entry.join(IN_PACKAGE)), INSTALLED)
        .try_path(search.mason_file("js-debug-adapter/js-debug/src/dapDebugServer.js"), "mason")
        .try_workspace_program(JS_DEBUG)
        .finish(ADAPTER.name, ADAPTER.install)?;
    let own = search.installed_tool("node24").filter(|node| tether_tools::is_program(node));
    let node = search.on_path(&["node", "nodejs"]).or(own).ok_or_else(|| {
        Error::new(ErrorKind::MissingTool, "cannot find node, which js-debug runs on")
            .because("it is not on PATH")
            .hint("`apt-get install nodejs` or `tether adapters install node24` installs it")
    })?;
    Ok(FoundAdapter { interpreter: Some(node), ..found })
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let node = found.interpreter.clone().unwrap_or_else(|| "node".into());
    let start = start_request(target)?;
    let exit_reporter = matches!(start, StartRequest::Launch(_)).then_some(EXIT_REPORTER);
    let mut argv = vec![node.into()];
    if exit_reporter.is_some() {
        argv.extend(["--require".into(), "{scratch}/report_exit.js".into()]);
    }
    argv.extend([found.path.clone().into(), "{socket}".into()]);
    let connect = ConnectMethod::UnixSocket { is_ready: |line| line.starts_with("Debug server listening") };
    let mut server = ProcessPlan::new(argv, &target.cwd);
    // It keeps sockets there, and leaves them when it is killed.
    server.env.insert("TMPDIR".to_owned(), Some("{scratch}".to_owned()));
    let note = find_typescript_runner(target).map(|runner| runner.note);
    Ok(LaunchPlan { exit_reporter, note, ..LaunchPlan::start_adapter(server, connect, start) })
}

fn start_request(target: &DebugTarget) -> Result<StartRequest> {
    let node = json!({"type": "pwa-node", "skipFiles": ["<node_internals>/**"]});
    Ok(match &target.kind {
        DebugTargetKind::Program(_) => StartRequest::Launch(launch_fields(target)?),
        DebugTargetKind::Listener(address) => {
            let at = json!({"request": "attach", "name": "attach", "address": address.host, "port": address.port});
            let mut fields =
                merge_fields(target, [node, at, cwd_field(target), path_fields(target), extension_host_fields(target)]);
            // Whatever the configuration's type is.
            fields.insert("type".to_owned(), "pwa-node".into());
            StartRequest::Attach(fields)
        }
        DebugTargetKind::Page { url, port } => {
            let filter = format!("{}*", url.trim_end_matches('*'));
            let page = json!({"type": "pwa-chrome", "name": url, "port": port, "urlFilter": filter});
            let around = json!({"request": "attach", "address": "127.0.0.1", "webRoot": target.cwd()});
            StartRequest::Attach(merge_fields(target, [page, around]))
        }
        // VS Code's extension would find the inspector of the process; the server uses the default port.
        DebugTargetKind::Configuration
            if target.is_attach()
                && !has_port(target)
                && let Some(pid) = target.fields.get("processId") =>
        {
            return Err(inspector_required_error(target, &pid.to_string()));
        }
        DebugTargetKind::Configuration if target.is_attach() => StartRequest::Attach(merge_fields(
            target,
            [json!({"name": "attach"}), cwd_field(target), path_fields(target)],
        )),
        DebugTargetKind::Configuration if is_node(target) => StartRequest::Launch(launch_fields(target)?),
        DebugTargetKind::Configuration => StartRequest::Launch(merge_fields(target, [json!({"name": "launch"})])),
        DebugTargetKind::Pid(pid) => return Err(inspector_required_error(target, &pid.to_string())),
        DebugTargetKind::Module(_) | DebugTargetKind::Core { .. } => {
            return Err(target.unsupported_error(ADAPTER.name, "it runs files"));
        }
    })
}

fn has_port(target: &DebugTarget) -> bool {
    target.fields.contains_key("port") || target.fields.contains_key("websocketAddress")
}

fn inspector_required_error(target: &DebugTarget, pid: &str) -> Error {
    let error = target.unsupported_error(ADAPTER.name, "it attaches to a process only through its inspector");
    let hint = format!(
        "`kill -USR1 {}` opens the inspector, on port 9229: attach to that; `--adapter node` does both",
        pid.trim_matches('"')
    );
    error.hint(hint)
}

/// Without it, relative paths of source maps are not resolved.
fn cwd_field(target: &DebugTarget) -> Value {
    json!({"cwd": target.cwd()})
}

/// It maps one folder.
fn path_fields(target: &DebugTarget) -> Value {
    let map = target.paths.first().map(|map| json!({"localRoot": map.local, "remoteRoot": map.remote}));
    map.unwrap_or_else(|| json!({}))
}

/// As VS Code debugs an extension host: without the language servers that other extensions fork, and with the source
/// maps of the user's own files only.
fn extension_host_fields(target: &DebugTarget) -> Value {
    if !matches!(target.text_field("type"), Some("extensionHost" | "pwa-extensionHost")) {
        return json!({});
    }
    let own = format!("{}/**", target.cwd().display());
    json!({"autoAttachChildProcesses": false, "resolveSourceMapLocations": [own, "!**/node_modules/**"]})
}

fn is_node(target: &DebugTarget) -> bool {
    matches!(target.text_field("type"), None | Some("node" | "pwa-node"))
}

/// With the temporary folder of the user, not of the server.
fn program_environment(target: &DebugTarget) -> BTreeMap<String, Option<String>> {
    let own = ("TMPDIR".to_owned(), std::env::var("TMPDIR").ok());
    std::iter::once(own).chain(target.env()).collect()
}

fn launch_fields(target: &DebugTarget) -> Result<Fields> {
    let mut ours = json!({
        "type": "pwa-node", "request": "launch", "args": target.args()?, "cwd": target.cwd(), "env": program_environment(target),
        "console": "internalConsole", "outputCapture": "std", "stopOnEntry": target.stop_on_entry(),
        "skipFiles": ["<node_internals>/**"], "name": "node",
    });
    let program = require_program(target)?;
    if let Some(program) = &program {
        set_field(&mut ours, "program", json!(program));
        set_field(&mut ours, "name", program.file_name().map(|name| name.to_string_lossy()));
    }
    if let Some(runner) = find_typescript_runner(target).and_then(|runner| runner.program) {
        set_field(&mut ours, "runtimeExecutable", json!(runner));
    }
    let mut fields = merge_fields(target, [ours]);
    // These two are resolved here: they may be relative to the workspace, and have more than one form.
    fields.insert("cwd".to_owned(), json!(target.cwd()));
    if let Some(program) = program {
        fields.insert("program".to_owned(), json!(program));
    }
    Ok(fields)
}

/// Our fields and the configuration's, with the type as the server expects it: VS Code itself adds the `pwa-`.
fn merge_fields<const N: usize>(target: &DebugTarget, ours: [Value; N]) -> Fields {
    let parts = ours.into_iter().filter_map(|part| if let Value::Object(part) = part { Some(part) } else { None });
    let mut all: Fields = parts.flatten().collect();
    // Added by VS Code, too: the value of `${workspaceFolder}` in the defaults of `outFiles` and others.
    all.insert("__workspaceFolder".to_owned(), json!(target.cwd));
    let mut fields = target.with_configuration(all.into());
    if let Some(Value::String(kind)) = fields.get_mut("type")
        && !kind.starts_with("pwa-")
    {
        kind.insert_str(0, "pwa-");
    }
    fields
}
