//! Delve: Go sources, tests, and executables.
//!
//! It connects to us, and serves that one connection.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tether_base::error::Result;
use tether_dap::types::{Fields, StartRequest, set_field};
use tether_tools::is_program;

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, Address, ConnectMethod, DebugTarget, DebugTargetKind, DebuggedChildren,
    FoundAdapter, LaunchPlan, PathMap, ProcessPlan, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "dlv",
    id: "go",
    languages: &["go", "golang"],
    extensions: &["go"],
    types: &["go", "delve"],
    attach_types: &[],
    runtimes: &[],
    children: |_| DebuggedChildren::None("dlv debugs no child processes"),
    quirks: Quirks {
        keeps_read_values: true,
        ends_launched_program: true,
        ignores_columns: true,
        opens_core_dumps: true,
        compares_path_texts: true,
        condition_stop: Some("error evaluating expression: "),
        exit_words: Some(" has exited with status "),
        generated_source: Some("_cgo_gotypes.go"),
        ..Quirks::NONE
    },
    install: "`apt-get install delve golang-go` or `go install github.com/go-delve/delve/cmd/dlv@latest` installs it",
    find: find_adapter,
    plan: plan_launch,
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let below = |variable: &str, folder: &str| search.var(variable).map(|path| PathBuf::from(path).join(folder));
    AdapterLookup::new(search, is_program, &[])
        .try_on_path(&["dlv"])
        .try_path(below("GOBIN", "dlv"), "GOBIN")
        .try_path(below("GOPATH", "bin/dlv"), "GOPATH")
        .try_path(search.home().map(|home| home.join("go/bin/dlv")), "go install")
        .try_path(search.mason_file("delve/dlv"), "mason")
        .finish(ADAPTER.name, ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    if let Some(address) = listener_address(target) {
        let fields = target.with_configuration(attach_fields(target, json!({"mode": "remote"})));
        return Ok(LaunchPlan::attach_to_listener(address, target, fields));
    }
    let (start, cwd) = match &target.kind {
        DebugTargetKind::Pid(pid) => {
            (target.attach_request(attach_fields(target, json!({"mode": "local", "processId": pid}))), target.cwd())
        }
        DebugTargetKind::Configuration if target.is_attach() => {
            (target.attach_request(attach_fields(target, json!({"mode": "local"}))), target.cwd())
        }
        DebugTargetKind::Core { core, program } => {
            let fields = json!({"mode": "core", "program": program, "coreFilePath": core, "stopOnEntry": true});
            (StartRequest::Launch(target.with_configuration(attach_fields(target, fields))), target.cwd())
        }
        DebugTargetKind::Module(_) | DebugTargetKind::Page { .. } => {
            return Err(target.unsupported_error(ADAPTER.name, "it debugs Go packages, programs and processes"));
        }
        _ => launch_request(target)?,
    };
    let argv = [found.path.as_os_str(), "dap".as_ref(), "--client-addr".as_ref(), "{address}".as_ref()];
    let argv = argv.into_iter().map(OsString::from).collect();
    // The environment is also the compiler's (GOFLAGS, CGO_ENABLED).
    let process = ProcessPlan { argv, cwd, env: target.env() };
    let plan = LaunchPlan::start_adapter(process, ConnectMethod::ConnectBack, start);
    Ok(LaunchPlan { output_by_pipe: true, ..plan })
}

/// With the folders that the program was built in.
fn attach_fields(target: &DebugTarget, mut fields: Value) -> Value {
    if !target.paths.is_empty() {
        let map = |map: &PathMap| json!({"from": map.local, "to": map.remote});
        set_field(&mut fields, "substitutePath", target.paths.iter().map(map).collect::<Value>());
    }
    fields
}

/// The address of a headless Delve that is attached to.
fn listener_address(target: &DebugTarget) -> Option<Address> {
    match &target.kind {
        DebugTargetKind::Listener(address) => Some(address.clone()),
        DebugTargetKind::Configuration if target.is_attach() => Address::from_fields(&target.fields),
        _ => None,
    }
}

/// The `launch` request, and the folder in which Delve compiles.
fn launch_request(target: &DebugTarget) -> Result<(StartRequest, PathBuf)> {
    let program = target.require_file(&target.program().unwrap_or_else(|| target.cwd()))?;
    let given = target.text_field("mode").filter(|mode| *mode != "auto");
    let test = program.to_string_lossy().ends_with("_test.go");
    let is_source = program.is_dir() || program.extension().is_some_and(|extension| extension == "go");
    let mode = given.unwrap_or(match () {
        () if test => "test",
        () if is_source => "debug",
        () => "exec",
    });
    let entry = if is_source { package_of(&program, mode == "test") } else { program };
    let folder = if entry.is_dir() { entry.clone() } else { entry.parent().unwrap_or(Path::new("/")).to_owned() };
    // In a configuration without `cwd`, the program runs in its own folder, as in VS Code.
    let cwd = match (target.text_field("cwd"), &target.kind) {
        (None, DebugTargetKind::Configuration) => folder.clone(),
        _ => target.cwd(),
    };
    let mut ours = target.launch_fields(&entry)?;
    set_field(&mut ours, "mode", mode);
    set_field(&mut ours, "hideSystemGoroutines", true);
    // Delve, too, unsets a variable that is `null`.
    let env: Fields = target.env().into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    set_field(&mut ours, "env", env);
    if is_source {
        // Among the sources, the executable would make the window stale.
        set_field(&mut ours, "output", "{scratch}/debug");
    }
    let mut fields = target.with_configuration(ours);
    for (name, value) in [("program", json!(entry)), ("mode", json!(mode)), ("cwd", json!(cwd))] {
        fields.insert(name.to_owned(), value);
    }
    Ok((StartRequest::Launch(fields), if is_source { folder } else { cwd }))
}

/// The package of a file in a module; a file without a module is a program of its own.
fn package_of(source: &Path, test: bool) -> PathBuf {
    let in_module = source.ancestors().skip(1).any(|folder| folder.join("go.mod").is_file());
    match source.parent() {
        Some(folder) if source.is_file() && (in_module || test) => folder.to_owned(),
        _ => source.to_owned(),
    }
}
