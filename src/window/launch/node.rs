//! A Node program as the window: its inspector is the debugging port, read from the line that Node prints.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::attempt::{LaunchAttempt, LaunchedWindow};
use super::readiness::parse_inspector_port;
use crate::cdp::events::ScriptParsed;
use crate::cdp::types;
use crate::cdp::{self, CdpClient, CdpEvent, Endpoint, EventSubscription};
use crate::error::{Error, ErrorContext, ErrorKind, Result};

/// How long the first turn of the script is waited for; the window counts as ready after this time.
const FIRST_TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// The binding that the script calls, and removes, at the end of that turn.
const TURN_OVER: &str = "__tetherTurnOver";

/// Starts Node with an inspector, and waits until its script has run up to its first wait.
pub async fn launch_node(attempt: &LaunchAttempt<'_>) -> Result<LaunchedWindow> {
    let node = find_node(attempt)?;
    let program = find_script(attempt)?;
    attempt.report_progress("starting node");
    // Port 0: the OS chooses, and Node prints the port.
    let mut argv = vec![node.into_os_string(), "--inspect=127.0.0.1:0".into()];
    argv.extend(attempt.plan.settings.runtime_args.iter().map(OsString::from));
    argv.push(program.into_os_string());
    argv.extend(attempt.plan.settings.args.iter().map(OsString::from));
    let node = attempt.spawn("node", argv)?;
    let port = node.wait_for("opened its inspector", attempt.wait_for_line(parse_inspector_port)).await?;
    attempt.log_moment("the inspector listens");
    let endpoint = node.wait_for_endpoint("answered on its inspector", port).await?;
    attempt.log_moment("the inspector answers");
    node.wait_for("run its script", wait_for_first_turn(&endpoint)).await?;
    attempt.log_moment("the script's first turn has ended");
    Ok(LaunchedWindow { inspector_port: Some(port), ..attempt.launched_window(node.process, endpoint) })
}

/// Resolves when Node has run the script up to its first wait: its globals are set, and its servers listen.
///
/// The inspector opens earlier, while Node initializes. An evaluation at that time may prevent the script from ever
/// running, so this waits until the script is parsed. No promise of an evaluation may be pending: Node 20 and 24 crash
/// if they exit meanwhile, and a broken script exits at once (60 starts each: 3 and 1 crashes; none in 240 starts that
/// only listened to debugger events). A binding call needs no promise.
async fn wait_for_first_turn(endpoint: &Endpoint) -> Result<()> {
    let doing = || "cannot observe whether node runs its script".to_owned();
    let (client, connection) =
        cdp::open_connection(endpoint.port, &endpoint.path, FIRST_TURN_TIMEOUT).await.doing(doing)?;
    let turn = async {
        let mut events = client.subscribe();
        client.send(None, &types::EnableDebugger {}).await?;
        let parsed = |event: &CdpEvent| {
            let script = event.parse_as::<ScriptParsed>("Debugger.scriptParsed");
            script.is_some_and(|script| script.url.starts_with("file:"))
        };
        wait_for_event(&client, &mut events, parsed).await?;
        client.send(None, &types::AddBinding { name: TURN_OVER.into() }).await?;
        client.send(None, &turn_over_script()).await?;
        wait_for_event(&client, &mut events, |event| event.method == "Runtime.bindingCalled").await
    };
    tokio::pin!(connection);
    let over = tokio::select! {
        over = timeout(FIRST_TURN_TIMEOUT, turn) => over.unwrap_or(Ok(())),
        reason = &mut connection => Err(cdp::CdpError::Closed(reason)),
    };
    if !client.is_closed() {
        client.close();
        connection.await;
    }
    over.doing(doing)
}

async fn wait_for_event(
    client: &CdpClient,
    events: &mut EventSubscription,
    matches: impl Fn(&CdpEvent) -> bool,
) -> Result<(), cdp::CdpError> {
    while let Some(event) = events.next().await {
        if event.is_ok_and(|event| matches(&event)) {
            return Ok(());
        }
    }
    Err(cdp::CdpError::Closed(client.wait_closed().await))
}

/// V8 runs this in the middle of the script; its immediate runs at the script's first wait.
fn turn_over_script() -> types::Evaluate {
    types::Evaluate {
        expression: format!(
            "{{ const over = globalThis.{TURN_OVER}; delete globalThis.{TURN_OVER}; setImmediate(over, ''); }}"
        ),
        object_group: "tether".into(),
        await_promise: false,
        user_gesture: false,
        repl_mode: false,
        ..types::Evaluate::default()
    }
}

fn find_node(attempt: &LaunchAttempt<'_>) -> Result<PathBuf> {
    match &attempt.plan.settings.node {
        Some(setting) => attempt.find_program("node", setting, "cannot start"),
        None => attempt.find_on_path(&["node", "nodejs"]).ok_or_else(|| {
            Error::new(ErrorKind::MissingTool, "cannot find node on PATH").hint(
                "`apt-get install nodejs`, or set `node = \"/path/to/node\"` in the [window] section of devtools.toml",
            )
        }),
    }
}

fn find_script(attempt: &LaunchAttempt<'_>) -> Result<PathBuf> {
    let hint = "set `program = \"server.js\"` in the [window] section of devtools.toml";
    let setting = attempt.plan.settings.program.as_ref();
    let setting = setting.ok_or_else(|| Error::usage("no script for node is configured").hint(hint))?;
    let program = attempt.resolve_path(setting);
    if program.exists() {
        return Ok(program);
    }
    Err(Error::usage(format!("cannot run {}", program.display())).because("there is no such file").hint(hint))
}
