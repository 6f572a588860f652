//! debugpy: Python.
//!
//! The direct route leaves its adapter out: we listen, the program connects and speaks DAP itself, without the 44 ms
//! that the adapter adds to every operation. The adapter's route is for what the program cannot do alone: its
//! subprocesses, and getting into a process that runs already.
//!
//! debugpy need not be installed for the interpreter: a folder of it is a program of its own, and fits every Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::places::{Search, Trail};
use super::wanted::{Address, Wanted, What};
use super::{Adapter, Begin, Found, Program, Quirks, Reach, python};
use crate::dap::types::Start;
use crate::error::{Error, Result};
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "debugpy",
    id: "debugpy",
    languages: &["python", "py"],
    extensions: &["py", "pyw"],
    types: &["debugpy", "python"],
    quirks: Quirks::NONE,
    install: "`tether adapters install debugpy` installs it",
    find,
    begin,
};

/// Into a pipe Python would print only when its buffer is full; and debugpy would warn, on the program's stderr, of modules
/// of Python's own that nobody sets breakpoints in.
const QUIET_AND_PROMPT: &[&str] = &["PYTHONUNBUFFERED", "PYDEVD_DISABLE_FILE_VALIDATION"];

/// Where the adapter's route says on which port it listens. Its own stdout: it removes the file when it ends, and
/// this one cannot be removed.
const ENDPOINTS: (&str, &str) = ("DEBUGPY_ADAPTER_ENDPOINTS", "/proc/self/fd/1");

fn find(search: &Search) -> Result<Found> {
    let set = search.set.as_deref().filter(|set| is_program(set));
    let python = match set {
        Some(python) => python.to_owned(),
        None => python::find(search)?.path,
    };
    let search = &Search { set: search.set.clone().filter(|_| set.is_none()), ..search.clone() };
    let is_folder = |path: &Path| path.join("__main__.py").is_file() && path.join("adapter").is_dir();
    let mut trail = Trail::of(search, |path| is_folder(path).then(|| path.to_owned()));
    let (own, machine): (Vec<_>, Vec<_>) = python::packages(search, &python)
        .into_iter()
        .partition(|folder| python.parent().and_then(Path::parent).is_some_and(|prefix| folder.starts_with(prefix)));
    for folder in own {
        trail = trail.look(Some(folder.join("debugpy")), "the packages of the interpreter", is_folder);
    }
    trail = trail.look_at_ours("debugpy", |main| main.parent().unwrap_or(main).to_owned(), is_folder);
    trail = trail.look_at_extensions("ms-python.debugpy", "bundled/libs/debugpy", is_folder);
    let mason = search.mason("debugpy/venv/bin/python").map(|python| python::packages(search, &python));
    for folder in mason.into_iter().flatten().filter(|folder| folder.to_string_lossy().contains("mason")) {
        trail = trail.look(Some(folder.join("debugpy")), "mason", is_folder);
    }
    for folder in machine {
        trail = trail.look(Some(folder.join("debugpy")), "the packages of the interpreter", is_folder);
    }
    let found = trail.end(ROW.name, ROW.install)?;
    Ok(Found { interpreter: Some(python), ..found })
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    if !wanted.is_attach() {
        // In a configuration they are debugged, too, as in VS Code: reloaders and pools run the user's code in them.
        let configured = matches!(wanted.what, What::Fields);
        let alone = !wanted.flag("subProcess").unwrap_or(configured) && wanted.flag("sudo") != Some(true);
        return if alone { direct(found, wanted) } else { through_adapter(found, wanted, launch(wanted)?) };
    }
    match (&wanted.what, listening(wanted)) {
        (What::Listening(address), _) => Ok(attached_to(address.clone(), wanted)),
        (_, Some(address)) => Ok(attached_to(address, wanted)),
        (What::Pid(pid), _) => through_adapter(found, wanted, attach(wanted, json!({"processId": pid}))),
        (What::Fields, _) => through_adapter(found, wanted, attach(wanted, json!({}))),
        _ => Err(wanted.refused(ROW.name, "it debugs Python programs, modules and processes")),
    }
}

/// We listen, and the program connects.
fn direct(found: &Found, wanted: &Wanted) -> Result<Begin> {
    let mut argv = interpreter(found, wanted)?;
    argv.push(found.path.clone().into());
    argv.extend(["--connect", "{address}", "--wait-for-client", "--configure-subProcess", "false"].map(OsString::from));
    argv.extend(target(wanted)?);
    argv.extend(wanted.args()?.into_iter().map(OsString::from));
    let mut env = wanted.env();
    for name in QUIET_AND_PROMPT {
        env.entry((*name).to_owned()).or_insert_with(|| Some("1".to_owned()));
    }
    if wanted.flag("gevent") == Some(true) {
        // As debugpy's own launcher does.
        env.entry("GEVENT_SUPPORT".to_owned()).or_insert_with(|| Some("True".to_owned()));
    }
    let mut fields = defaults(wanted);
    fields["stopOnEntry"] = wanted.stop_on_entry().into();
    let mut fields = wanted.over(fields);
    // The output comes by the pipe: once is enough.
    fields.insert("redirectOutput".to_owned(), false.into());
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd(), env }),
        reach: Reach::DialsUs,
        start: Start::Launch(fields),
        is_program: true,
        output_by_pipe: true,
    })
}

fn through_adapter(found: &Found, wanted: &Wanted, start: Start) -> Result<Begin> {
    let python = found.interpreter.clone().unwrap_or_else(|| "python3".into());
    let argv = [python.into_os_string(), found.path.join("adapter").into_os_string()].into_iter();
    let argv = argv.chain(["--host", "127.0.0.1", "--port", "0"].map(OsString::from)).collect();
    let env = BTreeMap::from([(ENDPOINTS.0.to_owned(), Some(ENDPOINTS.1.to_owned()))]);
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd(), env }),
        reach: Reach::Port { said: endpoint },
        start,
        is_program: false,
        output_by_pipe: false,
    })
}

fn attached_to(address: Address, wanted: &Wanted) -> Begin {
    let mut fields = wanted.over(defaults(wanted));
    // Whom we speak to would take these for somebody else whom it shall connect to.
    for name in ["connect", "host", "port"] {
        fields.remove(name);
    }
    let (reach, start) = (Reach::At(address), Start::Attach(fields));
    Begin { run: None, reach, start, is_program: false, output_by_pipe: false }
}

/// What the adapter is sent for a launch.
fn launch(wanted: &Wanted) -> Result<Start> {
    let mut fields = defaults(wanted);
    let env: BTreeMap<_, _> = wanted.env().into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let given = json!({
        "args": wanted.args()?, "cwd": wanted.cwd(), "env": env, "console": "internalConsole",
        "stopOnEntry": wanted.stop_on_entry(), "redirectOutput": true,
    });
    merge(&mut fields, given);
    match (wanted.program(), wanted.module()) {
        (Some(program), _) => merge(&mut fields, json!({"program": wanted.existing(&program)?})),
        (None, Some(module)) => merge(&mut fields, json!({"module": module})),
        (None, None) if wanted.fields.contains_key("code") => {}
        (None, None) => return Err(nothing_to_run()),
    }
    let mut fields = wanted.over(fields);
    // We have no terminal that it could open.
    fields.insert("console".to_owned(), "internalConsole".into());
    Ok(Start::Launch(fields))
}

fn attach(wanted: &Wanted, how: Value) -> Start {
    let mut fields = defaults(wanted);
    merge(&mut fields, how);
    Start::Attach(wanted.over(fields))
}

fn defaults(wanted: &Wanted) -> Value {
    let request = if wanted.is_attach() { "attach" } else { "launch" };
    json!({"type": "debugpy", "request": request, "justMyCode": true, "showReturnValue": true})
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// Python and its own arguments, by the configuration or as found.
fn interpreter(found: &Found, wanted: &Wanted) -> Result<Vec<OsString>> {
    let mut chosen = wanted.texts("python")?;
    if chosen.is_empty() {
        chosen = wanted.texts("pythonPath")?;
    }
    let mut argv: Vec<OsString> = chosen.into_iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.push(found.interpreter.clone().unwrap_or_else(|| "python3".into()).into());
    }
    argv.extend(wanted.texts("pythonArgs")?.into_iter().map(OsString::from));
    Ok(argv)
}

fn target(wanted: &Wanted) -> Result<Vec<OsString>> {
    let code = wanted.texts("code")?;
    match (wanted.program(), wanted.module()) {
        // A folder with a `__main__.py` runs, too.
        (Some(program), _) => Ok(vec![wanted.existing(&program)?.into()]),
        (None, Some(module)) => Ok(vec!["-m".into(), module.into()]),
        (None, None) if !code.is_empty() => Ok(vec!["-c".into(), code.join("\n").into()]),
        (None, None) => Err(nothing_to_run()),
    }
}

fn nothing_to_run() -> Error {
    Error::usage("cannot tell what Python shall run")
        .because("there is no `program`, `module` or `code`")
        .hint("`tether debug launch app.py` debugs a file")
}

/// Where a configuration says that somebody listens; its older and its newer way.
fn listening(wanted: &Wanted) -> Option<Address> {
    let inner = wanted.fields.get("connect").and_then(Value::as_object);
    inner.and_then(Address::of).or_else(|| Address::of(&wanted.fields))
}

/// `{"client": {"host": "127.0.0.1", "port": 41231}}`
fn endpoint(line: &str) -> Option<SocketAddr> {
    #[derive(Deserialize)]
    struct Endpoints {
        client: Client,
    }
    #[derive(Deserialize)]
    struct Client {
        host: std::net::IpAddr,
        port: u16,
    }
    let Endpoints { client } = serde_json::from_str(line).ok()?;
    Some(SocketAddr::new(client.host, client.port))
}
