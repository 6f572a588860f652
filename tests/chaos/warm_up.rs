//! The start: each program and the window once, so that there is something to compare with, and to look like.

use serde_json::json;

use crate::canaries::Canaries;
use crate::file_watch::FileWatch;
use crate::invariants::check_quiet;
use crate::world::World;

/// Starts everything once, and ends it. Errors: something cannot be started.
pub fn start(world: &mut World) -> Result<(), String> {
    world.connect()?.map_or(Ok(()), |answer| Err(answer.summary()))?;
    for program in world.programs.clone() {
        let at = format!("{}:{}", program.source, program.stops()[0]);
        let launch = json!({"program": program.file, "adapter": program.adapter, "breakpoints": [at], "wait": 60});
        let launched = world.ask("debug/launch", launch)?;
        if launched["stopped"] != true {
            return Err(format!("{} does not stop: {launched}", program.file));
        }
    }
    world.ask("window/start", json!({}))?;
    add_canaries(world);
    let all = world.ask("debug/status", json!({}))?;
    for session in all["sessions"].as_array().into_iter().flatten() {
        world.ask("debug/stop", json!({"sessionId": session["sessionId"]}))?;
    }
    if all["sessionId"].is_string() {
        world.ask("debug/stop", json!({"sessionId": all["sessionId"]}))?;
    }
    world.watch = Some(FileWatch::start(&world.sandbox));
    check_quiet(world)
}

/// One for each kind of process that there is.
fn add_canaries(world: &mut World) {
    let processes = world.sandbox.processes();
    let lines = processes.iter().filter_map(|(pid, _)| procfs::process::Process::new(*pid as i32).ok()?.cmdline().ok());
    let lines: Vec<Vec<String>> = lines.filter(|it| !it.is_empty()).collect();
    let canaries: &mut Canaries = &mut world.canaries;
    for line in &lines {
        canaries.add(&world.sandbox, line);
    }
    assert!(canaries.count() > 0);
}
