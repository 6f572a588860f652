//! A real Extension Development Host without a desktop: VS Code's own server with the workbench in a browser.
//!
//! ```text
//! node server-main.js (port 0)    at the same time     Chromium on about:blank
//!   └──"listening on P"─────────────────────────────────►│ over CDP: the cookie with the server's connection token
//!                                                        │ over CDP: http://127.0.0.1:P/?folder=…&payload=…
//!                                                        │ title "[Extension Development Host] …"
//! node extension host ◄── started by the server ─────────┘
//!          "Debugger listening on …" ──► inspector port ──► ready
//! ```
//! Server and browser share the launch id. The window's main process is the browser, because users close the window by
//! closing it. The `code-server` wrapper rejects a flag without which the workbench ignores the extension under
//! development, so the VS Code server inside of it is started directly.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_cdp::Endpoint;
use tether_cdp::types::CookieParam;
use tether_process::Process;

use super::attempt::{
    LaunchAttempt, LaunchedWindow, WindowLaunchPlan, create_private_dir, flag_with_path, repeat_while_busy,
};
use super::browser::{EMPTY_PAGE, start_browser};
use super::compile_cache::prepare_compile_cache;
use super::connection_token::ConnectionToken;
use super::custom_command::find_free_port;
use super::development_folder::development_path;
use super::extension_host_args::ExtensionHostArgs;
use super::host_hold::HostHold;
use super::readiness::{discover_owned_endpoint, parse_inspector_port};
use super::window_bridge::install_window_bridge;
use super::workbench_cache::WorkbenchCache;
use crate::config::{RefreshSetting, WindowKind, prepare_user_settings};
use crate::window::page::{
    ExpressionResult, PageConnection, await_expression, install_workbench_script, navigate_page, set_cookie,
};

const TITLE: &str = "[Extension Development Host]";

/// Starts the VS Code server and a browser, and waits for the extension host.
pub async fn launch_web_extension_host(attempt: &LaunchAttempt<'_>) -> Result<LaunchedWindow> {
    let programs = find_server_programs(attempt.plan)?;
    let host_args = ExtensionHostArgs::read(attempt.plan)?;
    attempt.report_progress("starting the VS Code server");
    let token = ConnectionToken::create(&attempt.scratch)?;
    let cache = WorkbenchCache::prepare(&attempt.plan.state_dir)?;
    let server_command = server_command_line(attempt, programs, &token, &cache)?;
    let server = attempt.spawn("the VS Code server", server_command)?;
    // The arguments of a derived extension host are VS Code's, not the browser's.
    let derived = attempt.plan.settings.kind == Some(WindowKind::ExtensionHost);
    let args = if derived { &[][..] } else { &host_args.args };
    let opened = async {
        let port = server.wait_for("opened its port", attempt.wait_for_line(parse_server_port)).await?;
        cache.record_port(port);
        attempt.log_moment("the VS Code server listens");
        Ok(port)
    };
    let flags = cache.browser_flags(attempt.plan.settings.profile.is_some());
    let (port, (browser, launched)) = tokio::try_join!(opened, start_browser(attempt, EMPTY_PAGE, args, flags))?;
    let development = development_path(&host_args.extensions, &attempt.scratch)?;
    let url = workbench_url(port, &host_args, &development, find_free_port()?);
    attempt.report_progress("waiting for the extension host");
    let both = async {
        let loaded = load_workbench(attempt, &launched.endpoint, &url, token.cookie(&url));
        tokio::try_join!(loaded, wait_for_inspector(attempt, &server.process))
    };
    let while_served = server.wait_for("started the extension host", both);
    let (page, inspector_port) = browser.wait_for("shown the extension host's window", while_served).await?;
    let (others, (extensions, note)) = (vec![server.process], host_args.extensions_on_node());
    let (page, inspector_port, notes) = (Some(page), Some(inspector_port), note.into_iter().collect());
    Ok(LaunchedWindow { others, page, inspector_port, extensions, notes, ..launched })
}

/// Node, and the main script of the VS Code server.
pub(super) fn find_server_programs(plan: &WindowLaunchPlan) -> Result<[PathBuf; 2]> {
    let find = |setting: &Option<PathBuf>, tool: &str| match setting {
        Some(path) => Some(plan.resolve_path(path)),
        None => tether_tools::entry_path(tool).ok(),
    };
    let node = find(&plan.settings.node, "node24").filter(|node| tether_tools::is_program(node));
    let node = node.ok_or_else(|| missing_tool("Node 24", "node"))?;
    let code_server = find(&plan.settings.code_server, "code-server");
    let server_main = code_server.map(|folder| folder.join("lib/vscode/out/server-main.js"));
    let server_main = server_main.filter(|file| file.is_file());
    Ok([node, server_main.ok_or_else(|| missing_tool("code-server", "codeServer"))?])
}

fn missing_tool(tool: &str, setting: &str) -> Error {
    let place = tether_tools::tools_folder().unwrap_or_default();
    Error::new(ErrorKind::MissingTool, format!("cannot launch the Extension Development Host without {tool}"))
        .because(format!("it is not in {}", place.display()))
        .hint("`tether adapters install code-server` installs it there")
        .hint(format!("or set `{setting}` in the [window] section of devtools.toml"))
}

fn server_command_line(
    attempt: &LaunchAttempt<'_>,
    programs: [PathBuf; 2],
    token: &ConnectionToken,
    cache: &WorkbenchCache,
) -> Result<Vec<OsString>> {
    let data = attempt.profile_dir("").join("vscode-server");
    create_private_dir(&data)?;
    if attempt.plan.settings.profile.is_none() {
        cache.keep_extension_lists(&data.join("user"))?;
    }
    install_window_bridge(&attempt.plan.settings, &data.join("extensions"))?;
    let settings = data.join("user/User");
    create_private_dir(&settings)?;
    prepare_user_settings(&settings.join("settings.json"))?;
    let hold = HostHold::of_launch(&attempt.plan.state_dir, &attempt.plan.launch_id);
    let keeps_spare = attempt.plan.settings.refresh == RefreshSetting::Auto;
    let hook = hold.install(&prepare_compile_cache(&attempt.plan.state_dir)?, keeps_spare)?;
    hold.set_armed(attempt.plan.holds_hosts).doing(|| "cannot hold the extension host".to_owned())?;
    let [node, server_main] = programs.map(OsString::from);
    let mut argv = vec![node, flag_with_path("--require=", &hook), server_main];
    let flags = [
        "--host=127.0.0.1",
        &cache.port_flag(),
        "--accept-server-license-terms",
        "--telemetry-level=off",
        "--disable-workspace-trust",
        "--enable-smoke-test-driver",
        "--reconnection-grace-time=5",
        // It takes longer than the loopback interface: a restarted extension host waits for it with its first message.
        "--disable-websocket-compression",
    ];
    argv.extend(flags.map(OsString::from));
    // Names a VS Code agent host elsewhere, without its port: the server then starts none of its own, which would take half a
    // second of a core while the workbench loads.
    argv.push("--agent-host-bridge-host=127.0.0.1".into());
    argv.push(flag_with_path("--connection-token-file=", &token.file));
    for (flag, folder) in
        [("--server-data-dir", "data"), ("--user-data-dir", "user"), ("--extensions-dir", "extensions")]
    {
        argv.extend([OsString::from(flag), data.join(folder).into()]);
    }
    Ok(argv)
}

/// The port in "Extension host agent listening on 38753".
fn parse_server_port(line: &str) -> Option<u16> {
    line.strip_prefix("Extension host agent listening on ")?.trim().parse().ok()
}

/// The URL of the workbench with its folder, the path of what is under development, and an inspector on port `inspector`.
fn workbench_url(port: u16, args: &ExtensionHostArgs, development: &Path, inspector: u16) -> String {
    let remote =
        |path: &Path| format!("vscode-remote://127.0.0.1:{port}{}", percent_encode(&path.to_string_lossy(), true));
    let development = ("extensionDevelopmentPath", remote(development));
    let tests = args.tests.as_deref().map(|path| ("extensionTestsPath", remote(path)));
    let others = [("inspect-extensions", inspector.to_string()), ("debugId", "devtether".to_owned())];
    let kind = args.in_web_worker.then(|| ("extensionDevelopmentKind", "web".to_owned()));
    let payload =
        serde_json::json!([development].into_iter().chain(others).chain(kind).chain(tests).collect::<Vec<_>>());
    let folder = percent_encode(&args.folder.to_string_lossy(), true);
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

/// Gives the browser the connection token, and loads the workbench.
async fn load_workbench(
    attempt: &LaunchAttempt<'_>,
    endpoint: &Endpoint,
    url: &str,
    cookie: CookieParam,
) -> Result<PageConnection> {
    let page = attempt.connect_to_page(endpoint).await?;
    repeat_while_busy(|| set_cookie(&page, &cookie)).await?;
    repeat_while_busy(|| install_workbench_script(&page)).await?;
    repeat_while_busy(|| navigate_page(&page, url)).await?;
    attempt.log_moment("the workbench begins to load");
    wait_for_title(&page, attempt.deadline()).await?;
    attempt.log_moment("the workbench shows its title");
    // The server has replaced it by one that expires sooner.
    repeat_while_busy(|| set_cookie(&page, &cookie)).await?;
    Ok(page)
}

/// Resolves when the page has the title that only an Extension Development Host has. Browsers send no event for a new
/// title, so a script in the page observes it.
pub async fn wait_for_title(page: &PageConnection, deadline: Duration) -> Result<()> {
    let titled = format!(
        "new Promise(done => {{
            const check = () => document.title.startsWith({TITLE:?}) && (watch.disconnect(), done(true));
            const watch = new MutationObserver(check);
            watch.observe(document, {{ subtree: true, childList: true, characterData: true }});
            check();
        }})"
    );
    // A navigation destroys the script, which is then evaluated again in the new document.
    while await_expression(page, &titled, deadline).await? != ExpressionResult::Value(true.into()) {}
    Ok(())
}

/// The extension host's inspector port, once it responds and is verified to belong to the server's process tree.
async fn wait_for_inspector(attempt: &LaunchAttempt<'_>, server: &Process) -> Result<u16> {
    let port = attempt.wait_for_line(parse_inspector_port).await?;
    discover_owned_endpoint(server, port).await?;
    attempt.log_moment("the extension host's inspector answers");
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
        let (extensions, folder, args) = (Vec::new(), PathBuf::from("/a b/ü&c"), Vec::new());
        let args = ExtensionHostArgs { extensions, folder, args, in_web_worker: true, tests: None };
        let url = workbench_url(80, &args, Path::new("/x/é\"y"), 9871);
        assert!(url.starts_with("http://127.0.0.1:80/?folder=/a%20b/%C3%BC%26c&payload=%5B%5B%22"), "{url}");
        // Encoded twice: as a URI in JSON, and as a parameter.
        assert!(url.contains("vscode-remote%3A%2F%2F127.0.0.1%3A80%2Fx%2F%25C3%25A9%2522y"), "{url}");
        assert!(url.contains("2522y%22%5D%2C%5B%22inspect-extensions"), "{url}");
        assert!(url.ends_with("%5B%22extensionDevelopmentKind%22%2C%22web%22%5D%5D"), "{url}");
        assert!(!url.contains(['"', ' ', '<']), "{url}");
        let args = ExtensionHostArgs { tests: Some("/t/run.cjs".into()), ..args };
        let url = workbench_url(80, &args, Path::new("/x"), 9871);
        assert!(
            url.contains("%22extensionTestsPath%22%2C%22vscode-remote%3A%2F%2F127.0.0.1%3A80%2Ft%2Frun.cjs%22"),
            "{url}"
        );
    }
}
