//! Delve: Go, from sources, tests and programs that are built already.
//!
//! It dials us, and serves that one connection.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::debug_target::{Address, DebugTarget, DebugTargetKind};
use super::discovery::{AdapterLookup, AdapterSearch};
use super::{Adapter, ConnectMethod, FoundAdapter, LaunchPlan, ProcessPlan, Quirks};
use crate::dap::types::StartRequest;
use crate::error::Result;
use crate::tools::is_program;

pub const ADAPTER: Adapter = Adapter {
    name: "dlv",
    id: "go",
    languages: &["go", "golang"],
    extensions: &["go"],
    types: &["go", "delve"],
    quirks: Quirks::NONE,
    install: "`apt-get install delve golang-go` or `go install github.com/go-delve/delve/cmd/dlv@latest` installs it",
    find: find_adapter,
    plan: plan_launch,
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let below = |variable: &str, folder: &str| search.var(variable).map(|path| PathBuf::from(path).join(folder));
    AdapterLookup::new(search, |path| is_program(path).then(|| path.to_owned()))
        .try_on_path(&["dlv"])
        .try_path(below("GOBIN", "dlv"), "GOBIN", is_program)
        .try_path(below("GOPATH", "bin/dlv"), "GOPATH", is_program)
        .try_path(search.home().map(|home| home.join("go/bin/dlv")), "go install", is_program)
        .try_path(search.mason_file("delve/dlv"), "mason", is_program)
        .finish(ADAPTER.name, ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, wanted: &DebugTarget) -> Result<LaunchPlan> {
    if let Some(address) = listener_address(wanted) {
        let start = StartRequest::Attach(wanted.with_configuration(json!({"mode": "remote"})));
        return Ok(LaunchPlan {
            process: None,
            connect: ConnectMethod::Existing(address),
            start,
            is_program: false,
            output_by_pipe: false,
        });
    }
    let (start, cwd) = match &wanted.kind {
        DebugTargetKind::Pid(pid) => {
            (StartRequest::Attach(wanted.with_configuration(json!({"mode": "local", "processId": pid}))), wanted.cwd())
        }
        DebugTargetKind::Configuration if wanted.is_attach() => {
            (StartRequest::Attach(wanted.with_configuration(json!({"mode": "local"}))), wanted.cwd())
        }
        DebugTargetKind::Module(_) | DebugTargetKind::Page { .. } => {
            return Err(wanted.unsupported_error(ADAPTER.name, "it debugs Go packages, programs and processes"));
        }
        _ => launch_request(wanted)?,
    };
    let argv = [found.path.as_os_str(), "dap".as_ref(), "--client-addr".as_ref(), "{address}".as_ref()];
    let argv = argv.into_iter().map(OsString::from).collect();
    Ok(LaunchPlan {
        // The environment is the compiler's, too (GOFLAGS, CGO_ENABLED).
        process: Some(ProcessPlan { argv, cwd, env: wanted.env() }),
        connect: ConnectMethod::ConnectBack,
        start,
        is_program: false,
        output_by_pipe: true,
    })
}

/// Where a headless Delve listens that is to be attached to.
fn listener_address(wanted: &DebugTarget) -> Option<Address> {
    match &wanted.kind {
        DebugTargetKind::Listener(address) => Some(address.clone()),
        DebugTargetKind::Configuration if wanted.is_attach() => Address::from_fields(&wanted.fields),
        _ => None,
    }
}

/// The request, and the folder in which is compiled.
fn launch_request(wanted: &DebugTarget) -> Result<(StartRequest, PathBuf)> {
    let program = wanted.require_file(&wanted.program().unwrap_or_else(|| wanted.cwd()))?;
    let given = wanted.text_field("mode").filter(|mode| *mode != "auto");
    let test = program.to_string_lossy().ends_with("_test.go");
    let is_source = program.is_dir() || program.extension().is_some_and(|extension| extension == "go");
    let mode = given.unwrap_or(match () {
        () if test => "test",
        () if is_source => "debug",
        () => "exec",
    });
    let target = if is_source { package_of(&program, mode == "test") } else { program };
    let folder = if target.is_dir() { target.clone() } else { target.parent().unwrap_or(Path::new("/")).to_owned() };
    // In a configuration that says none, the program runs in its own folder, as in VS Code.
    let cwd = match (wanted.text_field("cwd"), &wanted.kind) {
        (None, DebugTargetKind::Configuration) => folder.clone(),
        _ => wanted.cwd(),
    };
    let mut ours = wanted.launch_fields(&target)?;
    ours["mode"] = mode.into();
    ours["hideSystemGoroutines"] = true.into();
    // `null` takes a variable away: from the program, too.
    ours["env"] = wanted.env().into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    if is_source {
        // Beside the sources it would make the window stale.
        ours["output"] = "{scratch}/debug".into();
    }
    let mut fields = wanted.with_configuration(ours);
    for (name, value) in [("program", json!(target)), ("mode", json!(mode)), ("cwd", json!(cwd))] {
        fields.insert(name.to_owned(), value);
    }
    Ok((StartRequest::Launch(fields), if is_source { folder } else { cwd }))
}

/// A file of a module stands for its package. A file without a module is a program of its own.
fn package_of(source: &Path, test: bool) -> PathBuf {
    let in_module = source.ancestors().skip(1).any(|folder| folder.join("go.mod").is_file());
    match source.parent() {
        Some(folder) if source.is_file() && (in_module || test) => folder.to_owned(),
        _ => source.to_owned(),
    }
}
