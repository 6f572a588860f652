//! Attaches to a running program, stops it, and detaches.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use devtether::debug::breakpoints::BreakpointConditions;
use devtether::debug::program::{Address, DebugTarget, DebugTargetKind};
use devtether::debug::{Resume, SessionRequest};
use devtether::vocabulary::StopKind;

use crate::adapter_features::debuggees::Subject;
use crate::adapter_features::sessions::FeatureSessions;
use crate::support::{JDWP_PORT, compile_java, java_listening, listening_with_debugpy};

/// A running program; killed and reaped on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Starts the program as its users would, and waits for the line with its debug address.
fn started(subject: &Subject) -> (Running, DebugTargetKind) {
    let (mut command, ready) = match subject.adapter {
        "debugpy" => (listening_with_debugpy(&subject.found, &subject.source, false), "up"),
        "js-debug" | "node" => {
            let mut command = Command::new("node");
            command.arg("--inspect=127.0.0.1:0");
            (command, "Debugger listening on ws://")
        }
        "rdbg" => {
            let mut command = Command::new(&subject.found.path);
            command.args(["--open", "--nonstop", "--host", "127.0.0.1", "--port", "0", "--"]);
            (command, "Debugger can attach via TCP/IP (")
        }
        "java" => {
            compile_java(&subject.source);
            (java_listening(&subject.workspace(), "App", false), "up")
        }
        _ => (Command::new(&subject.program), "up"),
    };
    if matches!(subject.adapter, "js-debug" | "node" | "rdbg") {
        command.arg(&subject.source);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let line = printed(BufReader::new(running.0.stderr.take().unwrap()), ready);
        return (running, DebugTargetKind::Listener(address_in(&line)));
    }
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut reader = BufReader::new(running.0.stdout.take().unwrap());
    let mut first = String::new();
    if matches!(subject.adapter, "debugpy" | "java") {
        reader.read_line(&mut first).unwrap();
    }
    printed(reader, ready);
    let prefixes = ["port ", JDWP_PORT];
    let port = prefixes
        .iter()
        .find_map(|prefix| first.trim().strip_prefix(prefix))
        .map(|port| Address::loopback(port.parse().unwrap()));
    let what = port.map_or(DebugTargetKind::Pid(running.0.id()), DebugTargetKind::Listener);
    (running, what)
}

/// The first line with these words. Later output is drained, and the pipe stays open.
fn printed(mut reader: impl BufRead + Send + 'static, words: &str) -> String {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it never says {words:?}");
    }
    // A program whose pipe is closed ends; the reading thread ends with the program.
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    line
}

fn address_in(line: &str) -> Address {
    let at = line.find("127.0.0.1:").unwrap_or_else(|| panic!("{line}")) + "127.0.0.1:".len();
    let digits: String = line[at..].chars().take_while(char::is_ascii_digit).collect();
    Address::loopback(digits.parse().unwrap())
}

pub async fn attaches(subject: &Subject) -> Result<(), String> {
    let (running, what) = started(subject);
    let stage = FeatureSessions::of(&subject.workspace());
    let spin = subject.line("SPIN");
    stage.sessions.set_line_breakpoint(&subject.source, spin, BreakpointConditions::default()).await.unwrap();
    let requested = DebugTarget { kind: what, cwd: subject.workspace(), ..DebugTarget::default() };
    let adapter = Some(subject.adapter.to_owned());
    let request =
        SessionRequest { name: "what runs".to_owned(), debug_target: requested, adapter, ..SessionRequest::default() };
    let play = stage.start(request).await;
    // Some adapters stop where they attach.
    let (mut kind, _, mut line) = play.stopped().await;
    for _ in 0..3 {
        if (kind, line) != (StopKind::BreakpointHit, spin) {
            (kind, _, line) = play.then(Resume::Continue).await;
        }
    }
    assert_eq!((kind, line), (StopKind::BreakpointHit, spin));
    stage.sessions.remove_breakpoints(|_| true).await.unwrap();
    play.managed.stop(Some(true)).await;
    stage.end().await;
    let mut running = running;
    assert!(running.0.try_wait().unwrap().is_none(), "it was left, and has ended");
    Ok(())
}
