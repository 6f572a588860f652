//! `cargo xtask test`: everything that must hold before a merge, in the order of what is cheapest to know.
//!
//! Owns the steps, their order and their report. Must not know what a step's tests are about.

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use xshell::{Shell, cmd};

use crate::leftovers::Run;
use crate::place::Place;
use crate::{clients, schema, tools, warm};

#[derive(clap::Args)]
pub struct Options {
    /// Only these steps; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Run the Rust tests this many times, to hunt for flakes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
}

/// In the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Install the pinned tools that are missing
    Tools,
    /// rustfmt, without changing anything
    Fmt,
    /// clippy on all targets; warnings are errors
    Clippy,
    /// Start once what the tests will start, so that a cold disk costs no test its deadline
    Warm,
    /// cargo test; every DAP message that was sent in it must be valid by the official schema
    Rust,
    /// The VS Code extension's own tests
    Extension,
    /// MCP clients that others wrote: PyPI `mcp` and the MCP Inspector
    Clients,
}

/// Runs the chosen steps; the first that fails ends the run. After each, nothing that it started may be alive.
pub fn run(options: &Options) -> Result<()> {
    let place = Place::find()?;
    let run = Run::begin()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    sh.set_var("DEVTETHER_DATA_DIR", &place.data);
    for (name, value) in run.variables()? {
        sh.set_var(name, value);
    }

    let began = Instant::now();
    let mut times = Vec::new();
    for &step in Step::value_variants() {
        if options.only.is_empty() || options.only.contains(&step) {
            times.push((step, timed(step, || step.run(&sh, &place, &run, options.repeat))?));
        }
    }
    summary(&times, began.elapsed());
    Ok(())
}

fn timed(step: Step, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    println!("\n▶ {}", step.name());
    let began = Instant::now();
    work()
        .with_context(|| format!("step `{0}` failed\n  hint: `cargo xtask test --only {0}` repeats it", step.name()))?;
    println!("✔ {} in {:.1} s", step.name(), began.elapsed().as_secs_f64());
    Ok(began.elapsed())
}

fn summary(times: &[(Step, Duration)], total: Duration) {
    println!();
    for (step, time) in times {
        println!("  {:<10} {:>7.1} s", step.name(), time.as_secs_f64());
    }
    println!("  {:<10} {:>7.1} s, nothing left behind", "all", total.as_secs_f64());
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().expect("no step is hidden").get_name().to_owned()
    }

    fn run(self, sh: &Shell, place: &Place, run: &Run, repeat: u32) -> Result<()> {
        let result = match self {
            Step::Tools => tools_or_warning(),
            Step::Fmt => Ok(cmd!(sh, "cargo fmt --all --check").run()?),
            Step::Clippy => Ok(cmd!(sh, "cargo clippy --workspace --all-targets -- -D warnings").run()?),
            Step::Warm => warm::start_all(run),
            Step::Rust => (1..=repeat).try_for_each(|round| rust(sh, place, run, round, repeat)),
            Step::Extension => extension(sh, place),
            Step::Clients => clients::run(sh, place),
        };
        // A failed step may well have left something too: say both.
        match (result, run.assert_nothing_left()) {
            (Err(failed), Err(left)) => Err(failed.context(left)),
            (result, left) => result.and(left),
        }
    }
}

/// Under CI every tool must be there; on a laptop the tests that need a missing one skip loudly.
fn tools_or_warning() -> Result<()> {
    match tools::install(tools::For::Tests) {
        Err(error) if env::var_os("CI").is_none() => {
            eprintln!("warning: {error:#}\n  the tests that need it will be skipped");
            Ok(())
        }
        result => result,
    }
}

fn rust(sh: &Shell, place: &Place, run: &Run, round: u32, rounds: u32) -> Result<()> {
    if rounds > 1 {
        println!("\n  round {round} of {rounds}");
    }
    let trace = run.folder().join(format!("dap-{round}"));
    {
        let _traced = sh.push_env("DEVTETHER_DAP_RECORD", &trace);
        let _threads = sh.push_env("RUST_TEST_THREADS", threads().to_string());
        cmd!(sh, "cargo test --workspace --no-fail-fast").run()?;
    }
    run.assert_nothing_left()?;
    schema::hold(&trace, &place.data)
}

/// Tests wait for other programs, and for times to be over, more than they compute.
fn threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    env::var("RUST_TEST_THREADS").ok().and_then(|count| count.parse().ok()).unwrap_or(cores + 1)
}

fn extension(sh: &Shell, place: &Place) -> Result<()> {
    let folder = place.checkout.join("extension");
    if !folder.join("package.json").is_file() {
        println!("  there is no extension yet");
        return Ok(());
    }
    let _in = sh.push_dir(folder);
    for command in [&["ci", "--ignore-scripts"][..], &["run", "compile"], &["test"]] {
        cmd!(sh, "npm {command...}").run()?;
    }
    Ok(())
}
