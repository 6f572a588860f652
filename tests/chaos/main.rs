//! Random operations and random faults against the real binary, and what must hold whatever happens.
//!
//! ```text
//!  seed ──▶ script ──▶ step: an operation, and perhaps a fault in the middle of it
//!                        │ plan, by what there is
//!                        ▼
//!            request ── fault ── answer ──▶ beliefs ──▶ invariants
//! ```
//! A step is drawn from the seed alone; only what it is about depends on the sessions that there are. Everything is real:
//! processes, adapters, debuggees, a full disk, a clock that jumps. `cargo xtask chaos` plays for longer.

mod answers;
mod beliefs;
mod calls;
mod canaries;
mod clock;
mod dice;
mod disk;
mod faults;
mod file_watch;
mod invariants;
mod kills;
mod operations;
mod programs;
mod report;
mod script;
#[path = "../support/mod.rs"]
mod support;
mod warm_up;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use answers::learn;
use calls::Answer;
use faults::{Injected, pause};
use operations::{open_beliefs, plan};
use script::{Fault, Operation, Script, Step};
use world::{InFlight, World};

/// How many operations are played, and from which seed.
const OPERATIONS: (&str, usize) = ("DEVTETHER_CHAOS_OPERATIONS", 500);
const SEED: (&str, u64) = ("DEVTETHER_CHAOS_SEED", 42);
/// Where the counts are written, as JSON.
const REPORT: &str = "DEVTETHER_CHAOS_REPORT";
/// Set, it has each operation printed as it ends.
const TELL: &str = "DEVTETHER_CHAOS_TELL";
/// Between two thorough checks, in operations.
const THOROUGH: usize = 25;
/// Between two quiet moments, in operations.
const QUIET: usize = 250;
/// Each fault happens in so many operations.
const ALL_FAULTS: usize = 500;
/// Processes that wait for stops at once.
const MAX_WAITS: usize = 2;

fn number<T: std::str::FromStr>((name, default): (&str, T)) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Plays one step. Errors: what does not hold.
fn play(world: &mut World, step: &Step, owed: &mut Vec<Fault>) -> Result<(), String> {
    world.report.operations += 1;
    let began = Instant::now();
    world.lift_until(step.index);
    let fault = step.fault.or_else(|| owed.pop());
    world.report.tell(format!("{:5} {:?}", step.index, step.operation));
    if let Some(fault) = fault {
        faults::prepare(world, fault, step)?;
    }
    let planned = plan(world, step);
    world.report.add(&format!(" {:?} {:?} {:?}", planned.operation, planned.session, fault));
    open_beliefs(world, &planned);
    let was_excused = world.is_excused();
    let in_flight = world.begin(&planned.call)?;
    let injected = match fault {
        Some(fault) => {
            pause(step.moment);
            let injected = faults::inject(world, fault, step);
            match injected.happened {
                true => *world.report.injected.entry(fault).or_default() += 1,
                false => owed.push(fault),
            }
            injected
        }
        None => Injected::default(),
    };
    let in_flight = match in_flight {
        InFlight::Command(wait) if planned.operation == Operation::WaitBeside => {
            world.waits.push(wait);
            if world.waits.len() > MAX_WAITS {
                world.waits.remove(0).finish()?;
            }
            InFlight::Refused(Answer::Done(serde_json::Value::Null))
        }
        other => other,
    };
    let answer = world.finish(in_flight)?;
    world.report.add(&format!(" → {} ms {}", began.elapsed().as_millis(), answer.summary()));
    settle(world, &planned, &answer, (was_excused, &injected))?;
    invariants::check_quickly(world, step.choice)?;
    match fault {
        // It is lifted at once: whatever is requested of a silent host takes long.
        Some(Fault::SilentHost) => invariants::check_thoroughly(world),
        _ => Ok(()),
    }
}

/// Takes over what the answer and the fault say.
fn settle(
    world: &mut World,
    planned: &operations::Planned,
    answer: &Answer,
    (was_excused, injected): (bool, &Injected),
) -> Result<(), String> {
    let ends_supervisor = injected.ends_supervisor || planned.operation == Operation::Upgrade;
    if matches!(answer, Answer::Gone) && !ends_supervisor {
        return Err("the supervisor has closed the connection, and nobody has ended it".to_owned());
    }
    world.report.failed += usize::from(matches!(answer, Answer::Failed(..)));
    if ends_supervisor {
        world.link = None;
        world.excuse_unrecorded_window();
    }
    if let Some(session) = injected.harmed.as_deref().and_then(|id| world.session(id)) {
        session.harm();
    }
    let is_disturbed = was_excused || world.is_excused() || injected.ends_supervisor;
    learn(world, planned, answer, is_disturbed)?;
    // The answer may be from before.
    if let Some(session) = injected.harmed.as_deref().and_then(|id| world.session(id)) {
        session.harm();
        let is_attached = session.is_attached;
        if let Some(listening) = world.listening.as_mut().filter(|_| is_attached) {
            listening.is_spoiled = true;
        }
    }
    if injected.harms_window {
        world.window = None;
    }
    Ok(())
}

fn play_all(world: &mut World, seed: u64, operations: usize) -> Result<(), String> {
    warm_up::start(world)?;
    let (mut owed, is_told) = (Vec::new(), std::env::var_os(TELL).is_some());
    for step in Script::new(seed).take(operations) {
        play(world, &step, &mut owed)?;
        if is_told {
            eprintln!("@{}", world.report.last());
        }
        if step.index % THOROUGH == 0 {
            world.report.tell("      a thorough check".to_owned());
            invariants::check_thoroughly(world)?;
        }
        if step.index % QUIET == 0 {
            world.report.tell("      a quiet moment".to_owned());
            invariants::check_quiet(world)?;
        }
    }
    world.report.tell("      the end".to_owned());
    invariants::check_quiet(world)?;
    let never: Vec<Fault> = world.report.never_injected();
    let never: Vec<&Fault> = never.iter().filter(|it| world.can_inject(**it)).collect();
    match operations >= ALL_FAULTS && !never.is_empty() {
        true => Err(format!("never injected: {never:?}")),
        false => Ok(()),
    }
}

#[test]
fn nothing_is_lost_whatever_happens() {
    let (operations, seed) = (number(OPERATIONS), number(SEED));
    let began = Instant::now();
    let mut world = World::new();
    let played = catch_unwind(AssertUnwindSafe(|| play_all(&mut world, seed, operations)));
    let readings = world.watch.as_mut().map_or(0, |it| it.end());
    let report = world.report.to_json(seed, began.elapsed(), readings);
    println!("{report:#}");
    if let Some(file) = std::env::var_os(REPORT) {
        std::fs::write(file, report.to_string()).unwrap();
    }
    let broken = match played {
        Ok(Ok(())) => return,
        Ok(Err(broken)) => broken,
        Err(panic) => panic.downcast::<String>().map_or_else(|_| "it panicked".to_owned(), |text| *text),
    };
    let at = world.report.operations;
    panic!(
        "{broken}\nseed {seed}, operation {at}; the last operations:\n{}\
         again: {}={seed} {}={at} cargo test --workspace --test chaos",
        world.report.story(),
        SEED.0,
        OPERATIONS.0
    );
}
