//! What the answers say of the sessions and the window.

use serde_json::Value;

use crate::beliefs::{Belief, Session};
use crate::calls::Answer;
use crate::operations::Planned;
use crate::script::Operation;
use crate::support::is_alive;
use crate::world::World;

/// No such session.
const NOT_FOUND: [i64; 2] = [-32001, 3];

/// Takes over what the answer says. `is_disturbed`: a fault may have made it fail. Errors: it cannot be true.
pub fn learn(world: &mut World, planned: &Planned, answer: &Answer, is_disturbed: bool) -> Result<(), String> {
    let value = match answer {
        Answer::Done(value) => value,
        Answer::Failed(message, code) => return learn_failure(world, planned, (message, *code), is_disturbed),
        Answer::Gone => return Ok(()),
    };
    match planned.operation {
        Operation::Launch | Operation::Attach | Operation::Restart => {
            let mut is_attached = planned.operation == Operation::Attach;
            if planned.operation == Operation::Restart {
                let former = world.sessions.iter().find(|it| Some(&it.id) == planned.session.as_ref());
                is_attached = former.is_some_and(|it| it.is_attached);
                world.sessions.retain(|it| Some(&it.id) != planned.session.as_ref());
            }
            learn_start(world, is_attached, value)
        }
        Operation::List => learn_list(world, value),
        Operation::WindowStatus | Operation::WindowStart | Operation::WindowRestart => learn_window(world, value),
        Operation::Evaluate => planned.session.as_deref().map_or(Ok(()), |id| match world.session(id) {
            Some(session) => {
                let was_known = session.stop().is_some_and(|it| it.turns.is_some());
                session.learn_turns(value)?;
                world.report.stops_checked += usize::from(was_known);
                Ok(())
            }
            None => Ok(()),
        }),
        _ if value["state"].is_string() && planned.session.is_some() => {
            learn_state(world, planned.session.as_deref().expect("it was tested"), value)
        }
        _ => Ok(()),
    }
}

fn says_missing(message: &str, code: i64) -> bool {
    NOT_FOUND.contains(&code) && message.contains("no debug session")
}

/// Whether an answer says that there is no such session.
pub fn is_missing(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed(message, code) if says_missing(message, *code))
}

/// Whether an operation succeeds at every stop.
fn works_at_a_stop(operation: Operation) -> bool {
    use Operation::*;
    matches!(operation, Status | Evaluate | Stack | Output | Events | Wait | CommandStatus)
}

fn learn_failure(
    world: &mut World,
    planned: &Planned,
    (message, code): (&str, i64),
    is_disturbed: bool,
) -> Result<(), String> {
    let operation = planned.operation;
    let Some(session) = planned.session.as_deref().and_then(|id| world.session(id)) else { return Ok(()) };
    let is_missing = says_missing(message, code);
    match session.stop() {
        Some(_) if is_missing => return Err(format!("{} is lost: {message}", session.id)),
        // In a frame of the runtime, the program's name is not known.
        Some(_) if operation == Operation::Evaluate && message.contains("is not defined") => {}
        Some(stop) if works_at_a_stop(operation) && !is_disturbed => {
            return Err(format!("{operation:?} has failed at a stop of {}, {stop:?}: {message}", session.id));
        }
        _ => {}
    }
    if is_missing && session.is_harmed {
        world.sessions.retain(|it| Some(&it.id) != planned.session.as_ref());
    }
    Ok(())
}

fn learn_start(world: &mut World, is_attached: bool, value: &Value) -> Result<(), String> {
    let Some(id) = value["sessionId"].as_str() else { return Err(format!("no session has begun: {value}")) };
    let is_over = is_attached && value["state"] == "TERMINATED";
    if let Some(listening) = world.listening.as_mut().filter(|it| is_over && is_alive(it.program.0.id())) {
        // Rarely, debugpy ends a session as it begins.
        listening.is_spoiled = true;
        world.report.ended_attaches += 1;
        return Ok(());
    }
    adopt(world, id, value["adapter"].as_str().unwrap_or_default(), is_attached, false);
    learn_state(world, id, value)
}

/// Adds a session that is not known yet.
fn adopt(world: &mut World, id: &str, adapter: &str, is_attached: bool, is_harmed: bool) {
    if world.sessions.iter().any(|it| it.id == id) {
        return;
    }
    let Some(program) = world.programs.iter().copied().find(|it| it.adapter == adapter) else { return };
    world.report.sessions += 1;
    world.sessions.push(Session {
        id: id.to_owned(),
        program,
        belief: Belief::Open,
        is_harmed,
        is_attached,
        pid: None,
    });
}

/// What a status, or the result of a resume, says of a session.
pub fn learn_state(world: &mut World, id: &str, value: &Value) -> Result<(), String> {
    let Some(session) = world.sessions.iter_mut().find(|it| it.id == id) else { return Ok(()) };
    let was_stopped = session.stop().is_some();
    let has_ended = session.learn(value)?;
    world.report.stops_checked += usize::from(was_stopped);
    if has_ended {
        world.sessions.retain(|it| it.id != id);
    }
    Ok(())
}

/// What the list of all sessions says: one that is missing is lost.
pub fn learn_list(world: &mut World, value: &Value) -> Result<(), String> {
    let single = std::slice::from_ref(value);
    let all = value["sessions"].as_array().map_or(single, Vec::as_slice);
    let all: Vec<&Value> = all.iter().filter(|it| it["sessionId"].is_string()).collect();
    for entry in &all {
        let id = entry["sessionId"].as_str().unwrap_or_default();
        if !matches!(entry["state"].as_str(), Some("TERMINATED" | "DISCONNECTED")) {
            // Its launch was not answered. An attached one has no process of its own.
            let is_attached = entry["name"].as_str().is_some_and(|name| !name.starts_with("turns"));
            adopt(world, id, entry["adapter"].as_str().unwrap_or_default(), is_attached, true);
        }
        learn_state(world, id, entry)?;
    }
    // A single active session is shown alone, without those that have ended.
    let is_listed = |id: &str| all.iter().any(|it| it["sessionId"] == id);
    if let Some(lost) = world.sessions.iter().find(|it| it.stop().is_some() && !is_listed(&it.id)) {
        return Err(format!("{} is not listed any more, {:?}: {value}", lost.id, lost.belief));
    }
    world.sessions.retain(|it| is_listed(&it.id) || !it.is_harmed);
    Ok(())
}

fn learn_window(world: &mut World, value: &Value) -> Result<(), String> {
    let seen = value["pid"].as_u64().map(|pid| pid as u32).filter(|_| value["state"] == "ready");
    match world.window {
        Some(known) if seen != Some(known) && value["state"] != "unresponsive" => {
            Err(format!("the window was process {known}: {value}"))
        }
        Some(_) => Ok(()),
        None => {
            world.window = seen;
            Ok(())
        }
    }
}
