//! The arguments of `launch` and `attach`, as users of launch.json know them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_backend::launch_fields::FieldReader;
use tether_dap::types::Fields;

use super::inspector_options::{denied_inspector, script_port, without_inspect_options};
use super::local_programs::{find_local_program, is_on_path};
use super::monorepo::monorepo_root;
use super::path_maps::PathMaps;
use super::program_file::{entry_file, find_program};
use super::restart_policy::RestartPolicy;
use super::scripts::SkipPatterns;
use super::source_maps::{MapFolders, normalize_path};

/// Arguments of VS Code's debugger that change nothing here.
const IGNORED_KEYS: [&str; 24] = [
    "sourceMaps",
    "resolveSourceMapLocations",
    "sourceMapPathOverrides",
    "sourceMapRenames",
    "smartStep",
    "outputCapture",
    "showAsyncStacks",
    "pauseForSourceMap",
    "trace",
    "restart",
    "runtimeVersion",
    "killBehavior",
    "customDescriptionGenerator",
    "customPropertiesGenerator",
    "experimentalNetworking",
    "nodeVersionHint",
    "continueOnAttach",
    "browserAttachLocation",
    "disableNetworkCache",
    "pathMapping",
    "perScriptSourcemaps",
    "targetSelection",
    "timeout",
    "vmTarget",
];

/// The names of Bun.
const BUN: [&str; 2] = ["bun", "bunx"];
/// Why it is not debugged.
pub const BUN_INSPECTOR: &str = "and Bun's inspector speaks the protocol of WebKit, which no adapter here speaks";

/// What both requests have.
#[derive(Clone, Debug)]
pub(crate) struct SourceSettings {
    pub maps: MapFolders,
    pub skip: SkipPatterns,
    /// A test runs, and stops where it fails: at exceptions of the user's own code, and of assertions in it.
    pub stops_at_failures: bool,
    /// Keys that are not known.
    pub unknown: Vec<String>,
}

/// The arguments of `launch`.
#[derive(Clone, Debug)]
pub(crate) struct NodeLaunch {
    /// `node`, `npm`, `tsx`, …
    pub runtime: PathBuf,
    pub runtime_args: Vec<String>,
    pub program: Option<PathBuf>,
    pub args: Vec<String>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, Option<String>>,
    pub stop_on_entry: bool,
    /// The file whose first line is the first that runs, where the configuration names it.
    pub entry: Option<PathBuf>,
    /// Child processes are debugged, too.
    pub debugs_children: bool,
    /// The port at which the program opens an inspector by itself, before anything of ours is loaded, and waits.
    pub own_port: Option<u16>,
    pub settings: SourceSettings,
}

/// What is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeAttachPlace {
    /// An inspector, with the path of its WebSocket, if that was named.
    Port { port: u16, path: Option<String> },
    /// A process.
    Process(u32),
}

/// The arguments of `attach`.
#[derive(Clone, Debug)]
pub(crate) struct NodeAttach {
    pub place: NodeAttachPlace,
    /// The caller has named the host: a local listener may then belong to another user.
    pub is_host_named: bool,
    /// The URL of a page of a browser, with `*` for any text; none: a Node program is meant.
    pub page: Option<String>,
    /// It is attached to again when it has ended.
    pub restart: Option<RestartPolicy>,
    pub settings: SourceSettings,
}

impl SourceSettings {
    fn read(reader: &mut FieldReader<'_>, cwd: PathBuf, more: Vec<PathBuf>) -> Result<SourceSettings, String> {
        let patterns = reader.value("skipFiles").is_some().then(|| reader.list("skipFiles")).transpose()?;
        // The editor's workspace, which only we know of.
        let workspace = reader.text("__workspaceFolder")?.map(PathBuf::from);
        let monorepo = monorepo_root(&cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
        let outputs = reader.value("outFiles").is_some().then(|| reader.list("outFiles")).transpose()?;
        let outputs = outputs.iter().flatten().filter_map(|pattern| pattern_folder(pattern, &cwd));
        let named = more.into_iter().chain(workspace).chain([cwd.clone()]).chain(monorepo).chain(outputs);
        let mut roots = Vec::new();
        for root in named {
            // Scripts are named without links.
            roots.extend(root.canonicalize().ok());
            roots.push(root);
        }
        roots.retain(|root| root.parent().is_some());
        let skip = SkipPatterns::parse(patterns.as_deref())?;
        let paths = read_path_maps(reader, &cwd)?;
        Ok(SourceSettings {
            maps: MapFolders { roots, cwd, web_root: None, keeps_links: false, paths },
            skip,
            stops_at_failures: reader.flag("__stopsAtTestFailures").unwrap_or(false),
            unknown: Vec::new(),
        })
    }
}

/// `localRoot` and `remoteRoot`, as VS Code has them; else our own list.
fn read_path_maps(reader: &mut FieldReader<'_>, cwd: &Path) -> Result<PathMaps, String> {
    let ours = reader.value("__paths").map(PathMaps::parse_pairs).transpose()?.unwrap_or_default();
    let (local, remote) = (reader.text("localRoot")?, reader.text("remoteRoot")?);
    let given = remote.map(|remote| (local.unwrap_or_default(), remote));
    PathMaps::new(given.map_or(ours, |pair| vec![pair]), cwd)
}

impl NodeLaunch {
    /// Errors: what is to be launched is missing, or cannot be debugged, or an argument is of another form.
    pub(crate) fn from_fields(fields: &Fields) -> Result<NodeLaunch, String> {
        let mut reader = FieldReader::new(fields, &IGNORED_KEYS);
        let cwd = reader.cwd()?;
        let (runtime, program) = (reader.text("runtimeExecutable")?, reader.text("program")?);
        let program = program.map(|program| cwd.join(program));
        // One that is not there is an error of its own.
        let program = program.map(|program| find_program(&program).unwrap_or(program));
        let (runtime_args, args, env) = (reader.list("runtimeArgs")?, reader.list("args")?, reader.env()?);
        if program.is_none() && runtime.is_none() && runtime_args.is_empty() && args.is_empty() {
            return Err("there is no `program` and no `runtimeExecutable`".to_owned());
        }
        let workspace = reader.text("__workspaceFolder")?.map_or_else(|| cwd.clone(), PathBuf::from);
        let runtime = find_runtime(runtime, &env, &cwd, &workspace);
        verify_debuggable(&runtime, program.as_deref(), &runtime_args, &env)?;
        let simple_port = reader.value("attachSimplePort").and_then(parse_port);
        let own_port = simple_port.or_else(|| script_port(&runtime, &[runtime_args.as_slice(), &args].concat(), &cwd));
        // At a port of its own the program is to wait for us.
        let (runtime_args, stops_first) =
            if simple_port.is_some() { (runtime_args, false) } else { without_inspect_options(runtime_args) };
        let is_file = |word: &&String| !word.starts_with('-') && cwd.join(word).is_file();
        let named = || runtime_args.iter().chain(&args).find(is_file).map(|word| cwd.join(word));
        let entry = program.as_deref().map(entry_file).or_else(named);
        let folder = entry.as_ref().and_then(|entry| entry.parent()).map(PathBuf::from);
        let mut settings = SourceSettings::read(&mut reader, cwd.clone(), folder.into_iter().collect())?;
        let mut options = runtime_args.iter().chain(env.get("NODE_OPTIONS").and_then(Option::as_ref));
        settings.maps.keeps_links = options.any(|words| words.contains("--preserve-symlinks"));
        let stop_on_entry = reader.flag("stopOnEntry").unwrap_or(false) || stops_first;
        let debugs_children = reader.flag("autoAttachChildProcesses").unwrap_or(true);
        settings.unknown = reader.unknown();
        Ok(NodeLaunch {
            runtime,
            runtime_args,
            program,
            args,
            cwd,
            env,
            stop_on_entry,
            entry,
            debugs_children,
            own_port,
            settings,
        })
    }
}

/// The folder below which all files of a pattern are. `None`: it takes files out.
fn pattern_folder(pattern: &str, cwd: &Path) -> Option<PathBuf> {
    if pattern.starts_with('!') {
        return None;
    }
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', '{']);
    let plain: Vec<&str> = pattern.split('/').take_while(is_plain).collect();
    let folder = normalize_path(&cwd.join(plain.join("/")));
    Some(if plain.len() < pattern.split('/').count() { folder } else { folder.parent()?.to_owned() })
}

/// What is started: a program of `PATH`, else of the project's own packages.
fn find_runtime(
    named: Option<String>,
    env: &BTreeMap<String, Option<String>>,
    cwd: &Path,
    workspace: &Path,
) -> PathBuf {
    match named {
        None => "node".into(),
        Some(path) if path.contains('/') => cwd.join(path),
        Some(name) => {
            let path = env.get("PATH").map_or_else(|| std::env::var_os("PATH"), |own| own.clone().map(OsString::from));
            let local = || find_local_program(&name, cwd, workspace);
            let found = if is_on_path(&name, path.as_deref()) { None } else { local() };
            found.unwrap_or_else(|| name.into())
        }
    }
}

/// Errors: the program will have no inspector that speaks CDP.
fn verify_debuggable(
    runtime: &Path,
    program: Option<&Path>,
    runtime_args: &[String],
    env: &BTreeMap<String, Option<String>>,
) -> Result<(), String> {
    let name = runtime.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if BUN.contains(&name) && program.is_some() {
        return Err(format!("`{name}` runs it, {BUN_INSPECTOR}"));
    }
    let options = env.get("NODE_OPTIONS").cloned().flatten().unwrap_or_default();
    match denied_inspector(runtime_args.iter().map(String::as_str), &options) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(()),
    }
}

/// A port that is a number, or a text; none that is 0.
fn parse_port(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

impl NodeAttach {
    /// Errors: there is no port and no process, or an argument is of another form.
    pub(crate) fn from_fields(fields: &Fields) -> Result<NodeAttach, String> {
        let mut reader = FieldReader::new(fields, &IGNORED_KEYS);
        let cwd = reader.cwd()?;
        let host = reader.text("address")?.or(reader.text("host")?);
        let is_host_named = host.is_some();
        if let Some(host) = host.filter(|host| !matches!(host.as_str(), "127.0.0.1" | "localhost" | "::1")) {
            return Err(format!(
                "`{host}` is another machine: only inspectors of this one are attached to; `--adapter js-debug` attaches to others"
            ));
        }
        let address = reader.text("websocketAddress")?.map(|url| websocket_address(&url)).transpose()?;
        let port = reader.value("port").and_then(parse_port);
        let process = reader.value("processId").map(parse_process).transpose()?;
        let place = match (address, port, process) {
            (Some((port, path)), ..) => NodeAttachPlace::Port { port, path: Some(path) },
            (None, Some(port), _) => NodeAttachPlace::Port { port, path: None },
            (None, None, Some(process)) => NodeAttachPlace::Process(process),
            (None, None, None) => return Err("there is no `port`, and no `processId`".to_owned()),
        };
        let restart = RestartPolicy::parse(reader.value("restart"))?;
        for ignored in ["attachExistingChildren", "autoAttachChildProcesses"] {
            reader.value(ignored);
        }
        let page = page_filter(&mut reader)?;
        let web_root = reader.text("webRoot")?.map_or_else(|| cwd.clone(), |root| cwd.join(root));
        let more = page.iter().map(|_| web_root.clone()).collect();
        let mut settings = SourceSettings::read(&mut reader, cwd, more)?;
        settings.maps.web_root = page.is_some().then(|| web_root.canonicalize().unwrap_or(web_root));
        settings.unknown = reader.unknown();
        Ok(NodeAttach { place, is_host_named, page, restart, settings })
    }
}

/// The page of a browser that is meant; `None`: none is.
fn page_filter(reader: &mut FieldReader<'_>) -> Result<Option<String>, String> {
    let is_browser = reader.text("type")?.is_some_and(|kind| kind.ends_with("chrome") || kind.ends_with("msedge"));
    let filter = reader.text("urlFilter")?.filter(|filter| !filter.is_empty());
    let url = reader.text("url")?.map(|url| format!("{}*", url.trim_end_matches('*')));
    Ok(filter.or(url).or(is_browser.then(|| "*".to_owned())))
}

/// The id of a process: a number, or the text of one.
fn parse_process(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let pid = number.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    pid.ok_or_else(|| format!("`processId` is {value}, and no process"))
}

/// The port and the path of `ws://127.0.0.1:9229/id`.
pub(crate) fn websocket_address(address: &str) -> Result<(u16, String), String> {
    let bad = || format!("`{address}` is not the address of an inspector on this machine");
    let parsed = url::Url::parse(address).map_err(|_| bad())?;
    // The last two: at all addresses of the machine.
    let is_local = matches!(parsed.host_str(), Some("127.0.0.1" | "localhost" | "[::1]" | "0.0.0.0" | "[::]"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    match parsed.port() {
        Some(port) if parsed.scheme() == "ws" && is_local && parsed.path().chars().all(plain) => {
            Ok((port, parsed.path().to_owned()))
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn launch(fields: Value) -> Result<NodeLaunch, String> {
        NodeLaunch::from_fields(fields.as_object().unwrap())
    }

    #[test]
    fn launch_arguments_are_those_of_launch_json() {
        let it = launch(json!({
            "type": "node", "request": "launch", "name": "n", "program": "src/app.js", "cwd": "/w", "args": ["a"],
            "runtimeArgs": "--enable-source-maps --no-warnings", "env": {"A": 1}, "stopOnEntry": true,
            "skipFiles": ["<node_internals>/**"], "outFiles": ["out/**"], "surprise": 1, "__workspaceFolder": "/w",
        }))
        .unwrap();
        assert_eq!(
            (it.program.as_deref(), it.runtime.as_path()),
            (Some(Path::new("/w/src/app.js")), Path::new("node"))
        );
        assert_eq!(it.runtime_args, ["--enable-source-maps", "--no-warnings"]);
        assert!(it.stop_on_entry && it.debugs_children && it.settings.skip.skips_internals());
        assert_eq!(it.settings.unknown, ["surprise"]);
        assert!(it.settings.maps.covers(Path::new("/w/out/a.js")) && !it.settings.maps.keeps_links);
        let outputs = json!(["${x}/*.js", "../dist/**/*.js", "!/other/**", "/built/app.js"]);
        let fields =
            json!({"program": "a.js", "cwd": "/w/src", "outFiles": outputs, "runtimeArgs": ["--preserve-symlinks"]});
        let maps = launch(fields).unwrap().settings.maps;
        let covers = |file: &str| maps.covers(Path::new(file));
        assert!(covers("/w/dist/deep/a.js") && covers("/built/b.js") && !covers("/other/a.js") && maps.keeps_links);
        let runtime = |fields: Value| launch(fields).unwrap().runtime;
        assert_eq!(runtime(json!({"cwd": "/w", "runtimeExecutable": "npm"})), Path::new("npm"));
        assert_eq!(runtime(json!({"cwd": "/w", "runtimeExecutable": "./bin/tsx"})), Path::new("/w/./bin/tsx"));
        for bad in [
            json!({}),
            json!({"program": 1}),
            json!({"program": "a", "skipFiles": ["["]}),
            json!({"program": "a.ts", "runtimeExecutable": "/opt/bun"}),
            json!({"program": "a.js", "runtimeArgs": ["--permission"]}),
            json!({"program": "a.js", "env": {"NODE_OPTIONS": "--permission"}}),
        ] {
            assert!(launch(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_launch_without_a_program_runs_what_its_words_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("jest.js"), "").unwrap();
        let cwd = folder.path();
        let it = launch(json!({"cwd": cwd, "runtimeArgs": ["--inspect-brk", "jest.js", "--runInBand"]})).unwrap();
        assert_eq!((it.runtime.as_path(), it.program), (Path::new("node"), None));
        assert_eq!((it.entry, it.stop_on_entry), (Some(cwd.join("jest.js")), true));
        assert_eq!(it.runtime_args, ["jest.js", "--runInBand"]);
        let words = json!(["run", "--inspect-wait"]);
        let deno = json!({"cwd": cwd, "runtimeExecutable": "deno", "runtimeArgs": words, "attachSimplePort": 9229});
        let it = launch(deno).unwrap();
        assert_eq!((it.own_port, it.runtime_args.len(), it.stop_on_entry), (Some(9229), 2, false));
        assert_eq!(launch(json!({"cwd": cwd, "program": "jest"})).unwrap().program, Some(cwd.join("jest.js")));
    }

    #[test]
    fn attach_arguments_name_a_port_a_websocket_or_a_process() {
        let attach = |fields: Value| NodeAttach::from_fields(fields.as_object().unwrap());
        let check = |fields: Value, expect: NodeAttachPlace| {
            let it = attach(fields.clone()).unwrap();
            assert_eq!((it.place, it.is_host_named, it.page), (expect, false, None), "{fields}");
        };
        let port = |port: u16, path: Option<&str>| NodeAttachPlace::Port { port, path: path.map(str::to_owned) };
        check(json!({"port": "9229"}), port(9229, None));
        check(json!({"websocketAddress": "ws://127.0.0.1:9230/a-b"}), port(9230, Some("/a-b")));
        check(json!({"processId": 7}), NodeAttachPlace::Process(7));
        check(json!({"processId": "7"}), NodeAttachPlace::Process(7));
        // The port of its inspector, which the editor has found.
        check(json!({"processId": 7, "port": 9229}), port(9229, None));
        let page = |fields: Value| attach(fields).unwrap().page.unwrap();
        assert_eq!(page(json!({"type": "pwa-chrome", "port": 1})), "*");
        assert_eq!(page(json!({"port": 1, "url": "http://localhost:1/"})), "http://localhost:1/*");
        assert_eq!(page(json!({"port": 1, "urlFilter": "*/app", "url": "x"})), "*/app");
        let root = attach(json!({"port": 1, "url": "x", "cwd": "/w", "webRoot": "site"})).unwrap().settings.maps;
        assert_eq!(root.web_root.as_deref(), Some(Path::new("/w/site")));
        assert!(root.covers(Path::new("/w/site/a.js")));
        for bad in [
            json!({}),
            json!({"port": 0}),
            json!({"port": 1, "address": "other.example"}),
            json!({"websocketAddress": "ws://other.example:1/a"}),
            json!({"processId": "app"}),
            json!({"processId": 0}),
            json!({"processId": 1_u64 << 32}),
            json!({"port": 1, "restart": "yes"}),
        ] {
            assert!(attach(bad.clone()).is_err(), "{bad}");
        }
    }
}
