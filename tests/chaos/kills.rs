//! Processes that are killed, or stopped for a moment.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::calls::RunningCommand;
use crate::faults::{Injected, choose, find_program, find_supervisor, pause};
use crate::script::{Fault, Step};
use crate::support::scenario_sandbox::Running;
use crate::support::{is_alive, kill, wait_for_end};
use crate::world::{Lasting, World};

pub fn end(pid: Option<u32>, harmed: Option<String>) -> Injected {
    let Some(pid) = pid.filter(|pid| is_alive(*pid)) else { return Injected::nothing() };
    kill(pid, Signal::KILL);
    wait_for_end(pid);
    Injected { happened: true, harmed, ..Injected::default() }
}

pub fn slow(pid: Option<u32>, step: &Step) -> Injected {
    let Some(pid) = pid.filter(|pid| is_alive(*pid)) else { return Injected::nothing() };
    kill(pid, Signal::STOP);
    pause(step.hold);
    kill(pid, Signal::CONT);
    Injected::harmless()
}

/// Has a host answer nothing, and ends the supervisor: the next one finds it so.
pub fn silence_host(world: &mut World, step: &Step) -> Injected {
    let host = choose(world, step, |_| true).and_then(|id| world.host(&id));
    let Some(host) = host.filter(|_| !world.is_lasting(Fault::SilentHost)) else { return Injected::nothing() };
    kill(host, Signal::STOP);
    let until = step.index;
    let lift = move |_: &mut World| kill(host, Signal::CONT);
    world.lasting.push(Lasting { fault: Fault::SilentHost, until, lift: Box::new(lift) });
    kill_supervisor(world)
}

pub fn kill_command(world: &World, step: &Step) -> Injected {
    let words = ["debug", "wait", "20", "--json"].map(str::to_owned);
    let command = RunningCommand::start(&world.sandbox, &words, Duration::from_secs(20));
    pause(step.hold / 2);
    let happened = is_alive(command.pid);
    command.kill();
    Injected::of(happened)
}

/// An MCP server that is killed while a call of a tool is under way.
pub fn kill_mcp(world: &World, step: &Step) -> Injected {
    let mut command = world.sandbox.command(["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Running(command.spawn().unwrap());
    let client =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let call = json!({"name": "wait_for_stop", "arguments": {"timeout": 20}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    ];
    let mut stdin = server.0.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(stdin, "{line}").unwrap());
    pause(step.hold / 2);
    Injected::of(server.0.try_wait().unwrap().is_none())
}

pub fn kill_supervisor(world: &mut World) -> Injected {
    Injected { ends_supervisor: true, ..end(find_supervisor(world), None) }
}

pub fn kill_program(world: &mut World, step: &Step) -> Injected {
    let attached = world.sessions.iter().find(|it| it.is_attached).map(|it| it.id.clone());
    if let Some(id) = attached.filter(|_| step.choice.is_multiple_of(2))
        && let Some(listening) = world.listening.take()
    {
        return end(Some(listening.program.0.id()), Some(id));
    }
    let Some((id, pid)) = find_program(world, step) else { return Injected::nothing() };
    end(Some(pid), Some(id))
}

/// Ends the supervisor, and has the stored sessions name a process that is not ours.
pub fn recycle_record(world: &mut World, step: &Step) -> Injected {
    let file = world.state().join(".devtools/sessions.json");
    let ended = kill_supervisor(world);
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok();
    let Some(mut stored) = read().filter(|_| ended.happened && !world.is_excused()) else { return ended.unhappened() };
    let Some(mut entry) = stored["sessions"].as_array().and_then(|all| all.last().cloned()) else {
        return ended.unhappened();
    };
    let other = world.canaries.pid(step.choice as usize);
    entry["id"] = json!(format!("d{}", 800_000 + step.index));
    entry["mark"] = json!(format!("{}-recycled", entry["mark"].as_str().unwrap_or_default()));
    entry["host"] = json!({"pid": other, "startTicks": 1 + step.choice % 1000, "socket": "/nonexistent"});
    stored["sessions"].as_array_mut().expect("it has an entry").push(entry);
    let beside = file.with_extension("chaos");
    std::fs::write(&beside, stored.to_string()).and_then(|()| std::fs::rename(&beside, &file)).unwrap();
    ended
}
