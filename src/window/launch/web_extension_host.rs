//! A real Extension Development Host without a desktop: VS Code's own server with the workbench in a browser.
//!
//! ```text
//! node server-main.js (port 0) ──"listening on P"──► Chromium on http://127.0.0.1:P/?folder=…&payload=…
//!                                                        │ title "[Extension Development Host] …"
//! node extension host ◄── started by the server ─────────┘
//!          "Debugger listening on …" ──► inspector port ──► ready
//! ```
//! Server and browser share the launch id. The window's main process is the browser, because users close the window by
//! closing it. The `code-server` wrapper rejects a flag without which the workbench ignores the extension under
//! development, so the VS Code server inside of it is started directly.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{LaunchAttempt, ReadyProgram, create_private_dir};
use super::browser::{self, StartedBrowser};
use super::custom_command::find_free_port;
use super::extension_host_args::ExtensionHostArgs;
use super::readiness::{self, wait_for};
use crate::cdp::Endpoint;
use crate::config::WindowKind;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, Process};
use crate::tools;
use crate::window::page::{ExpressionResult, PageConnection, PageHistory, evaluate_expression};

/// No welcome page or chat beside the extension under development, and no unrequested network access.
const SETTINGS: &str = r#"{
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.enableExperiments": false,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": false,
    "extensions.autoUpdate": false
}
"#;
const TITLE: &str = "[Extension Development Host]";

/// Starts the VS Code server and a browser, and waits for the extension host.
pub async fn launch_web_extension_host(attempt: &LaunchAttempt<'_>) -> Result<ReadyProgram> {
    let tools = VsCodeServer::find(attempt)?;
    let host_args = ExtensionHostArgs::read(attempt)?;
    attempt.report_progress("starting the VS Code server");
    let server = attempt.spawn(server_command_line(attempt, &tools)?)?;
    let listening = follow_output(attempt, parse_server_port);
    let port = wait_for(attempt, &server, "the VS Code server", "opened its port", listening).await?;
    // The arguments of a derived extension host are VS Code's, not the browser's.
    let derived = attempt.settings().kind == Some(WindowKind::ExtensionHost);
    let args = if derived { &[][..] } else { &host_args.args };
    let url = workbench_url(port, &host_args.folder, &host_args.extensions, find_free_port()?);
    let StartedBrowser { process, endpoint, user_data_dir } = browser::start_browser(attempt, &url, args).await?;
    attempt.report_progress("waiting for the extension host");
    let both = async {
        tokio::try_join!(wait_for_workbench_title(&endpoint, attempt.deadline()), wait_for_inspector(attempt, &server))
    };
    let while_served = wait_for(attempt, &server, "the VS Code server", "started the extension host", both);
    let inspected = wait_for(attempt, &process, "the browser", "shown the extension host's window", while_served).await;
    let ((), inspector_port) = inspected?;
    let user_data_dir = Some(user_data_dir);
    Ok(ReadyProgram { process, others: vec![server], endpoint, inspector_port: Some(inspector_port), user_data_dir })
}

/// The programs of the VS Code server.
struct VsCodeServer {
    node: PathBuf,
    server_main: PathBuf,
}

impl VsCodeServer {
    fn find(attempt: &LaunchAttempt<'_>) -> Result<VsCodeServer> {
        let place = |setting: &Option<PathBuf>, tool: &str| match setting {
            Some(path) => Some(attempt.resolve_path(path)),
            None => tools::entry_path(tool).ok(),
        };
        let node = place(&attempt.settings().node, "node24");
        let code_server = place(&attempt.settings().code_server, "code-server");
        let server_main = code_server.map(|folder| folder.join("lib/vscode/out/server-main.js"));
        let node = node.filter(|node| tools::is_program(node)).ok_or_else(|| missing_tool("Node 24", "node"))?;
        let server_main =
            server_main.filter(|file| file.is_file()).ok_or_else(|| missing_tool("code-server", "codeServer"))?;
        Ok(VsCodeServer { node, server_main })
    }
}

fn missing_tool(tool: &str, setting: &str) -> Error {
    let place = tools::tools_folder().unwrap_or_default();
    Error::new(ErrorKind::MissingTool, format!("cannot launch the Extension Development Host without {tool}"))
        .because(format!("it is not in {}", place.display()))
        .hint("`tether adapters install code-server` installs it there")
        .hint(format!("or set `{setting}` in the [window] section of devtools.toml"))
}

fn server_command_line(attempt: &LaunchAttempt<'_>, tools: &VsCodeServer) -> Result<Vec<OsString>> {
    let data = match &attempt.settings().profile {
        Some(kept) => attempt.resolve_path(kept).join("vscode-server"),
        None => attempt.scratch.join("vscode-server"),
    };
    create_private_dir(&data)?;
    write_settings(&data.join("user/User"))?;
    let mut argv: Vec<OsString> = vec![tools.node.clone().into(), tools.server_main.clone().into()];
    let flags = [
        "--host=127.0.0.1",
        "--port=0",
        "--without-connection-token",
        "--accept-server-license-terms",
        "--telemetry-level=off",
        "--disable-workspace-trust",
        "--enable-smoke-test-driver",
        "--reconnection-grace-time=5",
    ];
    argv.extend(flags.map(OsString::from));
    for (flag, folder) in
        [("--server-data-dir", "data"), ("--user-data-dir", "user"), ("--extensions-dir", "extensions")]
    {
        argv.extend([OsString::from(flag), data.join(folder).into()]);
    }
    Ok(argv)
}

/// Writes default settings into a new profile, so that every launch shows the same window; existing ones are kept.
pub(super) fn write_settings(folder: &Path) -> Result<()> {
    let file = folder.join("settings.json");
    if file.exists() {
        return Ok(());
    }
    create_private_dir(folder)?;
    std::fs::write(&file, SETTINGS).doing(|| format!("cannot write {}", file.display()))
}

/// Waits for a line in the output, which all programs of this launch share.
async fn follow_output(attempt: &LaunchAttempt<'_>, parse: fn(&str) -> Option<u16>) -> Result<u16> {
    let found = process::wait_for_line(&attempt.output, 0, parse).await;
    found.doing(|| format!("cannot read {}", attempt.output.display()))
}

/// The port in "Extension host agent listening on 38753".
fn parse_server_port(line: &str) -> Option<u16> {
    line.strip_prefix("Extension host agent listening on ")?.trim().parse().ok()
}

/// The URL of the workbench with `folder`, the extensions under development, and an inspector on port `inspector`.
fn workbench_url(port: u16, folder: &Path, extensions: &[PathBuf], inspector: u16) -> String {
    let remote = |extension: &PathBuf| {
        let address = format!("vscode-remote://127.0.0.1:{port}{}", percent_encode(&extension.to_string_lossy(), true));
        ("extensionDevelopmentPath", address)
    };
    let others = [("inspect-extensions", inspector.to_string()), ("debugId", "devtether".to_owned())];
    let payload = serde_json::json!(extensions.iter().map(remote).chain(others).collect::<Vec<_>>());
    let folder = percent_encode(&folder.to_string_lossy(), true);
    format!("http://127.0.0.1:{port}/?folder={folder}&payload={}", percent_encode(&payload.to_string(), false))
}

/// Percent-encodes everything but RFC 3986's unreserved characters, and slashes where they separate folders.
fn percent_encode(text: &str, slashes: bool) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            b'/' if slashes => encoded.push('/'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Resolves when the page has the title that only an Extension Development Host has. Browsers send no event for a new
/// title, so a script in the page observes it.
pub(super) async fn wait_for_workbench_title(endpoint: &Endpoint, deadline: Duration) -> Result<()> {
    let page = loop {
        match PageConnection::open_endpoint(endpoint.clone(), Arc::new(PageHistory::new(None))).await {
            Err(error) if error.kind == ErrorKind::TimedOut => {} // still busy; bounded by the caller's deadline
            attached => break attached?,
        }
    };
    let titled = format!(
        "new Promise(done => {{
            const check = () => document.title.startsWith({TITLE:?}) && (watch.disconnect(), done(true));
            const watch = new MutationObserver(check);
            watch.observe(document, {{ subtree: true, childList: true, characterData: true }});
            check();
        }})"
    );
    // A navigation destroys the script, which is then evaluated again in the new document.
    while evaluate_expression(&page, &titled, deadline).await? != ExpressionResult::Value(true.into()) {}
    Ok(())
}

/// The extension host's inspector port, once it responds and is verified to belong to the server's process tree.
async fn wait_for_inspector(attempt: &LaunchAttempt<'_>, server: &Process) -> Result<u16> {
    let port = follow_output(attempt, readiness::parse_inspector_port).await?;
    readiness::wait_for_endpoint(server, port).await?;
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_port_is_parsed_from_the_line_that_the_server_prints() {
        let check = |line: &str, expect: Option<u16>| assert_eq!(parse_server_port(line), expect, "{line}");
        check("Extension host agent listening on 38753", Some(38753));
        check("Web UI available at http://localhost:38753", None);
        check("> Extension host agent listening on 38753", None);
        check("Extension host agent listening on /tmp/x.sock", None);
    }

    #[test]
    fn paths_with_spaces_and_non_ascii_letters_are_encoded_in_the_url() {
        let url = workbench_url(80, Path::new("/a b/ü&c"), &["/x/é\"y".into(), "/z".into()], 9871);
        assert!(url.starts_with("http://127.0.0.1:80/?folder=/a%20b/%C3%BC%26c&payload=%5B%5B%22"), "{url}");
        // Encoded twice: as a URI in JSON, and as a parameter.
        assert!(url.contains("vscode-remote%3A%2F%2F127.0.0.1%3A80%2Fx%2F%25C3%25A9%2522y"), "{url}");
        assert!(url.contains("%2Fz%22%5D%2C%5B%22inspect-extensions"), "{url}");
        assert!(!url.contains(['"', ' ', '<']), "{url}");
    }
}
