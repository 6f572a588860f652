//! gdb: C, C++ and Rust. It supports DAP since version 14; distributions may still ship an older one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::native::{self, NativeRequests};
use crate::adapters::adapter::{Adapter, Quirks};
use crate::adapters::debug_target::DebugTarget;
use crate::adapters::discovery::{AdapterLookup, AdapterSearch, FoundAdapter};
use crate::adapters::launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan};
use crate::dap::types::{Fields, StartRequest};
use crate::error::Result;
use crate::tools::is_program;

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "gdb",
    id: "gdb",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["gdb", "cppdbg"],
    quirks: Quirks { drain_command: Some("shell echo"), ..Quirks::NONE },
    install: "`tether adapters install gdb` installs it; a gdb of version 14 or newer on PATH works, too",
    find: find_adapter,
    plan: plan_launch,
};

/// The arguments that start gdb in tether's own install.
const MODULE: &[&str] = &["-I", "-m", "gdb_for_pwndbg.gdb"];

const WORDS: NativeRequests = NativeRequests {
    adapter: ADAPTER.name,
    launch: |_| json!({}),
    remote: |address, program| {
        let target = format!("{}:{}", address.host, address.port);
        let mut fields = Fields::from_iter([("target".to_owned(), json!(target))]);
        fields.extend(program.map(|program| ("program".to_owned(), json!(program))));
        StartRequest::Attach(fields)
    },
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let new_enough = |path: &Path| is_program(path) && supports_dap(path);
    let on_path = search.on_path(&["gdb"]);
    let mut trail = AdapterLookup::new(search, |path| is_program(path).then(|| path.to_owned()));
    trail = match &on_path {
        Some(gdb) if !supports_dap(gdb) => {
            trail.note_skipped(format!("{} (PATH; it is older than version 14)", gdb.display()))
        }
        Some(_) => trail.try_path(on_path.clone(), "PATH", new_enough),
        None => trail.try_on_path(&["gdb"]),
    };
    let found =
        trail.try_installed_tool("gdb", |entry| entry.to_owned(), is_program).finish(ADAPTER.name, ADAPTER.install)?;
    // Tether's own is a Python module, with an interpreter of its own.
    let own = search.installed_tool("gdb").is_some_and(|own| own == found.path);
    Ok(native::with_formatters(FoundAdapter { interpreter: own.then(|| found.path.clone()), ..found }, search))
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
        argv.extend(MODULE.iter().map(OsString::from));
    }
    argv.extend(["-nx", "-q", "-i=dap"].map(OsString::from));
    if found.interpreter.is_some() {
        // These variables are for gdb's own Python, and not for the program.
        for name in ["PYTHONHOME", "PYTHONPATH", "PYTHONNOUSERSITE"] {
            argv.extend(["-iex".into(), format!("unset environment {name}").into()]);
        }
    }
    if let Some(formatters) = found.formatters.as_deref().filter(|_| native::is_rust(target)) {
        argv.extend(["-iex".into(), rust_formatter_command(formatters).into()]);
    }
    Ok(LaunchPlan {
        process: Some(ProcessPlan { argv, cwd: target.cwd.clone(), env: Default::default() }),
        connect: ConnectMethod::Pipes,
        start: native::start_request(target, &WORDS)?,
        is_program: false,
        output_by_pipe: false,
    })
}
