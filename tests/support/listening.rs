//! Programs that listen for debuggers, started without `tether`.

#![allow(dead_code)] // each test program uses a part

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use devtether::adapters::FoundAdapter;

use crate::support::{Sandbox, listening_with_debugpy};

/// A program that listens for debuggers; killed on drop.
pub struct Listening {
    child: Child,
    pub port: u16,
}

impl Listening {
    /// A Python program with debugpy in it.
    pub fn python(sandbox: &Sandbox, debugpy: &FoundAdapter, file: &str) -> Listening {
        let mut command = listening_with_debugpy(debugpy, &sandbox.path(file), false);
        Listening::of(command.stdout(Stdio::piped()), |line| line.strip_prefix("port ")?.parse().ok())
    }

    /// A Node program with its inspector open.
    pub fn node(sandbox: &Sandbox, node: &Path, file: &str) -> Listening {
        let mut command = Command::new(node);
        command.arg("--inspect=127.0.0.1:0").arg(sandbox.path(file));
        Listening::of(command.stderr(Stdio::piped()), |line| {
            line.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()
        })
    }

    fn of(command: &mut Command, port: impl Fn(&str) -> Option<u16>) -> Listening {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let printed: Box<dyn std::io::Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(out), _) => Box::new(out),
            (_, Some(err)) => Box::new(err),
            _ => panic!("it says nothing"),
        };
        let mut lines = BufReader::new(printed).lines();
        let port = lines.find_map(|line| port(&line.unwrap())).expect("it listens");
        // Later output is drained, so that a full pipe does not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Listening { child, port }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
