//! Relays of editors' debug conversations under faults: nobody connects, too many do, other users do, the supervisor exits;
//! and hundreds of them leave nothing behind.
//!
//! The adapter is a shell script in netcoredbg's place.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use procfs::process::FDTarget;
use rustix::process::Signal;
use serde_json::json;

use crate::support::editor_client::EditorClient;
use crate::support::other_user::spawn_node_as_nobody;
use crate::support::requirements::is_root;
use crate::support::{Sandbox, TEST_TIMEOUT, eventually, kill, wait_for_end};

/// An adapter that sends back what it gets.
const ECHO: &str = "#!/bin/sh\nexec cat\n";

struct RelaySandbox {
    // Dropped before the sandbox.
    editor: EditorClient,
    path: String,
    sandbox: Sandbox,
}

impl RelaySandbox {
    fn with(script: &str) -> RelaySandbox {
        let sandbox = Sandbox::new();
        sandbox.write("app.dll", "");
        let folder = sandbox.home().join("adapters");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("netcoredbg"), script).unwrap();
        std::fs::set_permissions(folder.join("netcoredbg"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        std::fs::create_dir(sandbox.home().join("tmp")).unwrap();
        let editor = start_editor(&sandbox, &path);
        RelaySandbox { editor, path, sandbox }
    }

    /// After one conversation: what the supervisor opens once is open.
    fn with_warm_supervisor() -> RelaySandbox {
        let mut stage = RelaySandbox::with(ECHO);
        stage.converse();
        eventually("the adapter has exited", || stage.adapters().is_empty().then_some(()));
        stage
    }

    fn converse(&mut self) {
        let mut editor = connect(self.start()).unwrap();
        echo(&mut editor, b"Content-Length: 2\r\n\r\n{}");
    }

    fn start(&mut self) -> u16 {
        let started = self.editor.call("debugger/start", json!({"targetPath": "app.dll"}));
        assert_eq!(started["success"], true, "{started}");
        started["port"].as_u64().unwrap() as u16
    }

    /// The processes besides the supervisor and the editor's front end.
    fn adapters(&self) -> Vec<(u32, String)> {
        let others = self.sandbox.processes().into_iter();
        others.filter(|(_, command)| !command.contains("/tether ")).collect()
    }

    /// Descriptors of the supervisor of the kinds that a relay opens. Its watcher opens others whenever it gets to run.
    fn descriptors(&self) -> Vec<FDTarget> {
        let supervisor = procfs::process::Process::new(self.sandbox.supervisor().unwrap() as i32).unwrap();
        let targets = supervisor.fd().unwrap().filter_map(Result::ok).map(|it| it.target);
        let is_counted = |target: &FDTarget| match target {
            FDTarget::Socket(_) | FDTarget::Net(_) | FDTarget::Pipe(_) => true,
            FDTarget::AnonInode(kind) => kind.contains("pidfd"),
            _ => false,
        };
        targets.filter(is_counted).collect()
    }

    /// Waits until the supervisor has at most `more` descriptors more than `before`.
    fn wait_for_closed_descriptors(&self, before: &[FDTarget], more: usize) {
        let since = Instant::now();
        while self.descriptors().len() > before.len() + more {
            assert!(since.elapsed() < TEST_TIMEOUT, "{before:?} became {:?}", self.descriptors());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn start_editor(sandbox: &Sandbox, path: &str) -> EditorClient {
    let folder = sandbox.home().join("tmp").display().to_string();
    EditorClient::start_with(sandbox, &[("PATH", path), ("TMPDIR", &folder)], json!({"name": "test"}))
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    Ok(stream)
}

fn is_refused(port: u16) -> bool {
    connect(port).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// Sends bytes and reads them back.
fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    let mut read = vec![0; bytes.len()];
    stream.read_exact(&mut read).unwrap();
    assert!(read == bytes);
}

#[test]
fn when_nobody_connects_for_30_seconds_nothing_was_started_and_nothing_remains() {
    let mut stage = RelaySandbox::with_warm_supervisor();
    let before = stage.descriptors();
    let began = Instant::now();
    let ports = [stage.start(), stage.start()];
    assert_eq!(stage.adapters(), []);
    // Looking must not connect: the listeners are counted.
    let listeners = || {
        procfs::net::tcp()
            .unwrap()
            .iter()
            .filter(|it| it.state == procfs::net::TcpState::Listen && ports.contains(&it.local_address.port()))
            .count()
    };
    assert_eq!(listeners(), 2);
    eventually("the ports are closed", || (listeners() == 0).then_some(()));
    let waited = began.elapsed();
    assert!(waited > Duration::from_secs(29) && waited < Duration::from_secs(45), "{waited:?}");
    assert!(ports.into_iter().all(is_refused));
    assert_eq!(stage.adapters(), []);
    stage.wait_for_closed_descriptors(&before, 0);
}

#[test]
fn bytes_pass_unchanged_and_a_second_connection_is_refused() {
    let mut stage = RelaySandbox::with(ECHO);
    let port = stage.start();
    let mut editor = connect(port).unwrap();
    echo(&mut editor, b"no frame at all\r\n\r\n\x00\xff");
    assert!(is_refused(port));
    assert_eq!(stage.adapters().len(), 1);
    let bulk: Vec<u8> = (0..8_000_000u32).map(|number| (number * 7 % 251) as u8).collect();
    let mut reader = editor.try_clone().unwrap();
    let expected = bulk.clone();
    let reading = std::thread::spawn(move || {
        let mut read = vec![0; expected.len()];
        reader.read_exact(&mut read).unwrap();
        assert!(read == expected);
    });
    editor.write_all(&bulk).unwrap();
    reading.join().unwrap();
    // A half-closed connection still gets the adapter's last output, and then its end.
    editor.write_all(b"last").unwrap();
    editor.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    editor.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"last");
    eventually("the adapter has exited", || stage.adapters().is_empty().then_some(()));
}

#[test]
fn another_users_connection_is_refused_and_ours_is_still_taken() {
    if !is_root() {
        return;
    }
    let mut stage = RelaySandbox::with(ECHO);
    let port = stage.start();
    let script = "require('net').connect(+process.argv[1], '127.0.0.1', () => console.log('connected'))
        .on('data', data => console.log('read ' + data)).on('error', error => console.log(error.code))
        .on('close', () => { console.log('closed'); process.exit() }); process.stdin.resume()";
    let mut theirs = spawn_node_as_nobody(script, [port.to_string()]);
    let mut lines = BufReader::new(theirs.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "closed"));
    theirs.wait().unwrap();
    assert_eq!(stage.adapters(), []);
    echo(&mut connect(port).unwrap(), b"ours");
}

#[test]
fn without_a_free_descriptor_there_is_no_success() {
    let mut stage = RelaySandbox::with(ECHO);
    stage.start();
    let supervisor = stage.sandbox.supervisor().unwrap();
    let limit = |limit: u64| {
        let limit = [format!("--pid={supervisor}"), format!("--nofile={limit}:")];
        assert!(std::process::Command::new("prlimit").args(limit).status().unwrap().success());
    };
    let mut answer_at_limit = || {
        let open: std::collections::BTreeSet<u64> = procfs::process::Process::new(supervisor as i32)
            .and_then(|it| it.fd())
            .unwrap()
            .filter_map(|it| u64::try_from(it.ok()?.fd).ok())
            .collect();
        limit((0..).find(|number| !open.contains(number)).unwrap());
        let answer = stage.editor.call("debugger/start", json!({"targetPath": "app.dll"}));
        limit(1024);
        answer
    };
    // One that was counted may have been open for a moment only.
    eventually("no success", || (answer_at_limit() == json!({"success": false})).then_some(()));
    echo(&mut connect(stage.start()).unwrap(), b"again");
}

#[test]
fn an_adapter_that_cannot_be_started_is_shown_to_the_editor() {
    let mut stage = RelaySandbox::with(ECHO);
    let port = stage.start();
    // It is gone between the request and the connection.
    std::fs::remove_file(stage.sandbox.home().join("adapters/netcoredbg")).unwrap();
    let mut text = String::new();
    connect(port).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("\"event\":\"output\"") && text.contains("netcoredbg"), "{text}");
    assert!(text.contains("\"event\":\"terminated\""), "{text}");
}

#[test]
fn the_supervisors_exit_ends_relays_and_the_next_one_ends_what_a_killed_one_has_left() {
    let mut stage = RelaySandbox::with(ECHO);
    let port = stage.start();
    let mut editor = connect(port).unwrap();
    echo(&mut editor, b"x");
    let supervisor = stage.sandbox.supervisor().unwrap();
    kill(supervisor, Signal::TERM);
    wait_for_end(supervisor);
    assert_eq!(editor.read(&mut [0; 8]).unwrap_or(0), 0);
    eventually("the adapter has exited", || stage.adapters().is_empty().then_some(()));

    // A program that does not notice that its adapter and the supervisor are gone.
    let script = stage.sandbox.home().join("adapters/netcoredbg");
    std::fs::write(&script, "#!/bin/sh\nsleep 1000 </dev/null >/dev/null 2>&1 &\nexec cat\n").unwrap();
    stage.editor = start_editor(&stage.sandbox, &stage.path);
    let port = stage.start();
    let mut editor = connect(port).unwrap();
    echo(&mut editor, b"x");
    let programs =
        || stage.sandbox.processes().into_iter().filter(|(_, command)| command.contains("sleep 1000")).count();
    eventually("the program runs", || (programs() == 1).then_some(()));
    let supervisor = stage.sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    stage.sandbox.status();
    eventually("nothing is left", || stage.adapters().is_empty().then_some(()));
}

#[test]
fn five_hundred_conversations_leave_no_process_and_no_descriptor() {
    let mut stage = RelaySandbox::with_warm_supervisor();
    let before = stage.descriptors();
    (0..500).for_each(|_| stage.converse());
    eventually("the adapters have exited", || stage.adapters().is_empty().then_some(()));
    stage.wait_for_closed_descriptors(&before, 2);
    let supervisor = stage.sandbox.supervisor().unwrap();
    let threads = procfs::process::Process::new(supervisor as i32).unwrap().stat().unwrap().num_threads;
    assert!(threads < 40, "{threads} threads");
    assert!(stage.sandbox.peak() < 150 << 20, "the supervisor took {} bytes", stage.sandbox.peak());
    let stored =
        std::fs::read_dir(stage.sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    eventually("no session is stored", || {
        let text = std::fs::read_to_string(stored.join(".devtools/sessions.json")).unwrap_or_default();
        (!text.contains("relay-")).then_some(())
    });
    let left: Vec<_> =
        std::fs::read_dir(stage.sandbox.home().join("tmp")).unwrap().flatten().map(|it| it.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}
