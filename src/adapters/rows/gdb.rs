//! gdb: C, C++ and Rust. It supports DAP since version 14; distributions may still ship an older one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tether_base::error::Result;
use tether_dap::types::StartRequest;
use tether_tools::is_program;

use super::native;
use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConnectMethod, DebugTarget, DebuggedChildren, FoundAdapter, HitCounting,
    INSTALLED, LaunchPlan, PathMap, ProcessPlan, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "gdb",
    id: "gdb",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["gdb", "cppdbg"],
    attach_types: &[],
    runtimes: &[],
    children: |_| DebuggedChildren::None("gdb debugs no child processes"),
    quirks: Quirks {
        drain_command: Some("shell echo"),
        detach_command: Some("detach"),
        signals_as_codes: true,
        logs_always: true,
        hit_counting: HitCounting::None,
        ignores_columns: true,
        opens_core_dumps: true,
        ..Quirks::NONE
    },
    install: "`tether adapters install gdb` installs it; a gdb of version 14 or newer on PATH works, too",
    find: find_adapter,
    plan: plan_launch,
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let lookup = AdapterLookup::new(search, is_program, &[]);
    let lookup = match search.on_path(&["gdb"]).filter(|gdb| !supports_dap(gdb)) {
        Some(old) => lookup.note_skipped(format!("{} (PATH; it is older than version 14)", old.display())),
        None => lookup.try_on_path(&["gdb"]),
    };
    let own = search.installed_tool("gdb");
    let found = lookup.try_path(own.clone(), INSTALLED).finish(ADAPTER.name, ADAPTER.install)?;
    // Tether's own is a Python module, with an interpreter of its own.
    let interpreter = own.filter(|own| *own == found.path);
    Ok(native::with_formatters(FoundAdapter { interpreter, ..found }, search))
}

/// Checked by its files, since running it takes longer: only versions with DAP have this one.
fn supports_dap(gdb: &Path) -> bool {
    let real = gdb.canonicalize().unwrap_or_else(|_| PathBuf::from(gdb));
    let prefix = real.parent().and_then(Path::parent);
    prefix.is_some_and(|prefix| prefix.join("share/gdb/python/gdb/dap/__init__.py").is_file())
}

/// As `rust-gdb`, but for every program: the section of a program that `rust-gdb` uses requires a path without spaces.
fn rust_formatter_command(formatters: &Path) -> String {
    let path = json!(formatters); // a JSON string is a Python string
    format!("python import sys; sys.path.insert(0, {path}); import gdb_lookup; gdb_lookup.register_printers(gdb)")
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let mut argv: Vec<OsString> = vec![found.path.clone().into()];
    if found.interpreter.is_some() {
        argv.extend(["-I", "-m", "gdb_for_pwndbg.gdb"].map(OsString::from));
    }
    argv.extend(["-nx", "-q", "-i=dap"].map(OsString::from));
    if found.interpreter.is_some() {
        // These variables are for gdb's own Python, and not for the program.
        let own = ["PYTHONHOME", "PYTHONPATH", "PYTHONNOUSERSITE"];
        for name in own.iter().filter(|name| !target.env().contains_key(**name)) {
            argv.extend(["-iex".into(), format!("unset environment {name}").into()]);
        }
    }
    if let Some(formatters) = found.formatters.as_deref().filter(|_| native::is_rust(target)) {
        argv.extend(["-iex".into(), rust_formatter_command(formatters).into()]);
    }
    // A setting of the other debuggers, which gdb has none for.
    let given = target.fields.get("sourceMap").and_then(Value::as_object).into_iter().flatten();
    let given = given.filter_map(|(from, to)| Some(PathMap { local: to.as_str()?.into(), remote: from.into() }));
    for PathMap { local, remote } in given.chain(native::source_maps(target)) {
        // gdb reads its arguments as a shell does.
        let words = [remote, local].map(|path| json!(path).to_string()).join(" ");
        argv.extend(["-iex".into(), format!("set substitute-path {words}").into()]);
    }
    let mut start = native::start_request(target, ADAPTER.name, json!({}), &REQUESTS)?;
    let mut process = ProcessPlan::new(argv, &target.cwd);
    if let StartRequest::Launch(fields) = &mut start {
        // With `env`, gdb would clear what the program inherits: it inherits gdb's own.
        fields.remove("env");
        process.env = target.env();
    }
    Ok(LaunchPlan::start_adapter(process, ConnectMethod::Pipes, start))
}

const REQUESTS: native::OwnRequests = native::OwnRequests { remote: remote_request, core: native::core_request };

fn remote_request(address: &str, program: Option<&Path>) -> StartRequest {
    native::attach_request("target", json!(address), program)
}
