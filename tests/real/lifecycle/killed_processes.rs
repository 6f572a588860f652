//! kill -9 on the front end, the supervisor, the adapter, the window or the debuggee, in the middle of any operation:
//! one supervisor at most, no process of ours left, none of the user's ended, a session file that is old or new.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::requirements::installed_adapter;
use crate::support::{Sandbox, TEST_TIMEOUT, eventually, is_alive, kill, node, run_command};

/// The default number of kills; `TETHER_KILLS=500` is what the design requires.
const KILLS: u64 = 20;
/// After so many kills everything is stopped, and nothing may be left.
const ROUND: u64 = 10;
/// An operation is killed somewhere within this time, in milliseconds: a start takes a third of it on a quiet machine.
const MOMENTS: u64 = 400;

const PROGRAM: &str = "setInterval(() => {}, 1000);\nlet count = 0;\nsetInterval(() => { count += 1; }, 50);\n";

const OPERATIONS: [&[&str]; 11] = [
    &["status"],
    &["start"],
    &["restart"],
    &["evaluate", "answer"],
    &["changes"],
    &["stop"],
    &["break", "set", "app.js:3"],
    &["break", "remove", "--all"],
    &["debug", "launch", "app.js", "--wait", "2"],
    &["debug", "launch", "app.js"],
    &["debug", "status"],
];

#[derive(Clone, Copy, Debug)]
enum Victim {
    FrontEnd,
    Supervisor,
    Adapter,
    Window,
    Debuggee,
}

const VICTIMS: [Victim; 5] = [Victim::FrontEnd, Victim::Supervisor, Victim::Adapter, Victim::Window, Victim::Debuggee];

/// A number below `n` for the place `draw` of a cycle: each cycle can be replayed alone.
fn draw(seed: u64, cycle: u64, draw: u64, n: u64) -> u64 {
    let mut mixed = seed ^ (cycle << 8 | draw).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % n
}

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A program of the user: it has inherited the launch id of the window, and has left its tree and session.
struct Bystander(Child);

impl Bystander {
    fn start(launch_id: Option<&str>) -> Bystander {
        let mut command = Command::new("setsid");
        command.args(["sleep", "100000"]).stdin(Stdio::null()).stdout(Stdio::null());
        Bystander(command.envs(launch_id.map(|id| ("DEVTETHER_LAUNCH_ID", id))).spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let alive = self.0.try_wait().unwrap().is_none();
        let _ = self.0.kill();
        self.0.wait().unwrap();
        assert!(alive || std::thread::panicking(), "a process of the user was ended");
    }
}

fn pids_with(sandbox: &Sandbox, words: &str) -> Vec<u32> {
    let all = sandbox.processes().into_iter();
    all.filter(|(_, line)| line.contains(words)).map(|(pid, _)| pid).collect()
}

fn kill_victim(sandbox: &Sandbox, victim: Victim, front_end: u32) {
    let pids = match victim {
        Victim::FrontEnd => vec![front_end],
        Victim::Supervisor => sandbox.supervisor().into_iter().collect(),
        Victim::Adapter => pids_with(sandbox, "vsDebugServer"),
        Victim::Window => pids_with(sandbox, "server.js"),
        Victim::Debuggee => pids_with(sandbox, "app.js").into_iter().filter(|pid| *pid != front_end).collect(),
    };
    pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
}

/// Waits for the front end, which must end.
fn wait_for(child: &mut Child, what: &str) {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < TEST_TIMEOUT, "{what}: the front end does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Stops everything; the supervisor may have been killed in the middle of it, so what is asked for is asked again.
fn nothing_is_left(sandbox: &Sandbox, what: &str) {
    let report = run_command(sandbox.command(["debug", "status", "--json"])).ok().json();
    for session in report["sessions"].as_array().into_iter().flatten() {
        sandbox.tether(&["debug", "stop", session["sessionId"].as_str().unwrap()]);
    }
    sandbox.tether(&["stop"]);
    sandbox.tether(&["shutdown", "--all"]);
    let since = Instant::now();
    loop {
        let left = sandbox.processes();
        if left.is_empty() {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{what}: left running: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(sandbox.session(), None, "{what}: a session file without a window");
}

#[test]
fn random_kills_of_any_process_during_any_operation_leave_nothing_and_end_nothing_of_the_users() {
    if installed_adapter("js-debug").is_none() {
        return;
    }
    let (kills, seed) = (number_from("TETHER_KILLS", KILLS), number_from("TETHER_CHAOS_SEED", 20_261_123));
    let (sandbox, started) = (node(), Instant::now());
    sandbox.write("app.js", PROGRAM);
    let mut bystanders = vec![Bystander::start(None)];
    for cycle in number_from("TETHER_FIRST_KILL", 0)..kills {
        let operation = OPERATIONS[draw(seed, cycle, 0, OPERATIONS.len() as u64) as usize];
        let victim = VICTIMS[draw(seed, cycle, 1, VICTIMS.len() as u64) as usize];
        let moment = Duration::from_millis(draw(seed, cycle, 2, MOMENTS));
        let what =
            format!("TETHER_CHAOS_SEED={seed} TETHER_FIRST_KILL={cycle}: {victim:?} at {moment:?} of {operation:?}");
        let mut front_end = sandbox.command(operation).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        kill_victim(&sandbox, victim, front_end.id());
        wait_for(&mut front_end, &what);
        // `session` panics on half a file.
        let session = sandbox.session();
        eventually(&what, || (pids_with(&sandbox, " supervise ").len() <= 1).then_some(()));
        let status = run_command(sandbox.command(["status", "--json"]));
        assert_eq!(status.code, 0, "{what}: {status:?}");
        if bystanders.len() == 1
            && let Some(launch_id) = session.as_ref().and_then(|it| it["launchId"].as_str())
        {
            bystanders.push(Bystander::start(Some(launch_id)));
        }
        for bystander in &bystanders {
            assert!(is_alive(bystander.0.id()), "{what}: a process of the user was ended");
        }
        if cycle % ROUND == ROUND - 1 {
            nothing_is_left(&sandbox, &what);
            bystanders.truncate(1);
        }
    }
    nothing_is_left(&sandbox, "the end");
    eprintln!("{kills} kills in {:?}, seed {seed}", started.elapsed());
}
