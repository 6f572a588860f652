//! The supervisor ends, and a front end asks.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};

use crate::client::sandbox::Sandbox;
use crate::client::{Client, median};
use crate::sides::{Side, Us, program_sandbox_of};
use crate::{Builds, tell};

const WINDOW: &str = "[window]\nkind = 'browser'\nurl = 'data:text/html,hi'\n";

/// Killed with -9 → the next front end, from its exec, → the first answer.
pub fn after_kill(builds: &Builds, runs: usize) {
    let session = stopped_in_python(&builds.new);
    let evaluate = json!({"expression": "order + 1 - order"});
    let took = (0..runs).map(|_| time_after_kill(&session, "debug_evaluate", &evaluate)).collect();
    tell("kill → first `debug_evaluate`, from exec", median(took), Duration::from_millis(60), "");

    let windows: Vec<Sandbox> = builds.all().into_iter().map(|build| with_window(build)).collect();
    let mut took = vec![vec![]; windows.len()];
    for _ in 0..runs {
        for (window, took) in windows.iter().zip(&mut took) {
            took.push(time_after_kill(window, "window_evaluate", &json!({"expression": "1 + 1"})));
        }
    }
    let mut took = took.into_iter().map(median);
    let figure = took.next().unwrap();
    let beside = took.next().map(|base| format!("base {base:.2?}")).unwrap_or_default();
    tell("kill → first `window_evaluate`, from exec", figure, Duration::from_millis(40), &beside);
    windows.iter().for_each(|window| drop(window.json(&["stop"])));
}

/// The longest that a call waits while the supervisor is replaced.
pub fn upgrade(builds: &Builds, runs: usize) {
    let session = stopped_in_python(&builds.new);
    let mut client = Client::start(&mut session.command(&["mcp"]));
    // It may be repeated: who asks notices nothing but the wait.
    client.call("debug_variables", json!({}));
    let mut longest = Vec::new();
    for _ in 0..runs {
        let mut upgrade = session.command(&["upgrade"]).stdout(Stdio::null()).spawn().unwrap();
        let mut waits = Vec::new();
        while upgrade.try_wait().unwrap().is_none() {
            waits.push(client.call("debug_variables", json!({})).0);
        }
        assert!(upgrade.wait().unwrap().success());
        longest.push(waits.into_iter().max().unwrap());
    }
    let worst = longest.iter().max().copied().unwrap();
    let beside = format!("longest of {runs} upgrades {worst:.2?}");
    tell("upgrade: longest wait of a call", median(longest), Duration::from_millis(100), &beside);
}

fn stopped_in_python(build: &Path) -> Sandbox {
    let sandbox = program_sandbox_of(build);
    Us::start(&sandbox).stop_in("app.py");
    sandbox
}

fn with_window(build: &Path) -> Sandbox {
    let sandbox = Sandbox::of(build, &[("devtools.toml", WINDOW)]);
    assert!(sandbox.command(&["trust", "--yes"]).output().unwrap().status.success());
    sandbox.json(&["start"]);
    sandbox
}

fn time_after_kill(sandbox: &Sandbox, tool: &str, arguments: &Value) -> Duration {
    kill(sandbox.supervisor().unwrap());
    let begun = Instant::now();
    Client::start(&mut sandbox.command(&["mcp"])).call(tool, arguments.clone());
    begun.elapsed()
}

/// Kills it, and waits until it is gone.
fn kill(supervisor: Pid) {
    let process = pidfd_open(supervisor, PidfdFlags::empty()).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let mut ended = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut ended, None).unwrap();
}
