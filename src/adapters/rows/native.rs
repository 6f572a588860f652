//! What the adapters for C, C++ and Rust have in common: checks of the program, and the first request.
//!
//! Does not depend on any of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::adapters::debug_target::{Address, DebugTarget, DebugTargetKind};
use crate::adapters::discovery::{AdapterSearch, FoundAdapter};
use crate::dap::types::StartRequest;
use crate::error::{Error, Result};
use crate::tools::is_program;

/// The languages of these adapters.
pub const LANGUAGES: &[&str] = &["c", "c++", "cpp", "rust", "rs", "zig", "swift"];
/// The extensions of sources; executables are identified by their first bytes.
pub const EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "c++", "rs", "zig", "swift"];

/// Sent to LLDB before it connects to a stub: on a busy machine, a stub's response takes more than LLDB's one second.
pub const PACKET_TIMEOUT_COMMAND: &str = "settings set plugin.process.gdb-remote.packet-timeout 60";

/// The executable that is to be launched. Errors: it is missing, a source, or not executable.
pub fn built_program(target: &DebugTarget, adapter: &str) -> Result<PathBuf> {
    let hint = "`cargo build`, then `tether debug launch target/debug/NAME`; `cc -g -O0 app.c -o app` for C";
    let program = target.program().ok_or_else(|| {
        target.unsupported_error(adapter, "it debugs programs and processes, and there is no `program`").hint(hint)
    })?;
    let program = target.require_file(&program)?;
    let extension = program.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    if extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) {
        let error = Error::usage(format!("cannot debug {} as it is", program.display()));
        return Err(error.because("it is a source: it has to be built with debug information first").hint(hint));
    }
    if program.is_dir() || !is_program(&program) {
        let error = Error::usage(format!("cannot debug {}", program.display()));
        return Err(error.because("it is no executable program").hint(hint));
    }
    Ok(program)
}

/// How the requests of one adapter differ from the others.
pub struct NativeRequests {
    /// The adapter's name, for errors.
    pub adapter: &'static str,
    /// The additional fields of a launch.
    pub launch: fn(&DebugTarget) -> Value,
    /// The request that attaches to a gdb stub (`gdbserver`, `lldb-server gdbserver`).
    pub remote: fn(&Address, Option<&Path>) -> StartRequest,
}

/// The first request.
pub fn start_request(target: &DebugTarget, requests: &NativeRequests) -> Result<StartRequest> {
    // Two fields of VS Code's C++ extension, which do not launch a program here.
    if let Some(at) = target.text_field("miDebuggerServerAddress") {
        let address = at.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        let (host, port) = address.ok_or_else(|| {
            let error = target
                .unsupported_error(requests.adapter, &format!("`miDebuggerServerAddress` is {at:?}, not HOST:PORT"));
            error.hint("write it as in \"127.0.0.1:2345\"")
        })?;
        return Ok(with_configuration((requests.remote)(&Address { host, port }, target.program().as_deref()), target));
    }
    if target.text_field("coreDumpPath").is_some() {
        let error = target.unsupported_error(requests.adapter, "core dumps (`coreDumpPath`) are not opened");
        return Err(error.hint("`gdb PROGRAM CORE` opens it"));
    }
    let pid = match &target.kind {
        DebugTargetKind::Pid(pid) => Some(json!(pid)),
        _ => target.fields.get("processId").or_else(|| target.fields.get("pid")).and_then(pid_value),
    };
    match (&target.kind, pid) {
        (DebugTargetKind::Listener(address), _) => {
            let program = target.program();
            Ok(with_configuration((requests.remote)(address, program.as_deref()), target))
        }
        (DebugTargetKind::Pid(_), Some(pid)) => Ok(StartRequest::Attach(attach_fields(target, pid))),
        (DebugTargetKind::Configuration, Some(pid)) if target.is_attach() => {
            Ok(StartRequest::Attach(attach_fields(target, pid)))
        }
        (DebugTargetKind::Configuration, None) if target.is_attach() => {
            Ok(with_configuration(StartRequest::Attach(Default::default()), target))
        }
        (DebugTargetKind::Module(_) | DebugTargetKind::Page { .. }, _) => {
            Err(target.unsupported_error(requests.adapter, "it debugs programs, processes and what gdbserver serves"))
        }
        _ => launch_request(target, requests),
    }
}

/// A process id; VS Code's pickers return a string.
fn pid_value(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => text.parse::<u32>().ok().map(Value::from),
        _ => None,
    }
}

fn attach_fields(target: &DebugTarget, pid: Value) -> crate::dap::types::Fields {
    let mut fields = target.with_configuration(json!({"name": "attach"}));
    fields.insert("pid".to_owned(), pid);
    // Some of these adapters read `processId` as something else.
    fields.remove("processId");
    fields
}

fn launch_request(target: &DebugTarget, requests: &NativeRequests) -> Result<StartRequest> {
    let program = built_program(target, requests.adapter)?;
    let mut ours = target.launch_fields(&program)?;
    ours["name"] = json!(program.file_name().map(|name| name.to_string_lossy()));
    if let (Value::Object(ours), Value::Object(more)) = (&mut ours, (requests.launch)(target)) {
        ours.extend(more);
    }
    let normalized = target.launch_fields(&program)?;
    let mut fields = target.with_configuration(ours);
    // Normalized values of the configuration's fields, whichever form those have.
    for name in ["program", "args", "cwd", "env", "stopOnEntry"] {
        fields.insert(name.to_owned(), normalized[name].clone());
    }
    fields.remove("environment");
    Ok(StartRequest::Launch(fields))
}

fn with_configuration(start: StartRequest, target: &DebugTarget) -> StartRequest {
    match start {
        StartRequest::Launch(fields) => StartRequest::Launch(target.with_configuration(fields.into())),
        StartRequest::Attach(fields) => StartRequest::Attach(target.with_configuration(fields.into())),
    }
}

/// Whether the program or its working directory is in a cargo package: then its values are Rust's.
pub fn is_rust(target: &DebugTarget) -> bool {
    let places = [target.program(), Some(target.cwd())];
    places.iter().flatten().flat_map(|path| path.ancestors()).any(|folder| folder.join("Cargo.toml").is_file())
}

/// Adds the folder of Rust's formatters: the default toolchain's, or the distribution's.
pub fn with_formatters(found: FoundAdapter, search: &AdapterSearch) -> FoundAdapter {
    let rustup = search.var("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(search.home()?.join(".rustup")));
    let toolchains = rustup.into_iter().flat_map(|rustup| {
        let settings = std::fs::read_to_string(rustup.join("settings.toml")).unwrap_or_default();
        let default = settings.parse::<toml::Table>().ok();
        let default = default.as_ref().and_then(|it| it.get("default_toolchain")?.as_str()).map(str::to_owned);
        let chosen = search.var("RUSTUP_TOOLCHAIN").and_then(|name| name.to_str()).map(str::to_owned);
        chosen
            .into_iter()
            .chain(default)
            .map(move |name| rustup.join("toolchains").join(name).join("lib"))
            .collect::<Vec<_>>()
    });
    let libraries = toolchains.chain(["/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    let formatters =
        libraries.map(|library| library.join("rustlib/etc")).find(|etc| etc.join("rust_types.py").is_file());
    FoundAdapter { formatters, ..found }
}

/// Resolves a setting that is the program itself, or a folder that contains it.
pub fn configured_program(names: &'static [&'static str]) -> impl Fn(&Path) -> Option<PathBuf> {
    move |path| {
        let below = names.iter().map(|name| path.join(name));
        std::iter::once(path.to_owned()).chain(below).find(|path| is_program(path))
    }
}
