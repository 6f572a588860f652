//! The arguments of `launch` and `attach`, as users of launch.json know them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tether_backend::launch_fields::FieldReader;
use tether_dap::types::Fields;

use super::monorepo::monorepo_root;
use super::restart_policy::RestartPolicy;
use super::scripts::SkipPatterns;
use super::source_maps::MapFolders;

/// Arguments of VS Code's debugger that change nothing here.
const IGNORED_KEYS: [&str; 25] = [
    "outFiles",
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

/// What both requests have.
#[derive(Clone, Debug)]
pub(crate) struct SourceSettings {
    pub maps: MapFolders,
    pub skip: SkipPatterns,
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
    /// Child processes are debugged, too.
    pub debugs_children: bool,
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
        let named = more.into_iter().chain(workspace).chain([cwd.clone()]).chain(monorepo);
        let mut roots = Vec::new();
        for root in named {
            // Scripts are named without links.
            roots.extend(root.canonicalize().ok());
            roots.push(root);
        }
        roots.retain(|root| root.parent().is_some());
        let skip = SkipPatterns::parse(patterns.as_deref())?;
        Ok(SourceSettings { maps: MapFolders { roots, cwd, web_root: None }, skip, unknown: Vec::new() })
    }
}

impl NodeLaunch {
    /// Errors: what is to be launched is missing, or an argument is of another form.
    pub(crate) fn from_fields(fields: &Fields) -> Result<NodeLaunch, String> {
        let mut reader = FieldReader::new(fields, &IGNORED_KEYS);
        let cwd = reader.cwd()?;
        let runtime = reader.text("runtimeExecutable")?;
        let program = reader.text("program")?.map(|program| cwd.join(program));
        if program.is_none() && runtime.is_none() {
            return Err("there is no `program` and no `runtimeExecutable`".to_owned());
        }
        let runtime = match runtime {
            Some(runtime) if runtime.contains('/') => cwd.join(runtime),
            other => other.unwrap_or_else(|| "node".to_owned()).into(),
        };
        let folder = program.as_ref().and_then(|program| program.parent()).map(PathBuf::from);
        let mut settings = SourceSettings::read(&mut reader, cwd.clone(), folder.into_iter().collect())?;
        let mut launch = NodeLaunch {
            runtime,
            program,
            runtime_args: reader.list("runtimeArgs")?,
            args: reader.list("args")?,
            env: reader.env()?,
            stop_on_entry: reader.flag("stopOnEntry").unwrap_or(false),
            debugs_children: reader.flag("autoAttachChildProcesses").unwrap_or(true),
            cwd,
            settings: settings.clone(),
        };
        settings.unknown = reader.unknown();
        launch.settings = settings;
        Ok(launch)
    }
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
        let port = match reader.value("port") {
            Some(serde_json::Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64().and_then(|port| u16::try_from(port).ok()),
            None => None,
        };
        let process = reader.value("processId").map(parse_process).transpose()?;
        let port = port.filter(|port| *port > 0);
        let place = match (address, port, process) {
            (Some((port, path)), ..) => NodeAttachPlace::Port { port, path: Some(path) },
            (None, Some(port), _) => NodeAttachPlace::Port { port, path: None },
            (None, None, Some(process)) => NodeAttachPlace::Process(process),
            (None, None, None) => return Err("there is no `port`, and no `processId`".to_owned()),
        };
        let restart = RestartPolicy::parse(reader.value("restart"))?;
        for ignored in ["localRoot", "remoteRoot", "attachExistingChildren", "autoAttachChildProcesses"] {
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
fn parse_process(value: &serde_json::Value) -> Result<u32, String> {
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let pid = number.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    pid.ok_or_else(|| format!("`processId` is {value}, and no process"))
}

/// The port and the path of `ws://127.0.0.1:9229/id`.
pub(crate) fn websocket_address(address: &str) -> Result<(u16, String), String> {
    let bad = || format!("`{address}` is not the address of an inspector on this machine");
    let parsed = url::Url::parse(address).map_err(|_| bad())?;
    let is_local = matches!(parsed.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
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
    use std::path::Path;

    use serde_json::{Value, json};

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
        assert!(it.settings.maps.covers(Path::new("/w/out/a.js")));
        let runtime = |fields: Value| launch(fields).unwrap().runtime;
        assert_eq!(runtime(json!({"cwd": "/w", "runtimeExecutable": "npm"})), Path::new("npm"));
        assert_eq!(runtime(json!({"cwd": "/w", "runtimeExecutable": "./bin/tsx"})), Path::new("/w/./bin/tsx"));
        for bad in [json!({}), json!({"program": 1}), json!({"program": "a", "skipFiles": ["["]})] {
            assert!(launch(bad.clone()).is_err(), "{bad}");
        }
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
