//! What must hold, whatever has happened.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::answers::{is_missing, learn_list, learn_state};
use crate::beliefs::is_silent;
use crate::calls::{Answer, Call, no_params};
use crate::faults::{find_supervisor, pause};
use crate::support::{is_alive, kill};
use crate::world::World;

/// How many descriptors a supervisor may have more than at the first quiet moment.
const MORE_DESCRIPTORS: usize = 4;
/// Of a supervisor for the host of an ended session: its connection, its process.
const DESCRIPTORS_PER_HOST: usize = 2;
/// How long what is ending may take.
const SETTLED: Duration = Duration::from_secs(20);

/// After each operation. Errors: what does not hold.
pub fn check_quickly(world: &mut World, choice: u64) -> Result<(), String> {
    world.canaries.check()?;
    world.watch.as_ref().map_or(Ok(()), |it| it.check())?;
    if let Some(window) = world.window.filter(|pid| !is_alive(*pid)) {
        return Err(format!("the window, process {window}, has ended, and nobody has ended it"));
    }
    read_waits(world)?;
    let stopped: Vec<String> = world.sessions.iter().filter(|it| it.stop().is_some()).map(|it| it.id.clone()).collect();
    if stopped.is_empty() {
        return Ok(());
    }
    let id = &stopped[choice as usize % stopped.len()];
    let in_flight = world.begin(&Call::Request("debug/status", json!({"sessionId": id})))?;
    match world.finish(in_flight)? {
        Answer::Done(status) => learn_state(world, id, &status),
        answer if world.is_excused() && !is_missing(&answer) => Ok(()),
        answer => Err(format!("there is no status of {id}, which was stopped: {}", answer.summary())),
    }
}

/// The answers of processes that have waited for a stop.
fn read_waits(world: &mut World) -> Result<(), String> {
    let mut left = Vec::new();
    for wait in std::mem::take(&mut world.waits) {
        if wait.try_finish()?.is_none() {
            left.push(wait);
        }
    }
    world.waits = left;
    Ok(())
}

/// Now and then, with no fault left. Errors: what does not hold.
pub fn check_thoroughly(world: &mut World) -> Result<(), String> {
    world.lift_all();
    world.connect()?.map_or(Ok(()), |answer| Err(format!("there is no supervisor: {}", answer.summary())))?;
    check_processes(world)?;
    let all = read_list(world)?;
    learn_list(world, &all)?;
    let stopped: Vec<(String, &str)> =
        world.sessions.iter().filter(|it| it.stop().is_some()).map(|it| (it.id.clone(), it.program.turns)).collect();
    for (id, turns) in stopped {
        let status = read_status(world, &id)?;
        learn_state(world, &id, &status)?;
        let value = world.ask("debug/evaluate", json!({"sessionId": id, "expression": turns}))?;
        world.session(&id).map_or(Ok(()), |it| it.learn_turns(&value))?;
    }
    world.canaries.check()
}

/// All sessions, once each host answers: also those of which nothing is believed any more.
fn read_list(world: &mut World) -> Result<Value, String> {
    let mut all = Value::Null;
    settles(|| {
        all = world.ask("debug/status", no_params())?;
        let single = std::slice::from_ref(&all);
        let silent = all["sessions"].as_array().map_or(single, Vec::as_slice).iter().find(|it| is_silent(it));
        silent.map_or(Ok(()), |it| Err(format!("a host does not answer though no fault is left: {it}")))
    })
    .map_err(|error| {
        let silent = error.split("process ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        silent.map_or(error.clone(), |pid: u32| format!("{error}\n{}", describe_process(pid)))
    })?;
    Ok(all)
}

/// What a process does, as far as a debugger is installed that can say so.
fn describe_process(pid: u32) -> String {
    let pid = pid.to_string();
    let arguments = ["-p", &pid, "-batch", "-ex", "thread apply all bt 40"];
    let output = std::process::Command::new("gdb").args(arguments).output();
    output.map_or_else(|error| error.to_string(), |it| String::from_utf8_lossy(&it.stdout).into_owned())
}

/// The status of a session, once its host answers.
fn read_status(world: &mut World, id: &str) -> Result<Value, String> {
    let mut status = Value::Null;
    settles(|| {
        status = world.ask("debug/status", json!({"sessionId": id}))?;
        if is_silent(&status) { Err(format!("the host of {id} does not answer again: {status}")) } else { Ok(()) }
    })?;
    Ok(status)
}

/// Repeats a check until it holds: what is ending takes its time. Errors: it does not hold in the end.
fn settles(mut check: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let deadline = Instant::now() + SETTLED;
    loop {
        match check() {
            Err(_) if Instant::now() < deadline => pause(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
}

/// One supervisor, and one host for each session; those that lose a race end.
fn check_processes(world: &World) -> Result<(), String> {
    settles(|| {
        let processes = world.sandbox.processes();
        let supervisors = processes.iter().filter(|(_, line)| line.contains(" supervise ")).count();
        let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, line) in &processes {
            if let Some((_, launch_id)) = line.split_once("--launch-id ").filter(|(it, _)| it.contains("session-host"))
            {
                *hosts.entry(launch_id).or_default() += 1;
            }
        }
        match supervisors == 1 && hosts.values().all(|count| *count == 1) {
            true => Ok(()),
            false => Err(format!("there is not one supervisor, and one host for each session: {processes:#?}")),
        }
    })
}

/// Ends all sessions and the window: what is left is what there was at the start.
pub fn check_quiet(world: &mut World) -> Result<(), String> {
    check_thoroughly(world)?;
    for wait in std::mem::take(&mut world.waits) {
        wait.finish()?;
    }
    for session in std::mem::take(&mut world.sessions) {
        let call = Call::Request("debug/stop", json!({"sessionId": session.id}));
        let in_flight = world.begin(&call)?;
        if let Answer::Gone = world.finish(in_flight)? {
            return Err(format!("the supervisor has ended while it was ending {}", session.id));
        }
    }
    world.window = None;
    world.ask("window/stop", no_params())?;
    world.listening = None;
    let ours = world.sandbox.processes();
    for pid in std::mem::take(&mut world.released).into_iter().filter(|pid| ours.iter().any(|it| it.0 == *pid)) {
        kill(pid, Signal::KILL);
    }
    settles(|| match world.sandbox.others() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left running: {left:#?}")),
    })?;
    world.link = None;
    let supervisor = find_supervisor(world).ok_or("the supervisor has ended")?;
    let children = || {
        let all = procfs::process::all_processes().unwrap().filter_map(Result::ok).filter_map(|it| it.stat().ok());
        all.filter(|it| it.ppid == supervisor as i32 && it.state == 'Z').count()
    };
    settles(|| match children() {
        0 => Ok(()),
        count => Err(format!("the supervisor has not reaped {count} children")),
    })?;
    check_descriptors(world, supervisor)
}

/// Errors: more of the supervisor's descriptors are open than there were. Those to the hosts of ended sessions do not count.
fn check_descriptors(world: &mut World, supervisor: u32) -> Result<(), String> {
    let open = || {
        let hosts = world.sandbox.session_hosts().len();
        let open = Process::new(supervisor as i32).and_then(|it| it.fd_count()).unwrap_or(usize::MAX);
        open.saturating_sub(DESCRIPTORS_PER_HOST * hosts)
    };
    let Some(former) = world.quiet_descriptors else {
        world.quiet_descriptors = Some(open());
        return Ok(());
    };
    settles(|| {
        if open() <= former + MORE_DESCRIPTORS {
            return Ok(());
        }
        let all = std::fs::read_dir(format!("/proc/{supervisor}/fd")).into_iter().flatten().flatten();
        let all: Vec<_> = all.filter_map(|it| std::fs::read_link(it.path()).ok()).collect();
        let hosts = world.sandbox.session_hosts();
        Err(format!("the supervisor has {} descriptors, not {former}; hosts {hosts:?}; {all:?}", open()))
    })
}
