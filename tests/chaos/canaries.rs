//! Processes that look like ours and are not: none of them may get a signal.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::support::Sandbox;
use crate::support::scenario_sandbox::Running;

/// Prints each signal that can be caught, and who has sent it.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void print(int number, siginfo_t *from, void *context) {
  char text[80];
  (void)context;
  int length = snprintf(text, sizeof text, "signal %d of process %d\n", number, from->si_pid);
  (void)!write(1, text, length);
}
int main(void) {
  struct sigaction action = {.sa_sigaction = print, .sa_flags = SA_SIGINFO | SA_RESTART};
  for (int number = 1; number < NSIG; number++) sigaction(number, &action, NULL);
  (void)!write(1, "ready\n", 6);
  for (;;) pause();
}
"#;

struct Canary {
    looks_like: String,
    running: Running,
    signals: ChildStdout,
}

/// All of them, killed on drop.
pub struct Canaries {
    program: PathBuf,
    all: Vec<Canary>,
}

impl Canaries {
    pub fn compile(sandbox: &Sandbox) -> Canaries {
        let [source, program] = ["canary.c", "canary"].map(|name| sandbox.home().join(name));
        std::fs::write(&source, SOURCE).unwrap();
        assert!(Command::new("cc").arg("-o").args([&program, &source]).status().unwrap().success());
        Canaries { program, all: Vec::new() }
    }

    /// Adds one with this command line, in the workspace.
    pub fn add(&mut self, sandbox: &Sandbox, arguments: &[String]) {
        let (name, rest) = arguments.split_first().expect("a command line");
        let mut command = Command::new(&self.program);
        command.arg0(name).args(rest).current_dir(&sandbox.workspace);
        let mut child: Child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut signals = child.stdout.take().unwrap();
        let mut ready = [0; 6];
        signals.read_exact(&mut ready).unwrap();
        fcntl_setfl(&signals, OFlags::NONBLOCK).unwrap();
        let running = Running(child);
        self.all.push(Canary { looks_like: arguments.join(" "), running, signals });
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn pid(&self, choice: usize) -> u32 {
        self.all[choice % self.all.len()].running.0.id()
    }

    /// Errors: one has got a signal, or has ended.
    pub fn check(&mut self) -> Result<(), String> {
        for canary in &mut self.all {
            let mut text = String::new();
            // It ends with `WouldBlock`.
            let _ = canary.signals.read_to_string(&mut text);
            let ended = canary.running.0.try_wait().unwrap();
            if !text.is_empty() || ended.is_some() {
                let pid = canary.running.0.id();
                return Err(format!("process {pid} is not ours, `{}`: {text} {ended:?}", canary.looks_like));
            }
        }
        Ok(())
    }
}
