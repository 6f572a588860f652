//! Launch → breakpoint → locals → gone, beside the runtime alone.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::median;
use crate::raw::Raw;
use crate::sides::{Side, Us, compile_java, program_sandbox_of};
use crate::{Builds, runtime, tell_ratio};

pub fn measure(builds: &Builds, runs: usize) {
    let (runtime, sandboxes) = (runtime(), builds.all().into_iter().map(|build| program_sandbox_of(build)));
    let sandboxes: Vec<_> = sandboxes.inspect(compile_java).collect();
    let mut sides: Vec<Us> = sandboxes.iter().map(Us::start).collect();
    let node = || run(Command::new("node").args(["-e", "0"]));
    let java = || run(Command::new("java").args(["-cp", ".", "App", "once"]).current_dir(&sandboxes[0].workspace));
    let python = || runtime.block_on(Raw::session(&sandboxes[0]));
    let alone: [(&str, &str, f64, &dyn Fn() -> Duration); 3] = [
        ("Node: a session, to `node -e 0`", "app.js", 1.35, &node),
        ("Java: a session, to `java App`", "App.java", 1.25, &java),
        ("Python: a session, to a raw harness", "app.py", 1.1, &python),
    ];
    for (what, program, goal, alone) in alone {
        let (mut took, mut bare) = (vec![vec![]; sides.len()], vec![]);
        // The first of each is for warmth.
        for _ in 0..=runs {
            for (side, took) in sides.iter_mut().zip(&mut took) {
                took.push(side.session(program));
            }
            bare.push(alone());
        }
        let settled = |mut took: Vec<Duration>| median(took.split_off(1));
        let (mut took, bare) = (took.into_iter().map(settled), settled(bare));
        let new = took.next().unwrap();
        let base = took.next().map(|base| format!(", base {base:.2?}")).unwrap_or_default();
        tell_ratio(what, new, bare, goal, &base);
    }
}

fn run(command: &mut Command) -> Duration {
    let begun = Instant::now();
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{command:?}");
    begun.elapsed()
}
