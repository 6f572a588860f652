//! The goals of sessions in processes of their own: a line for each, with the figure, the goal, and whether it is met.
//!
//! `cargo bench --bench hosts [-- RUNS] [GOAL…]` (20 runs and all goals unless given). A plain harness, not criterion: each
//! sample is followed by one of what it is compared with, and what counts are medians. With the path of another `tether` in
//! `DEVTETHER_BASE` its figures stand beside; with one in `DEVTETHER_BUILD`, that one is measured instead of this build. Needs
//! what `cargo xtask tools` installs, and Chromium.

use std::path::PathBuf;
use std::time::Duration;

use client::bare;

mod calls;
#[path = "../client/mod.rs"]
mod client;
mod hop;
mod idle;
mod kills;
mod launches;
#[path = "../debug/raw.rs"]
mod raw;
#[path = "../debug/scripted.rs"]
mod scripted;
#[path = "../debug/sides.rs"]
mod sides;
mod start;

/// The builds that are compared.
pub struct Builds {
    pub new: PathBuf,
    /// As before session hosts.
    pub base: Option<PathBuf>,
}

impl Builds {
    fn all(&self) -> Vec<&PathBuf> {
        std::iter::once(&self.new).chain(&self.base).collect()
    }
}

type Measure = fn(&Builds, usize);

const GOALS: [(&str, Measure); 8] = [
    ("kill", kills::after_kill),
    ("upgrade", kills::upgrade),
    ("hop", hop::measure),
    ("step", calls::measure),
    ("launch", launches::measure),
    ("many", hop::many),
    ("idle", idle::measure),
    ("start", start::measure),
];

fn main() {
    if bare::is_called() {
        return bare::serve();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runs = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let new = path("DEVTETHER_BUILD").unwrap_or_else(|| env!("CARGO_BIN_EXE_tether").into());
    let builds = Builds { new, base: path("DEVTETHER_BASE") };
    let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
    let any_named = GOALS.iter().any(|(name, _)| is_named(name));
    for (name, measure) in GOALS {
        if !any_named || is_named(name) {
            measure(&builds, runs);
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A line for a goal in time.
fn tell(what: &str, figure: Duration, goal: Duration, beside: &str) {
    tell_met(what, &format!("{figure:.2?}"), &format!("≤ {goal:.2?}"), figure <= goal, beside);
}

/// A line for a goal as a ratio.
fn tell_ratio(what: &str, one: Duration, other: Duration, goal: f64, beside: &str) {
    let ratio = one.as_secs_f64() / other.as_secs_f64();
    let beside = format!("{one:.2?} to {other:.2?}{beside}");
    tell_met(what, &format!("{ratio:.2}"), &format!("≤ {goal:.2}"), ratio <= goal, &beside);
}

fn tell_met(what: &str, figure: &str, goal: &str, is_met: bool, beside: &str) {
    let met = if is_met { "met" } else { "NOT met" };
    let beside = if beside.is_empty() { String::new() } else { format!(" ({beside})") };
    println!("{what}: {figure}, goal {goal}: {met}{beside}");
}
