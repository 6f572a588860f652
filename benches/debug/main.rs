//! Debug sessions beside mcp-debugger and beside raw adapters: the same programs, the same moments.
//!
//! `cargo bench --bench debug [-- RUNS]`. A plain harness, not criterion: each sample of ours is followed by one of theirs,
//! and what counts is the ratio of the medians. Both servers are asked over MCP on stdio, by the same client. Needs what
//! `cargo xtask tools` installs. What the codec costs, `cargo bench --bench dap` tells.

use std::time::Duration;

use client::median;
use client::sandbox::Sandbox;
use raw::Raw;
use sides::{Side, Them, Us, program_sandbox};

#[path = "../client/mod.rs"]
mod client;
mod own_adapters;
mod raw;
mod scripted;
mod sides;

/// How many small calls for each whole session.
const CALLS: usize = 10;

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(7);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sandbox = program_sandbox();
    let (mut us, mut them) = (Us::start(&sandbox), Them::start(&sandbox));

    let [ours, theirs] = sessions(&mut us, &mut them, "app.py", runs);
    let raw = median((0..runs).map(|_| runtime.block_on(Raw::session(&sandbox))).collect());
    tell("Python: launch → breakpoint → locals → gone", ours, "the peer's", theirs, 1.0 / 5.0);
    tell("Python: the same", ours, "a raw harness's", raw, 1.25);
    own_adapters::measure(&mut us, &mut them, &sandbox, runs);
    calls(&mut us, &mut them, &sandbox, &runtime, runs * CALLS);
    drop(them);
    runtime.block_on(scripted::measure(&sandbox));
}

/// Whole sessions, ours and theirs in turns; the first of each is for warmth.
fn sessions(us: &mut Us, them: &mut Them, program: &str, runs: usize) -> [Duration; 2] {
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..=runs {
        ours.push(us.session(program));
        theirs.push(them.session(program));
    }
    [median(ours.split_off(1)), median(theirs.split_off(1))]
}

/// Single calls in a program that is stopped.
fn calls(us: &mut Us, them: &mut Them, sandbox: &Sandbox, runtime: &tokio::runtime::Runtime, runs: usize) {
    us.stop_in("app.py");
    them.stop_in("app.py");
    let mut raw = runtime.block_on(Raw::stopped(sandbox));
    let mut looks = vec![];
    let (mut ours, mut theirs, mut bare) =
        ([vec![], vec![], vec![]], [vec![], vec![], vec![]], [vec![], vec![], vec![]]);
    for round in 0..runs {
        let (one, (other, look)) = (us.calls(), runtime.block_on(raw.calls()));
        looks.push(look);
        // The peer is slow, and its samples are alike.
        let third = (round % CALLS == 0).then(|| them.calls());
        for kind in 0..3 {
            ours[kind].push(one[kind]);
            bare[kind].push(other[kind]);
            theirs[kind].extend(third.map(|third| third[kind]));
        }
    }
    us.end();
    them.end();
    runtime.block_on(raw.end());
    let step = median(ours[2].clone());
    let names = ["evaluate over MCP", "locals over MCP", "step → stopped over MCP"];
    for (((name, ours), theirs), bare) in names.into_iter().zip(ours).zip(theirs).zip(bare) {
        let (ours, theirs, bare) = (median(ours), median(theirs), median(bare));
        tell(name, ours, "the peer's", theirs, 1.0 / 30.0);
        let over = ours.saturating_sub(bare);
        println!("  the raw adapter's {bare:.2?}: {over:.2?} more (goal ≤ 1 ms); p50 {ours:.2?} (goal < 20 ms)");
    }
    // An answer of ours shows the stack and the locals, too.
    let look = median(looks);
    let over = step.saturating_sub(look);
    println!("  the raw adapter's step with its stack and locals {look:.2?}: {over:.2?} more (goal ≤ 1 ms)");
}

fn tell(what: &str, ours: Duration, other: &str, theirs: Duration, goal: f64) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what}: {ours:.2?}, {other} {theirs:.2?}, ratio {ratio:.3} (goal ≤ {goal:.3})");
}
