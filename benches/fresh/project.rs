//! The projects that are edited: each shows the version of its code, and is asked for it over MCP.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::client::Client;

/// `[window] refresh`.
#[derive(Clone, Copy)]
pub enum Refresh {
    Auto,
    Relaunch,
}

/// An answer of the new code.
pub struct Answer {
    pub value: Value,
    /// The rung.
    pub by: String,
    pub from_save: Duration,
    pub from_build: Duration,
}

/// Resolves to the version that the extension shows in the status bar.
pub const SHOWN_VERSION: &str = r#"new Promise(found => {
    const look = () => {
        const item = [...document.querySelectorAll(".statusbar-item")].find(it => it.textContent.includes("version:"));
        if (item) { watch.disconnect(); found(item.textContent.split("version:")[1].trim()); }
    };
    const watch = new MutationObserver(look);
    watch.observe(document, { childList: true, subtree: true, characterData: true });
    look();
})"#;

/// Serves each file for ever as it was first.
const WORKER: &str = "self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
self.addEventListener('fetch', (event) => event.respondWith((async () => {
    const cache = await caches.open('all');
    const kept = await cache.match(event.request);
    if (kept) return kept;
    const response = await fetch(event.request);
    await cache.put(event.request, response.clone());
    return response;
})()));";

/// A workspace with its started window; stopped at the end.
pub struct Project {
    home: tempfile::TempDir,
    workspace: PathBuf,
    /// What builds it.
    pub builder: &'static str,
    source: &'static str,
    text_of: fn(&str) -> String,
    question: &'static str,
    edits: u32,
    /// The rest of devtools.toml.
    settings: &'static str,
    client: Option<Client>,
}

impl Project {
    /// An Extension Development Host.
    pub fn extension(refresh: Refresh) -> Project {
        Project::host(refresh, "")
    }

    /// One that is refreshed on save; nobody asks it anything.
    pub fn extension_on_save() -> Project {
        let mut project = Project::host(Refresh::Auto, "[refresh]\non = 'save'\n");
        project.client.take();
        project
    }

    fn host(refresh: Refresh, settings: &'static str) -> Project {
        let manifest = json!({
            "name": "bench", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
            "main": "./dist/extension.js", "activationEvents": ["onStartupFinished"],
        });
        let (builder, command) = match find_esbuild() {
            Some(esbuild) => {
                let flags = "--bundle --platform=node --format=cjs --external:vscode --log-level=error";
                ("esbuild", format!("'{}' source.js {flags} --outfile=dist/extension.js", esbuild.display()))
            }
            None => ("cp", "cp source.js dist/extension.js".to_owned()),
        };
        let text_of = |version: &str| {
            format!(
                "const vscode = require('vscode');
exports.activate = (context) => {{
    const item = vscode.window.createStatusBarItem();
    item.text = 'version:{version}';
    item.show();
    context.subscriptions.push(item);
    require('node:fs').writeFileSync(__dirname + '/running', '{version}');
}};
"
            )
        };
        let mut project = Project::new("source.js", text_of, SHOWN_VERSION);
        project.write("package.json", &manifest.to_string());
        (project.builder, project.settings) = (builder, settings);
        let command = format!("{{ {command} || {{ echo >> dist/failed; exit 1; }}; }}");
        project.start("kind = 'web-extension-host'", refresh, &command)
    }

    /// A browser with a static page.
    pub fn page(refresh: Refresh) -> Project {
        let text_of = |version: &str| format!("<!doctype html><title>{version}</title>");
        let project = Project::new("page.html", text_of, "document.title");
        let url = format!("kind = 'browser'\nurl = 'file://{}/page.html'", project.workspace.display());
        project.start(&url, refresh, "true")
    }

    /// A browser with a page whose service worker serves old scripts.
    pub fn page_with_worker() -> Project {
        let text_of = |version: &str| format!("globalThis.version = '{version}';");
        let project = Project::new("app.js", text_of, "version");
        project.write("worker.js", WORKER);
        let register = "navigator.serviceWorker.register('/worker.js')";
        project.write("page.html", &format!("<script src=app.js></script><script>{register}</script>"));
        let port = serve_files(project.workspace.clone());
        let url = format!("kind = 'browser'\nurl = 'http://127.0.0.1:{port}/page.html'");
        project.start(&url, Refresh::Auto, "true")
    }

    /// A Node service.
    pub fn node() -> Project {
        let text_of = |version: &str| format!("globalThis.version = '{version}';\nsetInterval(() => {{}}, 1000);\n");
        let project = Project::new("service.js", text_of, "globalThis.version");
        project.start("kind = 'node'\nprogram = 'service.js'", Refresh::Auto, "true")
    }

    fn new(source: &'static str, text_of: fn(&str) -> String, question: &'static str) -> Project {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().canonicalize().unwrap().join("workspace");
        std::fs::create_dir_all(workspace.join("dist")).unwrap();
        Project { home, workspace, builder: "nothing", source, text_of, question, edits: 0, settings: "", client: None }
    }

    fn start(mut self, window: &str, refresh: Refresh, command: &str) -> Project {
        let refresh = match refresh {
            Refresh::Auto => "auto",
            Refresh::Relaunch => "relaunch",
        };
        // The time is that of the build's end.
        let build = json!(["sh", "-c", format!("{command} && date +%s%N > dist/built")]);
        self.write(
            "devtools.toml",
            &format!("[window]\n{window}\nrefresh = '{refresh}'\n[build]\ncommand = {build}\n{}", self.settings),
        );
        self.write(self.source, &(self.text_of)("0"));
        self.tether(&["trust", "--yes"]);
        self.tether(&["start", "--json"]);
        self.client = Some(Client::start(&mut self.command(&["mcp"])));
        self
    }

    /// Saves the next version, and asks for it at once.
    pub fn edit_and_ask(&mut self) -> Answer {
        self.edits += 1;
        let text = (self.text_of)(&self.version());
        let saved = Instant::now();
        self.write(self.source, &text);
        let arguments = json!({"expression": self.question, "timeoutMs": 60_000});
        let (_, result) = self.client.as_mut().unwrap().call("window_evaluate", arguments);
        let (from_save, now) = (saved.elapsed(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
        let built = std::fs::read_to_string(self.workspace.join("dist/built")).unwrap();
        let report = &result["structuredContent"];
        Answer {
            value: report["value"].clone(),
            by: report["refreshed"]["by"].as_str().unwrap_or("nothing").to_owned(),
            from_save,
            from_build: now.saturating_sub(Duration::from_nanos(built.trim().parse().unwrap())),
        }
    }

    /// Saves the next version.
    pub fn save(&mut self) {
        self.edits += 1;
        self.write(self.source, &(self.text_of)(&self.version()));
    }

    /// Saves what no builder takes.
    pub fn save_broken(&self) {
        self.write(self.source, "exports.activate = (");
    }

    /// How many builds of an extension have failed.
    pub fn failed_builds(&self) -> usize {
        std::fs::read_to_string(self.workspace.join("dist/failed")).unwrap_or_default().lines().count()
    }

    /// Which version of an extension was activated last.
    pub fn running_version(&self) -> Option<String> {
        std::fs::read_to_string(self.workspace.join("dist/running")).ok()
    }

    /// What only the newest code answers.
    pub fn version(&self) -> String {
        format!("v{}", self.edits)
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub fn cdp_port(&self) -> u16 {
        self.tether(&["status", "--json"])["cdpPort"].as_u64().unwrap() as u16
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.workspace.join(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        command.args(arguments).current_dir(&self.workspace);
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "")] {
            command.env(name, self.home.path().join(folder));
        }
        command
    }

    fn tether(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.client.take();
        self.tether(&["stop"]);
        self.tether(&["shutdown"]);
    }
}

fn find_esbuild() -> Option<PathBuf> {
    let tools = tether_base::xdg::data_dir().ok()?.join("tools");
    let esbuild = tools.join("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild");
    esbuild.is_file().then_some(esbuild)
}

/// Serves the files of a folder over HTTP until the program ends; returns the port.
fn serve_files(folder: PathBuf) -> u16 {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(request) = lines.next() else { return };
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let name = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                let kind = if name.ends_with(".js") { "text/javascript" } else { "text/html" };
                let body = std::fs::read(folder.join(name)).unwrap_or_default();
                let head = format!("Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close", body.len());
                let _ = (&stream).write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
                let _ = (&stream).write_all(&body);
            });
        }
    });
    port
}
