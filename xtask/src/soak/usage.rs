//! Uses the window and the sessions as their users do, until the soak is over.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::programs::SoakProgram;

/// How often a program is let go on before its session is stopped.
const STOPS: usize = 20;
/// Edits of the window's program between two restarts that change nothing.
const EDITS: usize = 5;

/// How `tether` is called.
pub struct Tether {
    pub program: PathBuf,
    pub workspace: PathBuf,
    pub variables: Vec<(&'static str, PathBuf)>,
}

/// How often something was used.
pub struct UseCount {
    pub name: &'static str,
    pub succeeded: usize,
    pub failed: usize,
    pub last_failure: String,
}

impl Tether {
    /// Runs a command to its end; its result. Errors: its stderr, when it fails.
    pub fn call(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.program);
        command.arg("--workspace").arg(&self.workspace).arg("--json").args(arguments).stdin(Stdio::null());
        command.current_dir(&self.workspace).envs(self.variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().with_context(|| format!("cannot run {}", self.program.display()))?;
        if !output.status.success() {
            let printed = [output.stdout, output.stderr].concat();
            bail!("`tether {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&printed).trim());
        }
        Ok(serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }
}

impl UseCount {
    fn new(name: &'static str) -> UseCount {
        UseCount { name, succeeded: 0, failed: 0, last_failure: String::new() }
    }

    fn add(&mut self, used: Result<()>) {
        match used {
            Ok(()) => self.succeeded += 1,
            Err(failure) => {
                self.failed += 1;
                self.last_failure = failure.to_string();
            }
        }
    }
}

impl fmt::Display for UseCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} times, {} failures", self.name, self.succeeded, self.failed)?;
        if self.failed > 0 {
            write!(f, "; the last: {}", self.last_failure.lines().next().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Launches a program, stops it many times, and ends it; again and again.
pub fn use_session(tether: &Tether, program: &SoakProgram, is_over: &AtomicBool) -> UseCount {
    let mut count = UseCount::new(program.name);
    while !is_over.load(Ordering::Acquire) {
        count.add(run_session(tether, program, is_over));
    }
    count
}

fn run_session(tether: &Tether, program: &SoakProgram, is_over: &AtomicBool) -> Result<()> {
    let mut launch = vec!["debug", "launch", program.program, "-b", program.breakpoint, "--wait", "60"];
    launch.extend(program.adapter.iter().flat_map(|adapter| ["--adapter", adapter]));
    let launched = tether.call(&launch)?;
    let session = launched["sessionId"].as_str().context("the launch names no session")?;
    let used = use_stops(tether, program, session, is_over);
    let stopped = tether.call(&["debug", "stop", session]);
    used.and(stopped.map(drop))
}

fn use_stops(tether: &Tether, program: &SoakProgram, session: &str, is_over: &AtomicBool) -> Result<()> {
    for _ in 0..STOPS {
        if is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        tether.call(&["debug", "stack", "--session", session])?;
        tether.call(&["debug", "variables", "--session", session])?;
        tether.call(&["debug", "evaluate", program.expression, "--session", session])?;
        tether.call(&["debug", "step", "--session", session])?;
        let stopped = tether.call(&["debug", "continue", "--session", session, "--wait", "30"])?;
        if stopped["stopped"] != true {
            bail!("the breakpoint of {} was not hit again: {stopped}", program.name);
        }
    }
    tether.call(&["debug", "output", "--session", session]).map(drop)
}

/// Edits the window's program, replaces the window, and looks at it; again and again.
pub fn use_window(tether: &Tether, is_over: &AtomicBool) -> UseCount {
    let mut count = UseCount::new("window");
    let mut edits = 0;
    while !is_over.load(Ordering::Acquire) {
        edits += 1;
        count.add(refresh_window(tether, edits));
    }
    count
}

fn refresh_window(tether: &Tether, edits: usize) -> Result<()> {
    if !edits.is_multiple_of(EDITS) {
        let file = tether.workspace.join("server.js");
        let text = fs::read_to_string(&file)?;
        let first = text.lines().skip_while(|line| line.starts_with("//")).collect::<Vec<_>>().join("\n");
        fs::write(&file, format!("// edit {edits}\n{first}\n"))?;
        tether.call(&["changes"])?;
    }
    tether.call(&["restart"])?;
    tether.call(&["evaluate", "1 + 1"])?;
    tether.call(&["console"])?;
    tether.call(&["status"]).map(drop)
}
