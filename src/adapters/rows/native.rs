//! What the adapters for C, C++ and Rust have in common: the program must be built, and may be attached to.
//!
//! Must not know any of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::adapters::debug_target::{Address, DebugTarget, DebugTargetKind};
use crate::adapters::discovery::{AdapterSearch, FoundAdapter};
use crate::dap::types::StartRequest;
use crate::error::{Error, Result};
use crate::tools::is_program;

pub const LANGUAGES: &[&str] = &["c", "c++", "cpp", "rust", "rs", "zig", "swift"];
/// Of sources; programs have none, and are known by their first bytes.
pub const EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "c++", "rs", "zig", "swift"];

/// Said to LLDB before it speaks to a stub: on a busy machine a stub does not answer within a second.
pub const PACKET_TIMEOUT_COMMAND: &str = "settings set plugin.process.gdb-remote.packet-timeout 60";

/// The program that is to be launched, built.
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
        return Err(error.because("it is no program that may be executed").hint(hint));
    }
    Ok(program)
}

/// What is target, in the words of each adapter.
pub struct NativeRequests {
    pub adapter: &'static str,
    /// What a launch has beside the usual.
    pub launch: fn(&DebugTarget) -> Value,
    /// Attaching to a stub of gdb's (`gdbserver`, `lldb-server gdbserver`).
    pub remote: fn(&Address, Option<&Path>) -> StartRequest,
}

/// The first request.
pub fn start_request(target: &DebugTarget, words: &NativeRequests) -> Result<StartRequest> {
    // In the words of the extension for C and C++: neither is a program that is to be run here.
    if let Some(at) = target.text_field("miDebuggerServerAddress") {
        let told = at.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        let (host, port) = told.ok_or_else(|| {
            let error = target
                .unsupported_error(words.adapter, &format!("`miDebuggerServerAddress` is {at:?}, and no HOST:PORT"));
            error.hint("write it as in \"127.0.0.1:2345\"")
        })?;
        return Ok(with_configuration((words.remote)(&Address { host, port }, target.program().as_deref()), target));
    }
    if target.text_field("coreDumpPath").is_some() {
        let error = target.unsupported_error(words.adapter, "core dumps (`coreDumpPath`) are not opened");
        return Err(error.hint("`gdb PROGRAM CORE` opens it"));
    }
    let pid = match &target.kind {
        DebugTargetKind::Pid(pid) => Some(json!(pid)),
        _ => target.fields.get("processId").or_else(|| target.fields.get("pid")).and_then(pid_value),
    };
    match (&target.kind, pid) {
        (DebugTargetKind::Listener(address), _) => {
            let program = target.program();
            Ok(with_configuration((words.remote)(address, program.as_deref()), target))
        }
        (DebugTargetKind::Pid(_), Some(pid)) => Ok(StartRequest::Attach(attach_fields(target, pid))),
        (DebugTargetKind::Configuration, Some(pid)) if target.is_attach() => {
            Ok(StartRequest::Attach(attach_fields(target, pid)))
        }
        (DebugTargetKind::Configuration, None) if target.is_attach() => {
            Ok(with_configuration(StartRequest::Attach(Default::default()), target))
        }
        (DebugTargetKind::Module(_) | DebugTargetKind::Page { .. }, _) => {
            Err(target.unsupported_error(words.adapter, "it debugs programs, processes and what gdbserver serves"))
        }
        _ => launch_request(target, words),
    }
}

/// VS Code's pickers give a text.
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
    // Not what they are in some of these adapters: a text, or another program.
    fields.remove("processId");
    fields
}

fn launch_request(target: &DebugTarget, words: &NativeRequests) -> Result<StartRequest> {
    let program = built_program(target, words.adapter)?;
    let mut ours = target.launch_fields(&program)?;
    ours["name"] = json!(program.file_name().map(|name| name.to_string_lossy()));
    if let (Value::Object(ours), Value::Object(more)) = (&mut ours, (words.launch)(target)) {
        ours.extend(more);
    }
    let again = target.launch_fields(&program)?;
    let mut fields = target.with_configuration(ours);
    // These have been read from the configuration already, in whichever way they were written.
    for name in ["program", "args", "cwd", "env", "stopOnEntry"] {
        fields.insert(name.to_owned(), again[name].clone());
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

/// Whether it lies, or runs, in a package of cargo's: then its values are Rust's.
pub fn is_rust(target: &DebugTarget) -> bool {
    let places = [target.program(), Some(target.cwd())];
    places.iter().flatten().flat_map(|path| path.ancestors()).any(|folder| folder.join("Cargo.toml").is_file())
}

/// With the place of the formatters that come with Rust: its default toolchain's, or the distribution's.
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

/// A setting that names the program itself, or the folder that it lies in.
pub fn configured_program(names: &'static [&'static str]) -> impl Fn(&Path) -> Option<PathBuf> {
    move |path| {
        let below = names.iter().map(|name| path.join(name));
        std::iter::once(path.to_owned()).chain(below).find(|path| is_program(path))
    }
}
