//! A connection that is cut is no end of the program: the session is attached to it again, with its breakpoints.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::requirements::installed_nodes;
use crate::support::scenario_sandbox::{Running, found};
use crate::support::tunnel::Tunnel;
use crate::support::{JDWP_PORT, Sandbox, compile_java, eventually, is_alive, kill, listening_with_debugpy};

const PYTHON: &str = "\
import time
turns = 0
while True:
    turns += 1  # BREAK
    time.sleep(0.01)
";

const NODE: &str = "\
let turns = 0;
setInterval(() => {
  turns += 1; // BREAK
}, 10);
";

const JAVA: &str = "\
public class Turns {
  public static void main(String[] words) throws Exception {
    int turns = 0;
    while (true) {
      turns++; // BREAK
      Thread.sleep(10);
    }
  }
}
";

/// A program that listens for its debugger.
struct Program {
    running: Running,
    port: u16,
    language: &'static str,
    file: &'static str,
    /// Keeps its output open.
    _output: BufReader<Box<dyn Read + Send>>,
}

impl Program {
    fn start(mut command: Command, sandbox: &Sandbox, (language, file): (&'static str, &'static str)) -> Program {
        command.current_dir(&sandbox.workspace).envs(sandbox.variables()).stdin(Stdio::null());
        let is_node = language == "node";
        let mut running = if is_node {
            Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
        } else {
            Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
        };
        let output: Box<dyn Read + Send> = match is_node {
            true => Box::new(running.0.stderr.take().unwrap()),
            false => Box::new(running.0.stdout.take().unwrap()),
        };
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line).unwrap();
        let port = match language {
            "java" => line.trim().strip_prefix(JDWP_PORT).unwrap().to_owned(),
            "node" => {
                let address = line.trim().split("ws://").nth(1).unwrap().split('/').next().unwrap();
                address.parse::<SocketAddr>().unwrap().port().to_string()
            }
            _ => line.trim().strip_prefix("port ").unwrap().to_owned(),
        };
        Program { running, port: port.parse().unwrap(), language, file, _output: output }
    }

    fn pid(&self) -> u32 {
        self.running.0.id()
    }
}

fn python() -> Option<(Sandbox, Program)> {
    let debugpy = found("debugpy")?;
    let sandbox = Sandbox::with(&[("turns.py", PYTHON)]);
    let command = listening_with_debugpy(&debugpy, &sandbox.path("turns.py"), false);
    let program = Program::start(command, &sandbox, ("python", "turns.py"));
    Some((sandbox, program))
}

fn node() -> Option<(Sandbox, Program)> {
    let node = installed_nodes().into_iter().next()?;
    let sandbox = Sandbox::with(&[("turns.js", NODE)]);
    let mut command = Command::new(node);
    command.args(["--inspect=127.0.0.1:0", "turns.js"]);
    let program = Program::start(command, &sandbox, ("node", "turns.js"));
    Some((sandbox, program))
}

fn java() -> Option<(Sandbox, Program)> {
    found("java")?;
    let sandbox = Sandbox::with(&[("Turns.java", JAVA)]);
    compile_java(&sandbox.path("Turns.java"));
    // Free a moment ago: with port 0, a virtual machine listens on another port once its debugger has gone.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new("java");
    command.arg(format!("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:{port}"));
    command.args(["-cp", ".", "Turns"]).env("LC_ALL", "C.UTF-8");
    let program = Program::start(command, &sandbox, ("java", "Turns.java"));
    Some((sandbox, program))
}

fn break_line(sandbox: &Sandbox, file: &str) -> u64 {
    let text = std::fs::read_to_string(sandbox.path(file)).unwrap();
    text.lines().position(|line| line.contains("BREAK")).unwrap() as u64 + 1
}

/// A session that has stopped at the breakpoint, attached to at that port.
fn stopped(sandbox: &Sandbox, program: &Program, port: u16) -> u64 {
    let line = break_line(sandbox, program.file);
    sandbox.json(&["break", &format!("{}:{line}", program.file)]);
    let attach = ["debug", "attach", &port.to_string(), "--language", program.language, "--wait", "60"];
    let attached = sandbox.json(&attach);
    assert_eq!(attached["stopReason"]["type"], "BREAKPOINT_HIT", "{attached:#}");
    line
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.json(&["debug", "status", "d1"])
}

/// Cut for a time: a wait that is outstanding is answered with the next stop.
fn is_attached_to_again(start: fn() -> Option<(Sandbox, Program)>, cut_for: Duration) {
    let Some((sandbox, program)) = start() else { return };
    let mut tunnel = Tunnel::open(program.port);
    let line = stopped(&sandbox, &program, tunnel.port);
    tunnel.cut();
    // Nothing sends: the tunnel stays cut for that long.
    let (_sender, never): (Sender<()>, Receiver<()>) = channel();
    eventually("the loss is noticed", || (status(&sandbox)["state"] == "DISCONNECTED").then_some(()));
    let wait = ["debug", "wait", "100", "--session", "d1"];
    let mut command = sandbox.command(["--json"].iter().chain(&wait));
    let waiting = command.stdout(Stdio::piped()).spawn().unwrap();
    assert!(never.recv_timeout(cut_for).is_err());
    tunnel.restore();
    let answer = waiting.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["stopReason"]["type"], "BREAKPOINT_HIT", "{answer:#}");
    assert_eq!(answer["stopReason"]["location"]["lineNumber"], line, "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("d1 was attached to again, with its breakpoints: "), "{answer:#}");
    assert!(is_alive(program.pid()));
    let value = sandbox.json(&["debug", "evaluate", "turns", "--context", "watch"]);
    assert!(value["result"].as_str().unwrap().parse::<u64>().unwrap() > 0, "{value:#}");
    let again = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(again["stopReason"]["type"], "BREAKPOINT_HIT", "{again:#}");
    sandbox.json(&["debug", "stop"]);
    assert!(is_alive(program.pid()));
    end(&sandbox, program);
}

/// Ends a program: the adapter that debugpy keeps beside it ends a moment later.
fn end(sandbox: &Sandbox, program: Program) {
    drop(program);
    let is_own_adapter = |(_, line): &(u32, String)| line.contains("debugpy/adapter --for-server");
    eventually("debugpy's adapter has ended", || (!sandbox.processes().iter().any(is_own_adapter)).then_some(()));
}

/// Cut for ever: the session says what was tried, and that it was given up.
fn is_given_up(start: fn() -> Option<(Sandbox, Program)>) {
    let Some((sandbox, program)) = start() else { return };
    let mut tunnel = Tunnel::open(program.port);
    stopped(&sandbox, &program, tunnel.port);
    tunnel.cut();
    let tries = eventually("a try is reported", || {
        let message = status(&sandbox)["message"].as_str().unwrap_or_default().to_owned();
        Some(message).filter(|message| message.contains("could not be attached to again yet ("))
    });
    assert!(tries.contains("refused"), "{tries}");
    let answer = sandbox.json(&["debug", "wait", "100", "--session", "d1"]);
    assert_eq!((answer["state"].as_str(), answer["stopped"].as_bool()), (Some("DISCONNECTED"), Some(false)));
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("it could not be attached to again within 1m: "), "{message}");
    assert!(is_alive(program.pid()));
    end(&sandbox, program);
}

/// A program that is killed has ended, and is not attached to again.
fn has_ended_when_it_is_killed(start: fn() -> Option<(Sandbox, Program)>) {
    let Some((sandbox, mut program)) = start() else { return };
    stopped(&sandbox, &program, program.port);
    kill(program.pid(), Signal::KILL);
    program.running.0.wait().unwrap();
    let has_ended = |it: &Value| it["state"] == "TERMINATED" || it["state"] == "DISCONNECTED";
    let ended = eventually("the end is noticed", || Some(status(&sandbox)).filter(has_ended));
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    // debugpy's adapter is a child of the program, and ends a moment after it.
    eventually("nothing is left of it", || sandbox.others().iter().all(|(pid, _)| !is_alive(*pid)).then_some(()));
}

/// At the same time: most of each is waiting.
fn every_cut(start: fn() -> Option<(Sandbox, Program)>) {
    std::thread::scope(|scope| {
        scope.spawn(move || has_ended_when_it_is_killed(start));
        for seconds in [1, 30] {
            scope.spawn(move || is_attached_to_again(start, Duration::from_secs(seconds)));
        }
        scope.spawn(move || is_given_up(start));
    });
}

#[test]
fn a_python_program_is_attached_to_again_after_a_cut() {
    every_cut(python);
}

#[test]
fn a_node_program_is_attached_to_again_after_a_cut() {
    every_cut(node);
}

#[test]
fn a_java_program_is_attached_to_again_after_a_cut() {
    every_cut(java);
}

/// A session that is stopped while it is attached to again stays stopped.
#[test]
fn a_session_that_is_stopped_meanwhile_is_not_attached_to_again() {
    let Some((sandbox, program)) = node() else { return };
    let mut tunnel = Tunnel::open(program.port);
    stopped(&sandbox, &program, tunnel.port);
    tunnel.cut();
    eventually("the loss is noticed", || (status(&sandbox)["state"] == "DISCONNECTED").then_some(()));
    sandbox.json(&["debug", "stop", "d1"]);
    tunnel.restore();
    // It would have been attached to before.
    let other = sandbox.json(&["debug", "attach", &tunnel.port.to_string(), "--language", "node", "--wait", "60"]);
    assert_eq!((&other["sessionId"], &other["stopped"]), (&json!("d2"), &json!(true)), "{other:#}");
    assert_eq!(status(&sandbox)["state"], "DISCONNECTED");
}
