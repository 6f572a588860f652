//! Saves of an Extension Development Host that is refreshed on save: no operation is called. The extension itself writes down which
//! version of it runs.

use std::time::{Duration, Instant};

use super::by_hand::HandWorkbench;
use super::client::median;
use super::project::{Project, SHOWN_VERSION};

/// Before each of so many saves there is one that does not build.
const BROKEN_EVERY: usize = 5;
/// How often the window is stopped and started by hand.
const BY_HAND: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);

/// Prints each save, how many were fresh, and the medians.
pub fn measure(runtime: &tokio::runtime::Runtime, count: usize) {
    let mut project = Project::extension_on_save();
    println!(
        "Extension Development Host, refreshed on save, built with {}\n  save  fresh  save → new code runs",
        project.builder
    );
    let (mut fresh, mut broken, mut times) = (0, 0, vec![]);
    for save in 1..=count {
        if save % BROKEN_EVERY == 0 {
            let failed = project.failed_builds();
            project.save_broken();
            assert!(wait(|| project.failed_builds() > failed), "the broken save {save} was not built");
            broken += 1;
        }
        let saved = Instant::now();
        project.save();
        let is_fresh = wait(|| project.running_version().as_ref() == Some(&project.version()));
        let took = saved.elapsed();
        fresh += usize::from(is_fresh);
        println!("  {save:>4}  {:<5}  {} ms", if is_fresh { "yes" } else { "NO" }, took.as_millis());
        times.push(took);
        // As people do: the next save comes after a look.
        std::thread::sleep(Duration::from_secs(4));
    }
    let by_hand = median((0..BY_HAND).map(|_| stop_and_start(runtime, &project)).collect());
    let (slowest, median) = (times.iter().max().copied().unwrap_or_default(), median(times));
    println!("  {fresh} of {count} fresh, {broken} of them after a save that did not build");
    println!("  save → new code runs: median {median:.2?} (goal ≤ 1.2 s), slowest {slowest:.2?}");
    let ratio = median.as_secs_f64() / by_hand.as_secs_f64();
    println!("  stop and start by hand: {by_hand:.2?}; on save / by hand {ratio:.2} (goal ≤ 0.20)");
}

fn wait(mut is_there: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !is_there() {
        if since.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

fn stop_and_start(runtime: &tokio::runtime::Runtime, project: &Project) -> Duration {
    let before = runtime.block_on(HandWorkbench::start(project.workspace()));
    runtime.block_on(before.wait_for(SHOWN_VERSION, &project.version()));
    let begun = Instant::now();
    drop(before);
    let workbench = runtime.block_on(HandWorkbench::start(project.workspace()));
    runtime.block_on(workbench.wait_for(SHOWN_VERSION, &project.version()));
    begun.elapsed()
}
