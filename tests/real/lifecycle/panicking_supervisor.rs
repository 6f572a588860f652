//! A supervisor that panics on command: this test program itself, which runs the real `supervise` beside a thread that
//! panics. No other process can make a supervisor panic.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::Sandbox;

/// Set in the process that is to be the supervisor.
const WORKSPACE: &str = "DEVTETHER_TEST_PANICKING_SUPERVISOR";

#[derive(Debug)]
pub struct PanickingSupervisor(Child);

impl PanickingSupervisor {
    /// Starts the supervisor of a sandbox that has none; returns once it listens.
    pub fn start(sandbox: &Sandbox) -> PanickingSupervisor {
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("{module}::supervises_until_stdin_closes"), "--nocapture"]);
        command.env(WORKSPACE, &sandbox.workspace).envs(sandbox.variables()).current_dir("/");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with(r#"{"ready""#)), "it did not become the supervisor");
        PanickingSupervisor(child)
    }

    /// Makes a thread of the supervisor panic, and waits for the exit of the process.
    pub fn panic(mut self) {
        drop(self.0.stdin.take());
        assert_eq!(self.0.wait().unwrap().code(), Some(101));
    }
}

/// Does nothing in a usual run: [`PanickingSupervisor::start`] runs it in a process of its own.
#[test]
fn supervises_until_stdin_closes() {
    let Some(workspace) = std::env::var_os(WORKSPACE) else { return };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        panic!("the test closed stdin");
    });
    let program = Path::new(env!("CARGO_BIN_EXE_tether"));
    devtether::supervisor::server::supervise_with(workspace.as_ref(), program, Duration::from_secs(600)).unwrap();
}
