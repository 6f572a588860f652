//! From an edit to the answer of the new code: by the refresh ladder, by a whole relaunch, and by hand.
//!
//! `cargo bench --bench fresh [-- RUNS] [extension-host|page|node]` prints medians (20 runs and all kinds of window unless
//! given), each kind of sample in turns with the others.
//! `cargo bench --bench fresh -- edits [COUNT]` makes that many edits (100 unless given) of an Extension Development Host, of
//! a page with a service worker and of a Node service, each followed at once by a question that only the new code answers
//! right, and prints the rung and the time of each.
//! `cargo bench --bench fresh -- saves [COUNT]` saves an extension that often (100 unless given), a fifth of them after a save that
//! does not build, and calls no operation. A plain harness, not criterion: what counts are whole processes.
//! Needs what `cargo xtask tools` installs. An extension is built with esbuild where that is installed, else copied.

use std::time::{Duration, Instant};

use by_hand::{HandBrowser, HandNode, HandWorkbench};
use client::median;
use project::{Answer, Project, Refresh};

mod by_hand;
#[path = "../client/mod.rs"]
mod client;
mod edits;
mod project;
mod saves;

/// A whole relaunch before it was made faster, in starts of the same window by hand: 5.9 s and 6.4 s. What a refresh and
/// a relaunch of today are measured against, since no run has both.
const OLD_RELAUNCH: f64 = 0.92;

/// Measures one kind of window, with that many runs.
type Measure = fn(&tokio::runtime::Runtime, usize);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = words.iter().find_map(|word| word.parse().ok());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if words.iter().any(|word| word == "edits") {
        return edits::measure(number.unwrap_or(100));
    }
    if words.iter().any(|word| word == "saves") {
        return saves::measure(&runtime, number.unwrap_or(100));
    }
    let runs = number.unwrap_or(20);
    let kinds: [(&str, Measure); 3] = [("extension-host", extension_host), ("page", page), ("node", node)];
    let is_chosen = |kind: &str| words.iter().any(|word| word == kind);
    let any_chosen = kinds.iter().any(|(kind, _)| is_chosen(kind));
    for (kind, measure) in kinds {
        if !any_chosen || is_chosen(kind) {
            measure(&runtime, runs);
        }
    }
}

/// The samples of one way, in the order of its runs.
#[derive(Default)]
struct Samples {
    from_save: Vec<Duration>,
    from_build: Vec<Duration>,
}

impl Samples {
    fn push(&mut self, answer: &Answer, by: &str) {
        assert_eq!(answer.by, by, "the way that is measured");
        self.from_save.push(answer.from_save);
        self.from_build.push(answer.from_build);
    }

    fn medians(self) -> (Duration, Duration) {
        (median(self.from_save), median(self.from_build))
    }
}

fn extension_host(runtime: &tokio::runtime::Runtime, runs: usize) {
    let (mut ladder, mut whole) = (Project::extension(Refresh::Auto), Project::extension(Refresh::Relaunch));
    println!("Extension Development Host, built with {}", ladder.builder);
    let (mut refreshed, mut relaunched, mut by_hand) = (Samples::default(), Samples::default(), vec![]);
    for run in 0..=runs {
        let answers = [&mut ladder, &mut whole].map(|project| {
            rest();
            project.edit_and_ask()
        });
        rest();
        let started = Instant::now();
        let workbench = runtime.block_on(HandWorkbench::start(whole.workspace()));
        runtime.block_on(workbench.wait_for(project::SHOWN_VERSION, &whole.version()));
        let took = started.elapsed();
        drop(workbench);
        // The first run fills the caches.
        if run > 0 {
            refreshed.push(&answers[0], "restartExtensionHost");
            relaunched.push(&answers[1], "relaunch");
            by_hand.push(took);
        }
    }
    let ((save, build), (whole_save, whole_build), by_hand) =
        (refreshed.medians(), relaunched.medians(), median(by_hand));
    tell("  build ended → answer, refresh", build, Duration::from_secs(1));
    println!("  the same by a whole relaunch: {whole_build:.2?}");
    let title = "  the same, started by hand (without closing the old one)";
    ratio(title, by_hand, build, "refresh / by hand", 0.2 * OLD_RELAUNCH);
    ratio(title, by_hand, whole_build, "relaunch / by hand", 0.7 * OLD_RELAUNCH);
    tell("  save → answer, refresh", save, Duration::from_millis(1500));
    println!("  save → answer, whole relaunch: {whole_save:.2?}");
}

fn page(runtime: &tokio::runtime::Runtime, runs: usize) {
    let (mut ladder, mut whole) = (Project::page(Refresh::Auto), Project::page(Refresh::Relaunch));
    println!("browser, a static page");
    let hand = runtime.block_on(HandBrowser::attach(ladder.cdp_port()));
    let (mut refreshed, mut relaunched, mut by_hand) = (Samples::default(), Samples::default(), vec![]);
    for run in 0..=runs {
        let answers = [ladder.edit_and_ask(), whole.edit_and_ask()];
        let started = Instant::now();
        runtime.block_on(hand.reload_and_wait_for(&ladder.version()));
        if run > 0 {
            refreshed.push(&answers[0], "reload");
            relaunched.push(&answers[1], "relaunch");
            by_hand.push(started.elapsed());
        }
    }
    let ((save, build), (_, whole), by_hand) = (refreshed.medians(), relaunched.medians(), median(by_hand));
    tell("  build ended → answer, reload", build, Duration::from_millis(150));
    ratio("  the same by hand (Page.reload)", by_hand, build, "reload / by hand", 2.0);
    tell("  build ended → answer, relaunch", whole, Duration::from_millis(600));
    println!("  save → answer, reload: {save:.2?}");
}

fn node(runtime: &tokio::runtime::Runtime, runs: usize) {
    let mut service = Project::node();
    println!("Node");
    let (mut relaunched, mut by_hand) = (Samples::default(), vec![]);
    for run in 0..=runs {
        let answer = service.edit_and_ask();
        let started = Instant::now();
        let alone = runtime.block_on(HandNode::start(service.workspace()));
        runtime.block_on(alone.wait_for(&service.version()));
        if run > 0 {
            relaunched.push(&answer, "relaunch");
            by_hand.push(started.elapsed());
        }
    }
    let ((save, build), by_hand) = (relaunched.medians(), median(by_hand));
    ratio("  `node --inspect` alone, until it answers", by_hand, build, "build ended → answer / alone", 1.3);
    println!("  build ended → answer: {build:.2?}; save → answer: {save:.2?}");
}

/// Lets a window that was just asked come to rest, and start its next extension host, which it does 3 s after the last one.
fn rest() {
    std::thread::sleep(Duration::from_secs(5));
}

fn tell(what: &str, took: Duration, goal: Duration) {
    println!("{what}: {took:.2?} (goal ≤ {goal:.2?})");
}

/// The time of another way, and its ratio to ours.
fn ratio(what: &str, other: Duration, ours: Duration, name: &str, goal: f64) {
    let ratio = ours.as_secs_f64() / other.as_secs_f64();
    println!("{what}: {other:.2?}; {name} {ratio:.2} (goal ≤ {goal:.2})");
}
