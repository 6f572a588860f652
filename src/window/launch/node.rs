//! A Node program as the window: its inspector is the debugging port, read from the line that Node prints.
//!
//! Node is started while the window before closes, where it can be kept from the program's first line until that is closed:
//! both may want the same ports and files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_cdp::events::ScriptParsed;
use tether_cdp::{CdpClient, CdpEvent, Endpoint, EventSubscription, types};
use tokio::time::timeout;

use super::attempt::{LaunchAttempt, LaunchedWindow, OldWindowClosed, WindowLaunchPlan, flag_with_path};
use super::readiness::parse_inspector_port;

/// How long the first turn of the script is waited for; the window counts as ready after this time.
const FIRST_TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// The binding that the script calls, and removes, at the end of that turn.
const TURN_OVER: &str = "__tetherTurnOver";
const TURN_SCRIPT: &str = include_str!("node_turn.cjs");

/// Starts Node with an inspector, and waits until its script has run up to its first wait.
pub async fn launch_node(attempt: &LaunchAttempt<'_>, mut closed: OldWindowClosed<'_>) -> Result<LaunchedWindow> {
    let node = find_node(attempt.plan)?;
    let program = find_script(attempt.plan)?;
    let turn = FirstTurn::of(attempt, &node)?;
    match turn.as_ref().filter(|turn| turn.may_be_held) {
        Some(turn) => turn.hold()?,
        None => {
            closed.await?;
            closed = Box::pin(async { Ok(()) });
        }
    }
    attempt.report_progress("starting node");
    // Port 0: the OS chooses, and Node prints the port.
    let mut argv = vec![node.into_os_string(), "--inspect=127.0.0.1:0".into()];
    argv.extend(turn.as_ref().map(FirstTurn::flag));
    argv.extend(attempt.plan.settings.runtime_args.iter().map(OsString::from));
    argv.push(program.into_os_string());
    argv.extend(attempt.plan.settings.args.iter().map(OsString::from));
    let node = attempt.spawn("node", argv)?;
    let released = async {
        closed.await?;
        turn.as_ref().map_or(Ok(()), FirstTurn::release)
    };
    let listens = node.wait_for("opened its inspector", attempt.wait_for_line(parse_inspector_port));
    let ((), port) = tokio::try_join!(released, listens)?;
    attempt.log_moment("the inspector listens");
    let endpoint = node.wait_for_endpoint("answered on its inspector", port).await?;
    attempt.log_moment("the inspector answers");
    let over = async {
        match &turn {
            Some(turn) => turn.wait().await,
            None => wait_for_first_turn(&endpoint).await,
        }
    };
    node.wait_for("run its script", over).await?;
    attempt.log_moment("the script's first turn has ended");
    Ok(LaunchedWindow { inspector_port: Some(port), ..attempt.launched_window(node.process, endpoint) })
}

/// The script that Node loads before the program, that may keep it from its first line, and that says when the program's
/// first turn has ended. A debugger that listens for that would make Node's start longer: 30 instead of 10 ms pass from the
/// inspector's answer (development build).
struct FirstTurn {
    folder: PathBuf,
    /// Whether nothing of the workspace is loaded before the script, and Node chooses the inspector's port.
    may_be_held: bool,
}

impl FirstTurn {
    /// Written to the scratch folder; `None` where another program than Node is started, which may not know the flag, or
    /// where Node's permissions may keep it from being read.
    fn of(attempt: &LaunchAttempt<'_>, node: &Path) -> Result<Option<FirstTurn>> {
        let environment = attempt.plan.environment();
        let options = environment.get(OsStr::new("NODE_OPTIONS")).map(|options| options.to_string_lossy().into_owned());
        let flags = &attempt.plan.settings.runtime_args;
        let is_restricted = flags.iter().chain(&options).any(|flag| flag.contains("permission"));
        if !tether_process::is_node_program(node) || is_restricted {
            return Ok(None);
        }
        let has_other_port = flags.iter().any(|flag| flag.starts_with("--inspect"));
        let turn = FirstTurn { folder: attempt.scratch.clone(), may_be_held: options.is_none() && !has_other_port };
        std::fs::write(turn.script(), TURN_SCRIPT).doing(|| format!("cannot write {}", turn.script().display()))?;
        Ok(Some(turn))
    }

    /// Makes the script wait for [`FirstTurn::release`], as long as this process runs.
    fn hold(&self) -> Result<()> {
        let file = self.held_file();
        std::fs::write(&file, std::process::id().to_string()).doing(|| format!("cannot write {}", file.display()))
    }

    /// Lets the program run, if it is held.
    fn release(&self) -> Result<()> {
        let file = self.held_file();
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
        .doing(|| format!("cannot remove {}", file.display()))
    }

    fn held_file(&self) -> PathBuf {
        self.folder.join("held")
    }

    fn script(&self) -> PathBuf {
        self.folder.join("node-turn.cjs")
    }

    fn flag(&self) -> OsString {
        flag_with_path("--require=", &self.script())
    }

    /// Resolves when the first turn has ended, or the time limit has.
    async fn wait(&self) -> Result<()> {
        let file = self.folder.join("turn-over");
        let exists = || match std::fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            metadata => metadata.map(|_| Some(())),
        };
        let over = timeout(FIRST_TURN_TIMEOUT, tether_process::watch_until(&self.folder, exists)).await;
        over.unwrap_or(Ok(())).doing(|| format!("cannot observe {}", file.display()))
    }
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
        tether_cdp::open_connection(endpoint.port, &endpoint.path, FIRST_TURN_TIMEOUT).await.doing(doing)?;
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
        reason = &mut connection => Err(tether_cdp::CdpError::Closed(reason)),
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
) -> Result<(), tether_cdp::CdpError> {
    while let Some(event) = events.next().await {
        if event.is_ok_and(|event| matches(&event)) {
            return Ok(());
        }
    }
    Err(tether_cdp::CdpError::Closed(client.wait_closed().await))
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

/// Node, by the settings.
pub(super) fn find_node(plan: &WindowLaunchPlan) -> Result<PathBuf> {
    match &plan.settings.node {
        Some(setting) => plan.find_program("node", setting, "cannot start"),
        None => plan.find_on_path(&["node", "nodejs"]).ok_or_else(|| {
            Error::new(ErrorKind::MissingTool, "cannot find node on PATH").hint(
                "`apt-get install nodejs`, or set `node = \"/path/to/node\"` in the [window] section of devtools.toml",
            )
        }),
    }
}

/// The script that Node runs, by the settings.
pub(super) fn find_script(plan: &WindowLaunchPlan) -> Result<PathBuf> {
    let hint = "set `program = \"server.js\"` in the [window] section of devtools.toml";
    let setting = plan.settings.program.as_ref();
    let setting = setting.ok_or_else(|| Error::usage("no script for node is configured").hint(hint))?;
    let program = plan.resolve_path(setting);
    if program.exists() {
        return Ok(program);
    }
    Err(Error::usage(format!("cannot run {}", program.display())).because("there is no such file").hint(hint))
}

/// The port of the inspector that the settings of Node demand; `None`: Node chooses it.
pub(super) fn fixed_inspector_port(runtime_args: &[String]) -> Option<u16> {
    // Of several, Node takes the last.
    let flag = runtime_args.iter().rev().find_map(|word| word.strip_prefix("--inspect"))?;
    let value = ["-port=", "-brk=", "-wait=", "="].iter().find_map(|name| flag.strip_prefix(name));
    let Some(value) = value else { return Some(9229).filter(|_| ["", "-brk", "-wait"].contains(&flag)) };
    let port = value.rsplit_once(':').map_or(value, |(_, port)| port);
    port.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inspector_port_of_the_arguments_is_that_of_the_last_flag() {
        let check = |args: &[&str], expect| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(fixed_inspector_port(&args), expect, "{args:?}");
        };
        check(&["--inspect=9300"], Some(9300));
        check(&["--inspect=127.0.0.1:9300", "--inspect-brk=[::1]:9301", "--trace-warnings"], Some(9301));
        check(&["--inspect-port=9302"], Some(9302));
        check(&["--inspect-brk"], Some(9229));
        check(&["--inspect=0"], None);
        check(&["--inspect=127.0.0.1:0"], None);
        check(&["--inspect-publish-uid=http"], None);
        check(&[], None);
    }
}
