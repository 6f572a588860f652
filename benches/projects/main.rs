//! Real projects: a monorepo, a large bundle, a hundred thousand threads, a test by name. A line for each goal, with the figure
//! and whether it is met.
//!
//! `cargo bench --bench projects [-- RUNS]` (10 runs unless given). With the path of a `tether` in `DEVTETHER_BUILD`, that one is
//! measured instead of this build. Needs what `cargo xtask tools` installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::sandbox::Sandbox;
use client::{Client, median};
use serde_json::Value;

#[path = "../client/mod.rs"]
mod client;
mod java;
mod node;
mod tests_by_name;

fn main() {
    let runs = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let tether = std::env::var_os("DEVTETHER_BUILD").map_or_else(|| env!("CARGO_BIN_EXE_tether").into(), PathBuf::from);
    node::monorepo(&tether, runs);
    node::bundle(&tether, runs);
    java::many_threads(&tether, runs);
    tests_by_name::pytest(&tether, runs);
    tests_by_name::junit(&tether, runs);
}

fn tell(what: &str, figure: &str, goal: &str, is_met: bool) {
    println!("{what}: {figure}, goal {goal}: {}", if is_met { "met" } else { "NOT met" });
}

fn tools() -> PathBuf {
    tether_base::xdg::data_dir().unwrap().join("tools")
}

/// An empty workspace.
fn workspace(tether: &Path) -> Sandbox {
    Sandbox::of(tether, &[])
}

fn write(sandbox: &Sandbox, name: &str, text: &str) {
    let file = sandbox.workspace.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A client in a folder of the workspace, whose programs and tests may run.
fn open(sandbox: &Sandbox, folder: &str) -> Client {
    let at = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.current_dir(sandbox.workspace.join(folder));
        command
    };
    for what in ["--programs", "--tests"] {
        assert!(at(&["trust", what, "--yes"]).stdout(Stdio::null()).status().unwrap().success());
    }
    Client::start(&mut at(&["mcp"]))
}

fn call(client: &mut Client, tool: &str, arguments: Value) -> (Duration, Value) {
    let (took, result) = client.call(tool, arguments);
    (took, result["structuredContent"].clone())
}

/// How long a program runs that must succeed.
fn run(command: &mut Command) -> Duration {
    let begun = Instant::now();
    assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success(), "{command:?}");
    begun.elapsed()
}

/// Both in turns; the first of each is for warmth.
fn in_turns(runs: usize, mut one: impl FnMut() -> Duration, mut other: impl FnMut() -> Duration) -> [Duration; 2] {
    let (mut ones, mut others) = (vec![], vec![]);
    for _ in 0..=runs {
        ones.push(one());
        others.push(other());
    }
    [median(ones.split_off(1)), median(others.split_off(1))]
}
