//! The operations: how each is requested.

use serde_json::{Value, json};

use crate::beliefs::{Belief, Session};
use crate::calls::{Call, given, no_params};
use crate::programs::{Listening, Program};
use crate::script::{Operation, Step};
use crate::world::World;

/// More sessions are not started.
pub const MAX_SESSIONS: usize = 4;
/// How long a request waits for a stop that comes at once, in seconds.
const WAIT: f64 = 0.4;
/// And how long for the first stop.
const LAUNCH_WAIT: f64 = 10.0;

/// A step as it is carried out now.
pub struct Planned {
    pub operation: Operation,
    pub call: Call,
    /// The session that it is about.
    pub session: Option<String>,
}

/// What the operation of a step is about, as things are.
pub fn plan(world: &mut World, step: &Step) -> Planned {
    let count = world.sessions.len();
    let subject = (count > 0).then(|| step.subject % count);
    let operation = match (step.operation, subject) {
        (Operation::Launch, Some(_)) if count >= MAX_SESSIONS => Operation::ContinueAndWait,
        (Operation::Attach, _) if count >= MAX_SESSIONS || !can_attach(world) => Operation::Status,
        (other, _) => other,
    };
    match subject {
        None if needs_session(operation) => launch(world, step),
        subject => {
            let session = subject.filter(|_| needs_session(operation)).map(|at| &world.sessions[at]);
            match operation {
                Operation::Launch => launch(world, step),
                Operation::Attach => attach(world),
                _ => {
                    let call = request(world, operation, session, step);
                    Planned { operation, call, session: session.map(|it| it.id.clone()) }
                }
            }
        }
    }
}

fn can_attach(world: &World) -> bool {
    world.programs.iter().any(|it| it.adapter == "debugpy") && !world.sessions.iter().any(|it| it.is_attached)
}

fn needs_session(operation: Operation) -> bool {
    use Operation::*;
    !matches!(
        operation,
        Launch
            | Attach
            | List
            | WaitBeside
            | Break
            | Unbreak
            | Breakpoints
            | WindowStart
            | WindowStop
            | WindowRestart
            | WindowStatus
            | WindowEvaluate
            | WindowChanges
            | Touch
            | Upgrade
    )
}

/// Node's programs are started sooner than those of the others.
fn choose_program(world: &World, choice: u64) -> &'static Program {
    let first = world.programs[0];
    match choice % 5 {
        0..=2 => first,
        other => world.programs.get(other as usize - 2).copied().unwrap_or(first),
    }
}

/// Mostly one that is debugged: another answers only after the time that binding may take.
fn program_to_break(world: &World, step: &Step) -> &'static Program {
    match world.sessions.len() {
        count if count > 0 && !step.choice.is_multiple_of(16) => world.sessions[step.subject % count].program,
        _ => world.programs[step.subject % world.programs.len()],
    }
}

fn stop_at(program: &Program, choice: u64) -> String {
    let stops = program.stops();
    format!("{}:{}", program.source, stops[choice as usize % stops.len()])
}

pub fn launch(world: &World, step: &Step) -> Planned {
    launch_program(choose_program(world, step.choice), step)
}

pub fn launch_program(program: &Program, step: &Step) -> Planned {
    let params = json!({
        "program": program.file, "adapter": program.adapter, "breakpoints": [stop_at(program, step.choice >> 8)],
        "wait": LAUNCH_WAIT, "budget": 0,
    });
    Planned { operation: Operation::Launch, call: Call::Request("debug/launch", params), session: None }
}

pub fn attach(world: &mut World) -> Planned {
    // A debugpy that was left by force may end the next session at once.
    if world.listening.as_ref().is_some_and(|it| it.is_spoiled) {
        world.listening = None;
    }
    let sandbox = &world.sandbox;
    let listening = world.listening.get_or_insert_with(|| Listening::start(sandbox));
    let params = json!({"port": listening.tunnel.port, "language": "python", "wait": LAUNCH_WAIT, "budget": 0});
    Planned { operation: Operation::Attach, call: Call::Request("debug/attach", params), session: None }
}

fn request(world: &World, operation: Operation, session: Option<&Session>, step: &Step) -> Call {
    let id = session.map(|it| it.id.as_str());
    let program = session.map_or(world.programs[0], |it| it.program);
    let of = |params: Value| -> Value {
        let mut params = params;
        params["sessionId"] = json!(id);
        given(params)
    };
    let budget = if step.choice.is_multiple_of(16) { Value::Null } else { json!(0) };
    let waiting = |params: Value| {
        let mut params = of(params);
        params["wait"] = json!(WAIT);
        params["budget"] = budget.clone();
        given(params)
    };
    let (method, params) = match operation {
        Operation::Launch | Operation::Attach => unreachable!("they are planned before"),
        Operation::Restart => ("debug/launch", json!({"restart": id, "wait": 1, "budget": 0})),
        Operation::Stop => ("debug/stop", of(json!({}))),
        Operation::Detach => ("debug/stop", of(json!({"detach": true}))),
        Operation::Status => ("debug/status", of(json!({}))),
        Operation::List => ("debug/status", no_params()),
        Operation::Evaluate => ("debug/evaluate", of(json!({"expression": program.turns}))),
        Operation::Stack => ("debug/stack", of(json!({"levels": 3}))),
        Operation::Variables => ("debug/variables", of(json!({"count": 5}))),
        Operation::Source => ("debug/source", of(json!({}))),
        Operation::Output => ("debug/output", of(json!({}))),
        Operation::Events => ("debug/events", of(json!({}))),
        Operation::Continue => ("debug/continue", of(json!({}))),
        Operation::ContinueAndWait => ("debug/continue", waiting(json!({}))),
        Operation::StepOver => ("debug/step", waiting(json!({"kind": "over"}))),
        Operation::StepInto => ("debug/step", waiting(json!({"kind": "into"}))),
        Operation::StepOut => ("debug/step", waiting(json!({"kind": "out"}))),
        Operation::RunTo => ("debug/run_to", waiting(json!({"file": stop_at(program, step.choice)}))),
        Operation::Pause => ("debug/pause", waiting(json!({}))),
        Operation::Wait => ("debug/wait_for_stop", of(json!({"timeout": WAIT, "budget": budget}))),
        Operation::WaitBeside => return command(&["debug", "wait", "3"]),
        Operation::CommandStatus => return command(&["debug", "status", id.unwrap_or_default()]),
        Operation::CommandContinue => {
            return command(&["debug", "continue", "--session", id.unwrap_or_default(), "--wait", "0.4"]);
        }
        Operation::Break => {
            let program = program_to_break(world, step);
            ("breakpoint/set", json!({"file": stop_at(program, step.choice)}))
        }
        Operation::Unbreak if step.choice.is_multiple_of(4) => ("breakpoint/remove", json!({"all": true})),
        Operation::Unbreak => {
            let program = program_to_break(world, step);
            ("breakpoint/remove", json!({"file": stop_at(program, step.choice)}))
        }
        Operation::Breakpoints => ("breakpoint/list", no_params()),
        Operation::WindowStart => ("window/start", no_params()),
        Operation::WindowStop => ("window/stop", no_params()),
        Operation::WindowRestart => ("window/restart", no_params()),
        Operation::WindowStatus => ("window/status", no_params()),
        Operation::WindowEvaluate => ("window/evaluate", json!({"expression": "globalThis.answer"})),
        Operation::WindowChanges | Operation::Touch => ("window/changes", no_params()),
        Operation::Upgrade => return command(&["upgrade"]),
    };
    Call::Request(method, params)
}

fn command(words: &[&str]) -> Call {
    Call::Command(words.iter().copied().chain(["--json"]).map(str::to_owned).collect())
}

/// Forgets what the operation may change, before it is requested.
pub fn open_beliefs(world: &mut World, planned: &Planned) {
    use Operation::*;
    match planned.operation {
        Touch => {
            let text = format!("{}// {}\n", crate::support::NODE_SERVICE, world.report.operations);
            // It may be impossible now.
            let _ = std::fs::write(world.sandbox.path("server.js"), text);
            world.window = None;
        }
        WindowStop | WindowRestart => world.window = None,
        _ => {}
    }
    let operation = planned.operation;
    let Some(session) = planned.session.as_deref().and_then(|id| world.session(id)) else { return };
    let released = session.pid.filter(|_| operation == Detach && !session.is_attached);
    match operation {
        Restart | Stop | Detach => session.harm(),
        Continue | ContinueAndWait | CommandContinue | StepOver | StepInto | StepOut | RunTo => {
            session.belief = Belief::Open;
        }
        _ => {}
    }
    world.released.extend(released.map(|pid| pid as u32));
}
