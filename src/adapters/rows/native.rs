//! What the adapters for C, C++ and Rust have in common: checks of the program, and the first request.
//!
//! Does not depend on any of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_dap::types::StartRequest;
use tether_tools::is_program;

use crate::adapters::{AdapterSearch, Address, DebugTarget, DebugTargetKind, FoundAdapter, PathMap, find_source_maps};

/// The languages of these adapters.
pub const LANGUAGES: &[&str] = &["c", "c++", "cpp", "rust", "rs", "zig", "swift"];
/// The extensions of sources; executables are identified by their first bytes.
pub const EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "c++", "rs", "zig", "swift"];

/// The executable that is to be launched. Errors: it is missing, a source, or not executable.
fn built_program(target: &DebugTarget, adapter: &str) -> Result<PathBuf> {
    let program = target.program().ok_or_else(|| {
        target.unsupported_error(adapter, "it debugs programs and processes, and there is no `program`").hint(
            "`tether debug launch PROGRAM` starts one that is built; `tether debug attach --pid PID` takes a process",
        )
    })?;
    let program = target.require_file(&program)?;
    let extension = program.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    if extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) {
        let error = Error::usage(format!("cannot debug {} as it is", program.display()));
        let error = error.because("it is a source: it has to be built with debug information first");
        return Err(error.hint(build_hint(&program)));
    }
    if program.is_dir() || !is_program(&program) {
        let error = Error::usage(format!("cannot debug {}", program.display()));
        let error = error.because("it is not an executable program");
        return Err(error.hint("`tether debug launch` takes the program that a build makes: its source is no program"));
    }
    Ok(program)
}

/// How a source is built, and then debugged.
fn build_hint(source: &Path) -> String {
    let quoted = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        shlex::try_quote(&text).map_or_else(|_| text.clone(), |quoted| quoted.into_owned())
    };
    let extension = source.extension().map(|it| it.to_string_lossy().to_lowercase()).unwrap_or_default();
    if extension == "rs" && source.ancestors().skip(1).any(|folder| folder.join("Cargo.toml").is_file()) {
        return "`cargo build`, then `tether debug launch target/debug/NAME`".to_owned();
    }
    let (text, built) = (quoted(source), quoted(&source.with_extension("")));
    let command = match extension.as_str() {
        "c" => format!("cc -g -O0 {text} -o {built}"),
        "rs" => format!("rustc -g {text} -o {built}"),
        "zig" => format!("zig build-exe {text} -femit-bin={built}"),
        "swift" => format!("swiftc -g -Onone {text} -o {built}"),
        _ => format!("c++ -g -O0 {text} -o {built}"),
    };
    format!("`{command}`, then `tether debug launch {built}`")
}

/// An adapter's own requests.
pub struct OwnRequests {
    /// That attaches to a gdb stub (`gdbserver`, `lldb-server gdbserver`) at HOST:PORT, to debug this program.
    pub remote: fn(&str, Option<&Path>) -> StartRequest,
    /// That opens a core dump of this program.
    pub core: fn(&Path, &Path) -> StartRequest,
}

/// The first request of this adapter; `launch` are the fields that it adds to a launch.
pub fn start_request(
    target: &DebugTarget,
    adapter: &str,
    launch: Value,
    requests: &OwnRequests,
) -> Result<StartRequest> {
    let attach_remote = |host: &str, port: u16| {
        let mut start = (requests.remote)(&format!("{host}:{port}"), target.program().as_deref());
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
        fields.extend(target.fields.clone());
        Ok(start)
    };
    // Two fields of VS Code's C++ extension, which do not launch a program here.
    if let Some(at) = target.text_field("miDebuggerServerAddress") {
        let address = at.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = address.ok_or_else(|| {
            let cause = format!("`miDebuggerServerAddress` is {at:?}, not HOST:PORT");
            target.unsupported_error(adapter, &cause).hint("write it as in \"127.0.0.1:2345\"")
        })?;
        return attach_remote(host, port);
    }
    if let Some(core) = target.text_field("coreDumpPath") {
        return Ok((requests.core)(&target.cwd().join(core), &built_program(target, adapter)?));
    }
    match &target.kind {
        DebugTargetKind::Core { core, program } => Ok((requests.core)(core, program)),
        DebugTargetKind::Listener(Address { host, port }) => attach_remote(host, *port),
        DebugTargetKind::Pid(pid) => Ok(attach_to_process(target, json!(pid))),
        DebugTargetKind::Configuration if target.is_attach() => {
            let pid = target.fields.get("processId").or_else(|| target.fields.get("pid")).and_then(pid_value);
            Ok(pid.map_or_else(|| target.attach_request(json!({})), |pid| attach_to_process(target, pid)))
        }
        DebugTargetKind::Module(_) | DebugTargetKind::Page { .. } => {
            Err(target.unsupported_error(adapter, "it debugs programs, processes and what gdbserver serves"))
        }
        _ => launch_request(target, adapter, launch),
    }
}

/// The commands with which LLDB connects to a stub. On a busy machine, a stub's response takes more than LLDB's one
/// second. While LLDB is asynchronous, it does not wait until the process is stopped: lldb-dap 19 then gives up, and
/// CodeLLDB may say that the process is not valid.
pub fn connect_commands(address: &str) -> [String; 4] {
    let [synchronous, asynchronous] = ["False", "True"].map(|value| format!("script lldb.debugger.SetAsync({value})"));
    let timeout = "settings set plugin.process.gdb-remote.packet-timeout 60".to_owned();
    [timeout, synchronous, format!("gdb-remote {address}"), asynchronous]
}

/// An `attach` request with one field of the adapter's own, and the program, if there is one.
pub fn attach_request(name: &str, value: Value, program: Option<&Path>) -> StartRequest {
    let program = program.map(|program| ("program".to_owned(), json!(program)));
    StartRequest::Attach([(name.to_owned(), value)].into_iter().chain(program).collect())
}

/// A process id; VS Code's pickers return a string.
fn pid_value(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => text.parse::<u32>().ok().map(Value::from),
        _ => None,
    }
}

/// The `attach` request of a core dump, as gdb and lldb-dap have it.
pub fn core_request(core: &Path, program: &Path) -> StartRequest {
    attach_request("coreFile", json!(core), Some(program))
}

fn attach_to_process(target: &DebugTarget, pid: Value) -> StartRequest {
    let mut fields = target.with_configuration(json!({"name": "attach"}));
    fields.insert("pid".to_owned(), pid);
    // Some of these adapters read `processId` as something else.
    fields.remove("processId");
    StartRequest::Attach(fields)
}

fn launch_request(target: &DebugTarget, adapter: &str, launch: Value) -> Result<StartRequest> {
    // CodeLLDB may be told by commands what the program is.
    let is_by_command = target.program().is_none() && target.fields.contains_key("targetCreateCommands");
    let program = if is_by_command { PathBuf::new() } else { built_program(target, adapter)? };
    let mut normalized = target.launch_fields(&program)?;
    if let (true, Value::Object(normalized)) = (is_by_command, &mut normalized) {
        normalized.remove("program");
    }
    let mut fields = target.with_configuration(launch);
    if let Some(name) = program.file_name() {
        fields.entry("name").or_insert_with(|| json!(name.to_string_lossy()));
    }
    // Normalized values of the configuration's fields, whichever form those have.
    for name in ["program", "args", "cwd", "env", "stopOnEntry"] {
        fields.extend(normalized.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    fields.remove("environment");
    Ok(StartRequest::Launch(fields))
}

/// The folders that the sources of a program stand for: those that the user has named, and those of a C or C++ program that are not
/// on this machine; none where the configuration maps them itself.
pub fn source_maps(target: &DebugTarget) -> Vec<PathMap> {
    let is_mapped = ["sourceMap", "sourceFileMap", "debuggerRoot", "sourcePath"]
        .iter()
        .any(|name| target.fields.contains_key(*name));
    if is_mapped {
        return Vec::new();
    }
    let program = target.program().filter(|program| program.is_file() && !is_rust(target));
    let found = program.map(|program| find_source_maps(&program, &[target.cwd()])).unwrap_or_default();
    target.paths.iter().cloned().chain(found).collect()
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
        chosen.into_iter().chain(default).map(move |name| rustup.join("toolchains").join(name).join("lib"))
    });
    let libraries = toolchains.chain(["/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    let formatters =
        libraries.map(|library| library.join("rustlib/etc")).find(|etc| etc.join("rust_types.py").is_file());
    FoundAdapter { formatters, ..found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_builds_the_source_that_was_named() {
        let check = |source: &str, expect: &str| assert_eq!(build_hint(Path::new(source)), expect);
        check("/w/avg.cpp", "`c++ -g -O0 /w/avg.cpp -o /w/avg`, then `tether debug launch /w/avg`");
        check("/w/my app.c", "`cc -g -O0 '/w/my app.c' -o '/w/my app'`, then `tether debug launch '/w/my app'`");
        check("/w/a.rs", "`rustc -g /w/a.rs -o /w/a`, then `tether debug launch /w/a`");
    }
}
