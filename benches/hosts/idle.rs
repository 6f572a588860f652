//! What a host holds, and that it sleeps.

use std::time::Duration;

use procfs::process::Process;

use crate::sides::{Side, Us, compile_java, program_sandbox_of};
use crate::{Builds, tell_met};

/// How long the wake-ups are counted.
const WATCHED: Duration = Duration::from_secs(20);
/// How long a thread that has nothing to do is kept, and a little more.
const SETTLED: Duration = Duration::from_secs(12);

pub fn measure(builds: &Builds, _: usize) {
    let sandbox = program_sandbox_of(&builds.new);
    compile_java(&sandbox);
    for (language, program) in [("Python", "app.py"), ("Node", "app.js"), ("Java", "App.java")] {
        let mut side = Us::start(&sandbox);
        side.stop_in(program);
        side.locals();
        let host = find_host(sandbox.home().to_str().unwrap());
        let mebibytes = private_bytes(&host) as f64 / f64::from(1 << 20);
        tell_met(
            &format!("{language}: the host's own memory"),
            &format!("{mebibytes:.2} MiB"),
            "≤ 3 MiB",
            mebibytes <= 3.0,
            "",
        );
        // Its front end stays connected, as an editor's does. The threads of what has blocked before end by themselves.
        std::thread::sleep(SETTLED);
        let before = wake_ups(&host);
        std::thread::sleep(WATCHED);
        let count = wake_ups(&host).saturating_sub(before);
        let what = format!("{language}: wake-ups of an idle host in {WATCHED:?}");
        tell_met(&what, &count.to_string(), "0", count == 0, "");
        side.end();
    }
}

fn find_host(home: &str) -> Process {
    let is_host = |process: &Process| {
        let words = process.cmdline().unwrap_or_default();
        words.get(1).is_some_and(|word| word == "session-host") && words.iter().any(|word| word.starts_with(home))
    };
    // The ended ones of before are readable for a while.
    let hosts = procfs::process::all_processes().unwrap().flatten().filter(is_host);
    hosts.max_by_key(|host| host.stat().unwrap().starttime).unwrap()
}

fn private_bytes(process: &Process) -> u64 {
    let all = process.smaps_rollup().unwrap();
    let mine = all.memory_map_rollup.0.first().unwrap().extension.map.clone();
    mine["Private_Dirty"] + mine["Private_Clean"]
}

/// How often its threads have gone to sleep, or were put to it.
fn wake_ups(process: &Process) -> u64 {
    let tasks = process.tasks().unwrap().flatten();
    let switches = tasks.map(|task| {
        let status = task.status().unwrap();
        status.voluntary_ctxt_switches.unwrap_or(0) + status.nonvoluntary_ctxt_switches.unwrap_or(0)
    });
    switches.sum()
}
