//! The faults: what each needs, how it is made to happen, and lifted.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use crate::answers::learn;
use crate::calls::{Answer, Call};
use crate::disk::Disk;
use crate::kills::{end, kill_command, kill_mcp, kill_program, kill_supervisor, recycle_record, silence_host, slow};
use crate::operations::{attach, launch, launch_program, open_beliefs};
use crate::script::{Fault, Step};
use crate::world::{Lasting, World};

/// The parts of a message with which a silent peer stops.
const HALVES: [&[u8]; 3] = [b"", b"Content-Len", b"Content-Length: 100\r\n\r\n{\"jsonrpc\": "];

/// What a fault has done.
#[derive(Debug, Default)]
pub struct Injected {
    /// Whether it has happened at all.
    pub happened: bool,
    /// The session that it may have ended.
    pub harmed: Option<String>,
    /// It may have ended the window.
    pub harms_window: bool,
    /// It has ended the supervisor.
    pub ends_supervisor: bool,
}

impl Injected {
    pub fn nothing() -> Injected {
        Injected::default()
    }

    pub fn harmless() -> Injected {
        Injected { happened: true, ..Injected::default() }
    }

    pub fn of(happened: bool) -> Injected {
        Injected { happened, ..Injected::default() }
    }
}

/// Waits for that long: nothing sends.
pub fn pause(time: Duration) {
    let (_sender, never) = channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Starts what the fault needs. Errors: that cannot be started, and nothing excuses it.
pub fn prepare(world: &mut World, fault: Fault, step: &Step) -> Result<(), String> {
    if world.is_excused() {
        return Ok(());
    }
    let planned = match fault {
        Fault::KillHost | Fault::SlowHost | Fault::SilentHost | Fault::NoDescriptorsInHost | Fault::RecycledRecord
            if world.sessions.is_empty() =>
        {
            launch(world, step)
        }
        Fault::SilentSupervisor if world.sessions.is_empty() => launch(world, step),
        Fault::KillProgram | Fault::SlowProgram if find_program(world, step).is_none() => {
            launch_program(world.programs[0], step)
        }
        Fault::KillAdapter | Fault::SlowAdapter if find_adapter(world, step).is_none() => {
            match world.programs.iter().find(|it| it.adapter_mark.is_some()) {
                Some(program) => launch_program(program, step),
                None => return Ok(()),
            }
        }
        Fault::CutConnection if !world.sessions.iter().any(|it| it.is_attached) => attach(world),
        Fault::KillWindow | Fault::TakenPort if world.window.is_none() => {
            let call = Call::Request("window/start", json!({}));
            crate::operations::Planned { operation: crate::script::Operation::WindowStart, call, session: None }
        }
        _ => return Ok(()),
    };
    open_beliefs(world, &planned);
    let in_flight = world.begin(&planned.call)?;
    let answer = world.finish(in_flight)?;
    world.report.add(&format!(" [prepared: {}]", answer.summary()));
    match &answer {
        Answer::Done(_) => learn(world, &planned, &answer, false),
        other => Err(format!("cannot prepare {fault:?}: {}", other.summary())),
    }
}

/// The id of one of the sessions for which this holds.
pub fn choose(world: &World, step: &Step, is_meant: impl Fn(&crate::beliefs::Session) -> bool) -> Option<String> {
    let all: Vec<&str> = world.sessions.iter().filter(|it| is_meant(it)).map(|it| it.id.as_str()).collect();
    (!all.is_empty()).then(|| all[step.choice as usize % all.len()].to_owned())
}

/// Makes it happen.
pub fn inject(world: &mut World, fault: Fault, step: &Step) -> Injected {
    match fault {
        Fault::KillCommand => kill_command(world, step),
        Fault::KillMcp => kill_mcp(world, step),
        Fault::KillSupervisor => kill_supervisor(world),
        Fault::KillHost => {
            let Some(id) = choose(world, step, |_| true) else { return Injected::nothing() };
            let host = world.host(&id);
            end(host, Some(id))
        }
        Fault::KillAdapter => {
            let Some((id, pid)) = find_adapter(world, step) else { return Injected::nothing() };
            if world.session(&id).is_some_and(|it| it.is_attached) {
                // It cannot be attached to again.
                world.listening = None;
            }
            end(Some(pid), Some(id))
        }
        Fault::KillProgram => kill_program(world, step),
        Fault::KillWindow => {
            let window = world.window.take();
            Injected { harms_window: true, ..end(window, None) }
        }
        Fault::SlowSupervisor => slow(find_supervisor(world), step),
        Fault::SlowHost => {
            let host = choose(world, step, |_| true).and_then(|id| world.host(&id));
            slow(host, step)
        }
        Fault::SilentHost => silence_host(world, step),
        Fault::SlowAdapter => {
            let adapter = find_adapter(world, step).map(|(_, pid)| pid);
            slow(adapter, step)
        }
        Fault::SlowProgram => {
            let program = find_program(world, step).map(|(_, pid)| pid);
            slow(program, step)
        }
        Fault::SilentClient => connect_silently(world, fault, step),
        Fault::SilentSupervisor => connect_silently(world, fault, step),
        Fault::CutConnection => cut(world, step),
        Fault::FullDisk | Fault::ReadOnlyState | Fault::ReadOnlyWorkspace if !world.disk.is_mounted => {
            Injected::nothing()
        }
        Fault::FullDisk if world.is_lasting(fault) => Injected::nothing(),
        Fault::FullDisk => {
            let filling = world.disk.fill();
            last(world, fault, step, move |_| std::fs::remove_file(filling).unwrap())
        }
        Fault::ReadOnlyState => protect(world, fault, step, world.sandbox.home().join("state")),
        Fault::ReadOnlyWorkspace => protect(world, fault, step, world.sandbox.workspace.clone()),
        Fault::TakenPort => take_port(world, step),
        Fault::NoDescriptorsInSupervisor => limit_descriptors(world, fault, step, find_supervisor(world)),
        Fault::NoDescriptorsInHost => {
            let host = choose(world, step, |_| true).and_then(|id| world.host(&id));
            limit_descriptors(world, fault, step, host)
        }
        Fault::ClockForward | Fault::ClockBack => {
            let hours = 1 + (step.choice % 30) as i64;
            let sign = if fault == Fault::ClockForward { 1 } else { -1 };
            let is_loaded = find_supervisor(world).is_some_and(|pid| world.clock.is_loaded(pid));
            world.clock.set(sign * hours * 3600);
            Injected { happened: is_loaded, ..last(world, fault, step, |world| world.clock.set(0)) }
        }
        Fault::RecycledRecord => recycle_record(world, step),
    }
}

/// Has it last for some operations, unless it lasts already.
fn last(world: &mut World, fault: Fault, step: &Step, lift: impl FnOnce(&mut World) + 'static) -> Injected {
    let until = step.index + step.lasts;
    world.lasting.push(Lasting { fault, until, lift: Box::new(lift) });
    Injected::harmless()
}

pub fn find_supervisor(world: &World) -> Option<u32> {
    world.sandbox.processes().into_iter().find(|(_, line)| line.contains(" supervise ")).map(|(pid, _)| pid)
}

fn is_ours(world: &World, pid: u32) -> bool {
    world.sandbox.processes().iter().any(|(it, _)| *it == pid)
}

/// One of the sessions for which there is such a process.
fn find(
    world: &World,
    step: &Step,
    process: impl Fn(&crate::beliefs::Session) -> Option<u32>,
) -> Option<(String, u32)> {
    let id = choose(world, step, |it| process(it).is_some())?;
    let session = world.sessions.iter().find(|it| it.id == id)?;
    Some((id, process(session)?))
}

fn find_adapter(world: &World, step: &Step) -> Option<(String, u32)> {
    find(world, step, |it| world.adapter(it))
}

/// A launched program. To the debugger of a native one, a signal is a stop.
pub fn find_program(world: &World, step: &Step) -> Option<(String, u32)> {
    let is_meant = |it: &crate::beliefs::Session| !it.is_attached && it.program.adapter != "lldb-dap";
    find(world, step, |it| it.pid.map(|pid| pid as u32).filter(|pid| is_meant(it) && is_ours(world, *pid)))
}

fn connect_silently(world: &mut World, fault: Fault, step: &Step) -> Injected {
    let sockets: Vec<_> = match fault {
        Fault::SilentClient => vec![world.sandbox.socket()],
        _ => {
            let beside = std::fs::read_dir(world.sandbox.home().join("run/devtether")).unwrap();
            let all = beside.filter_map(Result::ok).map(|it| it.path());
            all.filter(|path| path.extension().is_some_and(|it| it != "sock" && it != "panic")).collect()
        }
    };
    let mut streams = Vec::new();
    for socket in sockets {
        let Ok(mut stream) = UnixStream::connect(socket) else { continue };
        if stream.write_all(HALVES[step.choice as usize % HALVES.len()]).is_ok() {
            streams.push(stream);
        }
    }
    let happened = !streams.is_empty();
    Injected { happened, ..last(world, fault, step, move |_| drop(streams)) }
}

fn cut(world: &mut World, step: &Step) -> Injected {
    let Some(id) = choose(world, step, |it| it.is_attached) else { return Injected::nothing() };
    let Some(listening) = world.listening.as_mut() else { return Injected::nothing() };
    if world.lasting.iter().any(|it| it.fault == Fault::CutConnection) {
        return Injected::nothing();
    }
    listening.tunnel.cut();
    let port = listening.tunnel.port;
    let lift = move |world: &mut World| {
        if let Some(listening) = world.listening.as_mut().filter(|it| it.tunnel.port == port) {
            listening.tunnel.restore();
        }
    };
    Injected { harmed: Some(id), ..last(world, Fault::CutConnection, step, lift) }
}

fn protect(world: &mut World, fault: Fault, step: &Step, folder: std::path::PathBuf) -> Injected {
    if world.is_lasting(fault) || !Disk::protect(&folder) {
        return Injected::nothing();
    }
    last(world, fault, step, move |_| Disk::unprotect(&folder))
}

fn take_port(world: &mut World, step: &Step) -> Injected {
    let Some(session) = world.sandbox.session() else { return Injected::nothing() };
    let Some(window) = world.window.take() else { return Injected::nothing() };
    let ended = end(Some(window), None);
    let ports = ["cdpPort", "inspectorPort"].map(|name| session[name].as_u64().unwrap_or_default() as u16);
    let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok();
    let listeners: Vec<TcpListener> = ports.into_iter().filter(|port| *port > 0).filter_map(bind).collect();
    let happened = ended.happened && !listeners.is_empty();
    let lasting = last(world, Fault::TakenPort, step, move |_| drop(listeners));
    Injected { happened, harms_window: true, ..lasting }
}

fn limit_descriptors(world: &mut World, fault: Fault, step: &Step, pid: Option<u32>) -> Injected {
    let Some(pid) = pid.filter(|_| !world.is_lasting(fault)) else { return Injected::nothing() };
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Injected::nothing() };
    let highest = open.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<u64>().ok()).max().unwrap_or(0);
    let process = Pid::from_raw(pid as i32);
    let set = move |limit: Rlimit| prlimit(process, Resource::Nofile, limit);
    let Some(maximum) = most_descriptors(pid) else { return Injected::nothing() };
    let Ok(former) = set(Rlimit { current: Some(highest + 1), maximum }) else { return Injected::nothing() };
    last(world, fault, step, move |_| {
        let _ = set(former);
    })
}

/// The hard limit of a process, which is not to be changed; within: none.
fn most_descriptors(pid: u32) -> Option<Option<u64>> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    Some(line.split_whitespace().nth(1)?.parse().ok())
}

impl Injected {
    pub fn unhappened(self) -> Injected {
        Injected { happened: false, ..self }
    }
}
