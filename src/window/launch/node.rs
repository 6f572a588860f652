//! A Node service as the window: its inspector is the debugging port, learned from the line that Node prints.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::readiness::{parse_inspector_port, wait_for, wait_for_endpoint};
use super::{LaunchAttempt, ReadyProgram};
use crate::cdp::events::ScriptParsed;
use crate::cdp::types;
use crate::cdp::{self, CdpClient, CdpEvent, Endpoint, EventSubscription};
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process;

/// How long Node may take over the first turn of the script; after that the window counts as ready anyway.
const FIRST_TURN: Duration = Duration::from_secs(5);
/// What is called, and removed, when that turn is over.
const TURN_OVER: &str = "__tetherTurnOver";

pub async fn launch_node(launch: &LaunchAttempt<'_>) -> Result<ReadyProgram> {
    let node = find_node(launch)?;
    let program = find_script(launch)?;
    launch.progress("starting node");
    // Port 0: Node asks the OS and says what it got.
    let mut argv = vec![node.into_os_string(), "--inspect=127.0.0.1:0".into()];
    argv.extend(launch.settings().runtime_args.iter().map(OsString::from));
    argv.push(program.into_os_string());
    argv.extend(launch.settings().args.iter().map(OsString::from));
    let process = launch.spawn(argv)?;
    let ready = async {
        let found = process::wait_for_line(&launch.output, 0, parse_inspector_port).await;
        found.doing(|| format!("cannot read {}", launch.output.display()))
    };
    let port = wait_for(launch, &process, "node", "opened its inspector", ready).await?;
    let endpoint =
        wait_for(launch, &process, "node", "answered on its inspector", wait_for_endpoint(&process, port)).await?;
    wait_for(launch, &process, "node", "run its script", wait_for_first_turn(&endpoint)).await?;
    Ok(ReadyProgram { process, others: Vec::new(), endpoint, inspector_port: Some(port), user_data_dir: None })
}

/// Resolves when Node has run the script up to its first wait: then its globals are there, and its servers listen.
///
/// The inspector opens before that, while Node still sets itself up: who evaluates then may keep the script from ever
/// running, so the script has to be parsed first. Nor may a promise of an evaluation be pending: Node 20 and 24 crash
/// when they end meanwhile, and a script that is broken ends at once. (60 starts each: 3 and 1 crashes; none in 240
/// starts that only listened to the debugger.) A call of a binding is no promise.
async fn wait_for_first_turn(endpoint: &Endpoint) -> Result<()> {
    let doing = || "cannot see whether node runs its script".to_owned();
    let (client, connection) = cdp::open_connection(endpoint.port, &endpoint.path, FIRST_TURN).await.doing(doing)?;
    let turn = async {
        let mut events = client.subscribe();
        client.send(None, &types::EnableDebugger {}).await?;
        let parsed = |event: &CdpEvent| {
            let script = event.parse_as::<ScriptParsed>("Debugger.scriptParsed");
            script.is_some_and(|script| script.url.starts_with("file:"))
        };
        wait_for_event(&client, &mut events, parsed).await?;
        client.send(None, &types::AddBinding { name: TURN_OVER }).await?;
        client.send(None, &turn_over_script()).await?;
        wait_for_event(&client, &mut events, |event| event.method == "Runtime.bindingCalled").await
    };
    tokio::pin!(connection);
    let over = tokio::select! {
        over = timeout(FIRST_TURN, turn) => over.unwrap_or(Ok(())),
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
    wanted: impl Fn(&CdpEvent) -> bool,
) -> Result<(), cdp::CdpError> {
    while let Some(event) = events.next().await {
        if event.is_ok_and(|event| wanted(&event)) {
            return Ok(());
        }
    }
    Err(cdp::CdpError::Closed(client.wait_closed().await))
}

/// V8 runs this in the middle of the script; what it sets down is called when the script first waits.
fn turn_over_script() -> types::Evaluate {
    types::Evaluate {
        expression: format!(
            "{{ const over = globalThis.{TURN_OVER}; delete globalThis.{TURN_OVER}; setImmediate(over, ''); }}"
        ),
        object_group: "tether",
        await_promise: false,
        user_gesture: false,
        repl_mode: false,
        ..types::Evaluate::default()
    }
}

fn find_node(launch: &LaunchAttempt<'_>) -> Result<PathBuf> {
    let missing = |doing: String| Error::new(ErrorKind::MissingTool, doing);
    match &launch.settings().node {
        Some(setting) => launch.program(setting).ok_or_else(|| {
            missing(format!("cannot start {}", launch.path(setting).display()))
                .because("there is no such program")
                .hint("correct `node` in the [window] section of devtools.toml, or `runtimeExecutable` in launch.json")
        }),
        None => launch.on_path(&["node", "nodejs"]).ok_or_else(|| {
            missing("cannot find node on PATH".into()).hint(
                "`apt-get install nodejs`, or set `node = \"/path/to/node\"` in the [window] section of devtools.toml",
            )
        }),
    }
}

fn find_script(launch: &LaunchAttempt<'_>) -> Result<PathBuf> {
    let hint = "set `program = \"server.js\"` in the [window] section of devtools.toml";
    let setting = launch.settings().program.as_ref();
    let setting = setting.ok_or_else(|| Error::usage("cannot tell which script node shall run").hint(hint))?;
    let program = launch.path(setting);
    if program.exists() {
        return Ok(program);
    }
    Err(Error::usage(format!("cannot run {}", program.display())).because("there is no such file").hint(hint))
}
