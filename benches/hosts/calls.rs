//! A step over MCP, with its report, beside the adapter alone.

use std::time::Duration;

use crate::client::median;
use crate::raw::Raw;
use crate::sides::{Side, Us, compile_java, program_sandbox_of};
use crate::{Builds, runtime, tell};

/// How many steps for each run.
const CALLS: usize = 10;

pub fn measure(builds: &Builds, runs: usize) {
    let (runtime, sandboxes) = (runtime(), builds.all().into_iter().map(|build| program_sandbox_of(build)));
    let sandboxes: Vec<_> = sandboxes.inspect(compile_java).collect();
    for (language, program) in [("Node", "app.js"), ("Python", "app.py"), ("Java", "App.java")] {
        let mut sides: Vec<Us> = sandboxes.iter().map(Us::start).collect();
        sides.iter_mut().for_each(|side| side.stop_in(program));
        let mut raw = runtime.block_on(async {
            match program {
                "app.py" => Raw::stopped(&sandboxes[0]).await,
                _ => Raw::stopped_in(&sandboxes[0], program).await,
            }
        });
        let (mut took, mut bare) = (vec![vec![]; sides.len()], vec![]);
        for _ in 0..runs * CALLS {
            for (side, took) in sides.iter_mut().zip(&mut took) {
                took.push(side.calls()[2]);
            }
            bare.push(runtime.block_on(raw.calls()).1);
        }
        runtime.block_on(raw.disconnect());
        sides.iter_mut().for_each(|side| side.end());
        let (mut took, bare) = (took.into_iter().map(median), median(bare));
        let new = took.next().unwrap();
        let base = took.next().map(|base| format!(", base {base:.2?}")).unwrap_or_default();
        let more = new.saturating_sub(bare);
        let beside = format!("{new:.2?}, raw {bare:.2?}{base}");
        tell(&format!("{language}: step → stopped over MCP, more than raw"), more, Duration::from_micros(600), &beside);
    }
}
