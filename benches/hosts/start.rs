//! A front end from its exec, beside a server with rmcp alone.

use crate::client::sandbox::Sandbox;
use crate::client::{bare, median};
use crate::{Builds, tell_ratio};

/// exec → initialize → tools/list → `window_status`, while a supervisor runs.
pub fn measure(builds: &Builds, runs: usize) {
    let sandboxes: Vec<Sandbox> = builds.all().into_iter().map(|build| Sandbox::of(build, &[])).collect();
    sandboxes.iter().for_each(|sandbox| drop(sandbox.json(&["status"])));
    let (mut took, mut alone) = (vec![vec![]; sandboxes.len()], vec![]);
    for _ in 0..runs {
        for (sandbox, took) in sandboxes.iter().zip(&mut took) {
            took.push(bare::time_to_status(sandbox.command(&["mcp"])));
        }
        alone.push(bare::time_to_status(bare::command()));
    }
    let (mut took, alone) = (took.into_iter().map(median), median(alone));
    let new = took.next().unwrap();
    let base = took.next().map(|base| format!(", base {base:.2?}")).unwrap_or_default();
    tell_ratio("exec → initialize → tools/list → status, to bare rmcp", new, alone, 2.0, &base);
}
