//! Whoever listens on a port that is attached to: it may not run programs, may be another user's only when the host is
//! named, and holds nobody up.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::requirements::{has_program, is_root};
use crate::support::{CommandOutput, Sandbox, kill, run_command, wait_for_end};

/// `nobody`, on every Linux.
const NOBODY: u32 = 65534;

/// A debug adapter that, once it is attached to, requests that a command is run ("runs"); or never answers ("silent"), or
/// only until it has reported a stop ("stops"). Prints its port, the commands that it receives, and the responses to its own
/// request.
const PEER: &str = r#"
const [port, file, mode] = process.argv.slice(1);
let silent = mode === "silent";
const server = require("net").createServer(wire => {
    let received = Buffer.alloc(0);
    const send = message => {
        const body = JSON.stringify({seq: 1, ...message});
        wire.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    };
    const handle = it => {
        if (it.type === "response") return console.log(`${it.command} ${it.success}`);
        console.log(it.command);
        if (silent) return;
        send({type: "response", request_seq: it.seq, command: it.command, success: true, body: {}});
        if (it.command !== "attach") return;
        send({type: "event", event: "initialized"});
        if (mode === "stops") {
            send({type: "event", event: "stopped", body: {reason: "pause", threadId: 1, allThreadsStopped: true}});
            silent = true;
            return;
        }
        send({type: "request", command: "runInTerminal", arguments: {cwd: "/", args: ["touch", file]}});
    };
    wire.on("error", () => {}).on("data", data => {
        received = Buffer.concat([received, data]);
        for (;;) {
            const head = received.indexOf("\r\n\r\n");
            if (head < 0) return;
            const end = head + 4 + Number(/: *(\d+)/.exec(received.subarray(0, head))[1]);
            if (received.length < end) return;
            handle(JSON.parse(received.subarray(head + 4, end)));
            received = received.subarray(end);
        }
    });
});
server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
"#;

pub struct Peer {
    process: Child,
    pub port: String,
    printed: BufReader<ChildStdout>,
    _stdin: ChildStdin,
}

impl Peer {
    /// A peer of a user, on a port, or on a free one for "0".
    fn start(sandbox: &Sandbox, user: u32, port: &str) -> Peer {
        Peer::start_in_mode(sandbox, user, port, "runs")
    }

    pub fn start_in_mode(sandbox: &Sandbox, user: u32, port: &str, mode: &str) -> Peer {
        let mut command = Command::new("node");
        command.args(["-e", PEER, port]).arg(touched_file(sandbox)).arg(mode).current_dir("/");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        if user != rustix::process::getuid().as_raw() {
            command.uid(user).gid(user);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        printed.read_line(&mut port).unwrap();
        let stdin = process.stdin.take().unwrap();
        Peer { process, port: port.trim().to_owned(), printed, _stdin: stdin }
    }

    /// The next line that it prints.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.printed.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Ends it, and returns what else it has printed.
    pub fn end(mut self) -> String {
        kill(self.process.id(), Signal::KILL);
        self.process.wait().unwrap();
        std::io::read_to_string(&mut self.printed).unwrap()
    }
}

/// The file that the peers want to be made.
fn touched_file(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join("was touched")
}

/// Returns a PATH with a Delve, which is only looked for: what is attached to is running already.
pub fn install_delve(sandbox: &Sandbox) -> OsString {
    sandbox.write("../bin/dlv", "#!/bin/sh\n");
    let delve = sandbox.home().join("bin/dlv");
    std::fs::set_permissions(&delve, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut path = delve.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

fn with_delve(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(arguments);
    command.env("PATH", install_delve(sandbox));
    run_command(command)
}

fn attach(sandbox: &Sandbox, port: &str, more: &[&str]) -> CommandOutput {
    with_delve(sandbox, &[&["debug", "attach", port, "--adapter", "dlv"], more].concat())
}

/// Whether the peer's own request was carried out.
fn run_response(peer: &mut Peer) -> String {
    loop {
        let line = peer.next_line();
        if line.starts_with("runInTerminal") || line.is_empty() {
            return line;
        }
    }
}

#[test]
fn what_is_attached_to_cannot_run_a_program() {
    if !has_program("node") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut peer = Peer::start(&sandbox, rustix::process::getuid().as_raw(), "0");
    attach(&sandbox, &peer.port, &[]).ok();
    assert_eq!(run_response(&mut peer), "runInTerminal false");
    assert!(!touched_file(&sandbox).exists());
    sandbox.tether(&["debug", "stop"]).ok();
    peer.end();
}

#[test]
fn another_users_port_is_attached_to_only_when_its_host_is_named() {
    if !is_root() || !has_program("node") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut peer = Peer::start(&sandbox, NOBODY, "0");
    let words = ["user 65534, not of user 0", "--host 127.0.0.1", "cannot attach to 127.0.0.1"];
    attach(&sandbox, &peer.port, &[]).fails(1, &words);
    let configured = format!(
        r#"{{"configurations": [{{"name": "theirs", "type": "go", "request": "attach", "mode": "remote",
            "host": "localhost", "port": {}}}]}}"#,
        peer.port
    );
    sandbox.write(".vscode/launch.json", &configured);
    with_delve(&sandbox, &["trust", "--config", "theirs", "--yes"]).ok();
    with_delve(&sandbox, &["debug", "attach", "--config", "theirs"]).fails(1, &words[..1]);
    // The first command that it receives is that of the attach whose caller has named the host.
    attach(&sandbox, &peer.port, &["--host", "127.0.0.1"]).ok();
    assert_eq!(peer.next_line(), "initialize");
    assert_eq!(run_response(&mut peer), "runInTerminal false");
    sandbox.tether(&["debug", "stop"]).ok();
    peer.end();
    assert!(!touched_file(&sandbox).exists());
}

#[test]
fn a_session_that_is_attached_to_again_proves_its_peer_again() {
    if !is_root() || !has_program("node") {
        return;
    }
    // Also when the host was named: that was another listener.
    for more in [&[][..], &["--host", "127.0.0.1"]] {
        let sandbox = Sandbox::new();
        let ours = Peer::start(&sandbox, 0, "0");
        attach(&sandbox, &ours.port, more).ok();
        let supervisor = sandbox.supervisor().unwrap();
        kill(supervisor, Signal::KILL);
        wait_for_end(supervisor);
        sandbox.kill_session_hosts();
        let port = ours.port.clone();
        ours.end();
        let theirs = Peer::start(&sandbox, NOBODY, &port);
        let status: Value = with_delve(&sandbox, &["debug", "status", "d1", "--json"]).ok().json();
        assert_eq!(status["state"], "DISCONNECTED", "{status:#}");
        assert!(status["message"].as_str().unwrap().contains("user 65534, not of user 0"), "{status:#}");
        assert_eq!(theirs.end(), "", "it was sent something");
        assert!(!touched_file(&sandbox).exists());
    }
}

#[test]
fn a_wait_holds_against_a_silent_peer() {
    if !has_program("node") {
        return;
    }
    // Three seconds, and what a busy machine adds; a request alone would be waited for ten seconds, a start thirty.
    const MOST: Duration = Duration::from_secs(9);
    let us = rustix::process::getuid().as_raw();
    let sandbox = Sandbox::new();
    sandbox.tether(&["debug", "status"]).ok();
    let within_most = |run: &dyn Fn() -> CommandOutput| {
        let began = Instant::now();
        let output = run();
        assert!(began.elapsed() < MOST, "{:?}: {output:?}", began.elapsed());
        output
    };
    let silent = Peer::start_in_mode(&sandbox, us, "0", "silent");
    let attached = within_most(&|| attach(&sandbox, &silent.port, &["--wait", "3"]));
    attached.fails(124, &["cannot attach to 127.0.0.1", "has not answered within 3s"]);
    silent.end();

    let stops = Peer::start_in_mode(&sandbox, us, "0", "stops");
    let stopped = within_most(&|| attach(&sandbox, &stops.port, &["--wait", "3", "--json"])).ok().json();
    assert_eq!(
        (&stopped["stopped"], &stopped["stopReason"]["threadId"].is_null()),
        (&true.into(), &false),
        "{stopped:#}"
    );
    assert!(stopped["notes"][0].as_str().unwrap().contains("does not answer"), "{stopped:#}");
    let stepped = within_most(&|| sandbox.tether(&["debug", "step", "--wait", "3"]));
    stepped.fails(124, &["cannot resume the program", "has not answered within 3s"]);
    sandbox.tether(&["debug", "stop"]).ok();
    stops.end();
}

/// Attaches to two peers and kills the supervisor, and the hosts of the sessions. The port of the first has a silent peer then, which is returned with the
/// second one.
fn kill_supervisor_of_two(sandbox: &Sandbox) -> (Peer, Peer) {
    let us = rustix::process::getuid().as_raw();
    let (first, second) = (Peer::start(sandbox, us, "0"), Peer::start(sandbox, us, "0"));
    attach(sandbox, &first.port, &[]).ok();
    attach(sandbox, &second.port, &[]).ok();
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    sandbox.kill_session_hosts();
    let port = first.port.clone();
    first.end();
    (Peer::start_in_mode(sandbox, us, &port, "silent"), second)
}

#[test]
fn an_operation_waits_only_for_the_session_that_it_means() {
    if !has_program("node") {
        return;
    }
    let sandbox = Sandbox::new();
    let (mut silent, second) = kill_supervisor_of_two(&sandbox);
    // The first one is still waited for, for thirty seconds, when the second one is there again.
    let began = Instant::now();
    let output = with_delve(&sandbox, &["debug", "output", "--session", "d2", "--json"]).ok().json();
    assert!(output["entries"].is_array(), "{output:#}");
    sandbox.json(&["break", "list"]);
    assert_eq!(silent.next_line(), "initialize", "the first one is being recovered");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    // The end of the silent one is the end of its recovery.
    silent.end();
    let lost: Value = sandbox.json(&["debug", "status", "d1"]);
    assert_eq!(lost["state"], "DISCONNECTED", "{lost:#}");
    sandbox.tether(&["debug", "stop", "d2"]).ok();
    second.end();
}

#[test]
fn an_operation_that_names_no_session_waits_until_it_is_decided_which_is_meant() {
    if !has_program("node") {
        return;
    }
    let sandbox = Sandbox::new();
    let (mut silent, second) = kill_supervisor_of_two(&sandbox);
    let output = std::thread::scope(|scope| {
        let output = scope.spawn(|| with_delve(&sandbox, &["debug", "output", "--json"]));
        assert_eq!(silent.next_line(), "initialize", "the first one is being recovered");
        assert!(!output.is_finished(), "it is not decided whether the second one is the only one");
        silent.end();
        output.join().unwrap()
    });
    // Once the first one is lost, the second one is meant.
    assert!(output.ok().json()["entries"].is_array());
    assert_eq!(sandbox.json(&["debug", "status", "d1"])["state"], "DISCONNECTED");
    sandbox.tether(&["debug", "stop", "d2"]).ok();
    second.end();
}
