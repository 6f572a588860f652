//! debugpy: Python.
//!
//! The direct way is without debugpy's adapter: the program connects to us and serves DAP itself, without the 44 ms
//! that the adapter adds to every operation. Its children connect to the same address, and wait there for their `attach`:
//! debugpy patches the functions of Python that start processes, and a `sitecustomize` on PYTHONPATH lets those connect that are
//! started through another program. The adapter is used for what the program cannot do
//! alone: attaching to a running process by its id, and `sudo`.
//!
//! debugpy need not be installed for the interpreter: its folder is a program of its own, and runs on every Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, Result};
use tether_dap::types::{Fields, StartRequest, set_field};
use tether_dap::{DapClient, DapError, DapRequest};
use tether_tools::is_program;

use super::python;
use super::python_attach::require_attachable;
use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, Address, ChildIdentity, ChildPlan, ConditionReport, ConnectMethod,
    DebugTarget, DebugTargetKind, DebuggedChildren, FoundAdapter, HitCounting, INSTALLED, LaunchPlan, PathMap,
    ProcessPlan, ProcessReporter, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "debugpy",
    id: "debugpy",
    languages: &["python", "py"],
    extensions: &["py", "pyw"],
    types: &["debugpy", "python"],
    attach_types: &[],
    runtimes: &["python", "pypy"],
    children: debugged_children,
    quirks: Quirks {
        binds_unloaded: true,
        beside_program_field: Some("subProcess"),
        hides_name_errors: true,
        release_expression: Some(RELEASE),
        ends_children: true,
        test_failure_filter: Some("userUnhandled"),
        exception_parts: Some(include_str!("exception_parts.py")),
        lost_exception_report: Some("Task exception was never retrieved"),
        condition_reports: &[ConditionReport {
            runs_on: true,
            ..ConditionReport::named("Error while evaluating expression in conditional breakpoint")
        }],
        hit_counting: HitCounting::WithoutCondition,
        ignores_columns: true,
        ..Quirks::NONE
    },
    install: "`tether adapters install debugpy` installs it",
    find: find_adapter,
    plan: plan_launch,
};

/// Set to `1`: into a pipe, Python prints only when its buffer is full; and debugpy prints warnings about frozen
/// modules of the standard library on the program's stderr.
const OUTPUT_VARIABLES: &[&str] = &["PYTHONUNBUFFERED", "PYDEVD_DISABLE_FILE_VALIDATION"];

/// Where Python finds modules first.
const MODULE_PATH: &str = "PYTHONPATH";
/// Carries the address to which children connect to [`PROCESS_REPORTER`].
const CHILD_ADDRESS: &str = "DEVTETHER_PYTHON_CHILDREN";
/// Carries the folder of debugpy there.
const DEBUGPY_FOLDER: &str = "DEVTETHER_DEBUGPY";

const PROCESS_REPORTER: ProcessReporter = ProcessReporter {
    script: include_str!("debug_children.py"),
    path: "python/sitecustomize.py",
    others: &[],
    reason: "no debugger was attached to it",
};

/// Evaluated by a program that is detached from.
const RELEASE: &str = concat!("exec('''", include_str!("release_python.py"), "''', {})");

/// A larger program is not searched for gevent, in bytes.
const MAX_PROGRAM_BYTES: u64 = 1 << 20;

/// How long a child may take to respond to its first request.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// Fields of a configuration that are of the program itself, and not of its children.
const OF_PROGRAM: &[&str] = &[
    "program",
    "module",
    "code",
    "args",
    "env",
    "cwd",
    "python",
    "pythonPath",
    "pythonArgs",
    "processId",
    "listen",
    "preLaunchTask",
    "postDebugTask",
    "request",
    "restart",
    "processName",
    "name",
    "stopOnEntry",
];

/// The file into which the adapter writes its address: here its stdout, because the adapter removes the file when it
/// exits, and this one cannot be removed.
const ENDPOINTS: (&str, &str) = ("DEBUGPY_ADAPTER_ENDPOINTS", "/proc/self/fd/1");

/// It changes the functions of Python that start processes; what is launched has [`PROCESS_REPORTER`], too.
fn debugged_children(target: &DebugTarget) -> DebuggedChildren {
    match target.bool_field("subProcess") {
        Some(false) => DebuggedChildren::None("`subProcess` is false"),
        _ if target.is_attach() || target.bool_field("sudo") == Some(true) => DebuggedChildren::StartedByProgram,
        _ => DebuggedChildren::WithEnvironment,
    }
}

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let mut search = search.clone();
    // The setting is an interpreter, or the folder of debugpy.
    let (python, note) = match search.configured.take_if(|path| is_program(path)) {
        Some(python) => (python, None),
        None => {
            let found = python::find_python(&search)?;
            (found.path, found.note)
        }
    };
    let search = &search;
    let is_folder = |path: &Path| path.join("__main__.py").is_file() && path.join("adapter").is_dir();
    let mut trail = AdapterLookup::new(search, is_folder, &[]);
    let (own, machine): (Vec<_>, Vec<_>) = python::package_folders(search, &python)
        .into_iter()
        .partition(|folder| python.parent().and_then(Path::parent).is_some_and(|prefix| folder.starts_with(prefix)));
    for folder in own {
        trail = trail.try_path(Some(folder.join("debugpy")), "the packages of the interpreter");
    }
    let installed = search.installed_tool("debugpy").and_then(|main| main.parent().map(Path::to_owned));
    trail = trail.try_path(installed, INSTALLED);
    trail = trail.try_extensions("ms-python.debugpy", "bundled/libs/debugpy");
    let mason = search.mason_file("debugpy/venv/bin/python").map(|python| python::package_folders(search, &python));
    for folder in mason.into_iter().flatten().filter(|folder| folder.to_string_lossy().contains("mason")) {
        trail = trail.try_path(Some(folder.join("debugpy")), "mason");
    }
    for folder in machine {
        trail = trail.try_path(Some(folder.join("debugpy")), "the packages of the interpreter");
    }
    let found = trail.finish(ADAPTER.name, ADAPTER.install)?;
    Ok(FoundAdapter { interpreter: Some(python), search_path: path_with_own_gdb(search), note, ..found })
}

/// `PATH` with our own gdb first, if it is installed. debugpy attaches to a running process with gdb, and one that is older
/// than the processor cannot restore its registers: the process ends when it is let go.
fn path_with_own_gdb(search: &AdapterSearch) -> Option<String> {
    let environment = search.installed_tool("gdb")?.parent()?.parent()?.to_owned();
    let folders = python::library_folders(&environment).into_iter();
    let own = folders.map(|folder| folder.join("gdb_for_pwndbg/_vendor/bin")).find(|it| is_program(&it.join("gdb")))?;
    let path = search.var("PATH").unwrap_or_default();
    std::env::join_paths([own].into_iter().chain(std::env::split_paths(path))).ok()?.into_string().ok()
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    if !target.is_attach() {
        return match target.bool_field("sudo") {
            Some(true) => plan_through_adapter(found, target, launch_request(target)?),
            _ => plan_direct(found, target),
        };
    }
    match (&target.kind, listener_address(target)) {
        (DebugTargetKind::Listener(address), _) => Ok(plan_attach_to_listener(address.clone(), target)),
        (_, Some(address)) => Ok(plan_attach_to_listener(address, target)),
        (DebugTargetKind::Pid(pid), _) => {
            require_attachable(*pid, found)?;
            plan_through_adapter(found, target, attach_request(target, json!({"processId": pid})))
        }
        (DebugTargetKind::Configuration, _) => {
            let process =
                target.fields.get("processId").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
            process.map_or(Ok(()), |pid| require_attachable(pid, found))?;
            plan_through_adapter(found, target, attach_request(target, json!({})))
        }
        _ => Err(target.unsupported_error(ADAPTER.name, "it debugs Python programs, modules and processes")),
    }
}

/// The program connects to us, and so do its children: by default, since reloaders and pools run the user's code in them.
fn plan_direct(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let with_children = target.bool_field("subProcess").unwrap_or(true);
    let mut argv = interpreter_argv(found, target)?;
    argv.push(found.path.clone().into());
    let sub_process = if with_children { "true" } else { "false" };
    argv.extend(
        ["--connect", "{address}", "--wait-for-client", "--configure-subProcess", sub_process].map(OsString::from),
    );
    argv.extend(program_argv(target)?);
    argv.extend(target.args()?.into_iter().map(OsString::from));
    let mut env = target.env();
    for name in OUTPUT_VARIABLES {
        env.entry((*name).to_owned()).or_insert_with(|| Some("1".to_owned()));
    }
    let modules = env.get(MODULE_PATH).cloned().unwrap_or_else(|| std::env::var(MODULE_PATH).ok());
    let own = "{scratch}/python".to_owned();
    env.insert(MODULE_PATH.to_owned(), Some(modules.map_or(own.clone(), |modules| format!("{own}:{modules}"))));
    if with_children {
        env.insert(CHILD_ADDRESS.to_owned(), Some("{address}".to_owned()));
        env.insert(DEBUGPY_FOLDER.to_owned(), Some(found.path.to_string_lossy().into_owned()));
    }
    if target.bool_field("gevent").unwrap_or_else(|| uses_gevent(target)) {
        // As debugpy's launcher does.
        env.entry("GEVENT_SUPPORT".to_owned()).or_insert_with(|| Some("True".to_owned()));
    }
    let mut fields = default_fields(target);
    set_field(&mut fields, "stopOnEntry", target.stop_on_entry());
    let mut fields = target.with_configuration(fields);
    // The output comes through the pipe: with `true` it would come twice.
    fields.insert("redirectOutput".to_owned(), false.into());
    let children = with_children.then(|| ChildPlan {
        start: child_start(&fields),
        identify: identify_child,
        may_connect: is_python,
    });
    let process = ProcessPlan { argv, cwd: target.cwd(), env };
    let plan = LaunchPlan::start_program(process, ConnectMethod::ConnectBack, StartRequest::Launch(fields));
    Ok(LaunchPlan { children, process_reporter: Some(PROCESS_REPORTER), ..plan })
}

/// Whether a program names gevent, whose support in debugpy would not follow the threads of any other: in its file, as its
/// module or among its arguments (`gunicorn --worker-class gevent`).
fn uses_gevent(target: &DebugTarget) -> bool {
    let text =
        target.program().and_then(|program| bounded_file::read_text(&program, MAX_PROGRAM_BYTES, Links::Follow).ok());
    let imports = |text: String| ["import gevent", "from gevent"].iter().any(|form| text.contains(form));
    let is_named = |word: &str| word == "gevent" || word.ends_with("=gevent") || word == "gevent.monkey";
    text.is_some_and(imports)
        || target.module().is_some_and(is_named)
        || target.args().unwrap_or_default().iter().any(|word| is_named(word))
}

/// The request for a child of a program that was launched with these fields.
fn child_start(program: &Fields) -> StartRequest {
    let mut fields = program.clone();
    fields.retain(|name, _| !OF_PROGRAM.contains(&name.as_str()));
    StartRequest::Attach(fields)
}

/// debugpy's own request, the only one that is responded to before `initialize`.
#[derive(Serialize)]
struct SystemInfoArguments {}

#[derive(Deserialize)]
struct SystemInfo {
    process: ProcessInfo,
}

#[derive(Deserialize)]
struct ProcessInfo {
    pid: u32,
    ppid: Option<u32>,
}

impl DapRequest for SystemInfoArguments {
    const COMMAND: &'static str = "pydevdSystemInfo";
    type Response = SystemInfo;
}

fn identify_child(client: DapClient) -> BoxFuture<'static, Result<ChildIdentity, DapError>> {
    async move {
        let SystemInfo { process } = client.request(&SystemInfoArguments {}, IDENTIFY_TIMEOUT).await?;
        Ok(ChildIdentity { pid: process.pid, parent_pid: process.ppid })
    }
    .boxed()
}

fn is_python(executable: &Path) -> bool {
    let name = executable.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || name.starts_with("pypy")
}

fn plan_through_adapter(found: &FoundAdapter, target: &DebugTarget, start: StartRequest) -> Result<LaunchPlan> {
    let python = found.interpreter.clone().unwrap_or_else(|| "python3".into());
    let argv = [python.into_os_string(), found.path.join("adapter").into_os_string()].into_iter();
    let argv = argv.chain(["--host", "127.0.0.1", "--port", "0"].map(OsString::from)).collect();
    let mut env = BTreeMap::from([(ENDPOINTS.0.to_owned(), Some(ENDPOINTS.1.to_owned()))]);
    if let (true, Some(path)) = (target.is_attach(), &found.search_path) {
        env.insert("PATH".to_owned(), Some(path.clone()));
    }
    let connect = ConnectMethod::TcpPort { parse_address: parse_endpoint };
    Ok(LaunchPlan::start_adapter(ProcessPlan { argv, cwd: target.cwd(), env }, connect, start))
}

fn plan_attach_to_listener(address: Address, target: &DebugTarget) -> LaunchPlan {
    let mut fields = target.with_configuration(default_fields(target));
    // The listening process would use these as an address to connect to.
    for name in ["connect", "host", "port"] {
        fields.remove(name);
    }
    LaunchPlan::attach_to_listener(address, target, fields)
}

/// The `launch` request for the adapter.
fn launch_request(target: &DebugTarget) -> Result<StartRequest> {
    let mut fields = default_fields(target);
    let normalized = json!({
        "args": target.args()?, "cwd": target.cwd(), "env": target.assigned_variables(),
        "stopOnEntry": target.stop_on_entry(), "redirectOutput": true,
    });
    merge_fields(&mut fields, normalized);
    match (target.program(), target.module()) {
        (Some(program), _) => merge_fields(&mut fields, json!({"program": target.require_file(&program)?})),
        (None, Some(module)) => merge_fields(&mut fields, json!({"module": module})),
        (None, None) if target.fields.contains_key("code") => {}
        (None, None) => return Err(no_program_error()),
    }
    let mut fields = target.with_configuration(fields);
    // There is no terminal that it could open.
    fields.insert("console".to_owned(), "internalConsole".into());
    Ok(StartRequest::Launch(fields))
}

fn attach_request(target: &DebugTarget, how: Value) -> StartRequest {
    let mut fields = default_fields(target);
    merge_fields(&mut fields, how);
    target.attach_request(fields)
}

fn default_fields(target: &DebugTarget) -> Value {
    let request = if target.is_attach() { "attach" } else { "launch" };
    let mut fields = json!({"type": "debugpy", "request": request, "justMyCode": true, "showReturnValue": true});
    // As VS Code's extension does: its templates are in the form of Jinja's.
    if target.bool_field("pyramid") == Some(true) {
        set_field(&mut fields, "jinja", true);
    }
    if !target.paths.is_empty() {
        let map = |map: &PathMap| json!({"localRoot": map.local, "remoteRoot": map.remote});
        set_field(&mut fields, "pathMappings", target.paths.iter().map(map).collect::<Value>());
    }
    fields
}

fn merge_fields(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// Python and its own arguments, by the configuration or as found.
fn interpreter_argv(found: &FoundAdapter, target: &DebugTarget) -> Result<Vec<OsString>> {
    let mut chosen = target.text_list("python")?;
    if chosen.is_empty() {
        chosen = target.text_list("pythonPath")?;
    }
    let mut argv: Vec<OsString> = chosen.into_iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.push(found.interpreter.clone().unwrap_or_else(|| "python3".into()).into());
    }
    argv.extend(target.text_list("pythonArgs")?.into_iter().map(OsString::from));
    Ok(argv)
}

fn program_argv(target: &DebugTarget) -> Result<Vec<OsString>> {
    let code = target.text_list("code")?;
    match (target.program(), target.module()) {
        // A folder with a `__main__.py` runs, too.
        (Some(program), _) => Ok(vec![target.require_file(&program)?.into()]),
        (None, Some(module)) => Ok(vec!["-m".into(), module.into()]),
        (None, None) if !code.is_empty() => Ok(vec!["-c".into(), code.join("\n").into()]),
        (None, None) => Err(no_program_error()),
    }
}

fn no_program_error() -> Error {
    Error::usage("cannot launch Python")
        .because("there is no `program`, `module` or `code`")
        .hint("`tether debug launch app.py` debugs a file")
}

/// The address of a listening process in a configuration, in its newer (`connect`) or its older form.
fn listener_address(target: &DebugTarget) -> Option<Address> {
    let inner = target.fields.get("connect").and_then(Value::as_object);
    inner.and_then(Address::from_fields).or_else(|| Address::from_fields(&target.fields))
}

/// `{"client": {"host": "127.0.0.1", "port": 41231}}`
fn parse_endpoint(line: &str) -> Option<SocketAddr> {
    #[derive(Deserialize)]
    struct EndpointsFile {
        client: ClientEndpoint,
    }
    #[derive(Deserialize)]
    struct ClientEndpoint {
        host: std::net::IpAddr,
        port: u16,
    }
    let EndpointsFile { client } = serde_json::from_str(line).ok()?;
    Some(SocketAddr::new(client.host, client.port))
}
