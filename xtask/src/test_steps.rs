//! `cargo xtask test`: every check that must pass before a merge, the cheapest first.
//!
//! Does not depend on what a step tests.

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use tether_tools::entry_path;
use xshell::{Shell, cmd};

use crate::failed_tests::run_tests;
use crate::paths::CheckoutPaths;
use crate::shell::to_anyhow;
use crate::test_run::TestRun;
use crate::tools::{self, ToolSet};
use crate::{dap_schema, dist, foreign_clients, fuzz, previous_build, warm_up};

/// The tests whose peers and clients are scripts, in `tests/scripted_sessions`.
const SCRIPTED_TESTS: &str = "scripted_peers::";

#[derive(clap::Args)]
pub struct TestOptions {
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
    /// Build the book in `docs`
    Book,
    /// Fuzz each decoder for a moment
    Fuzz,
    /// The VS Code extension's own tests, and its package, which the Rust tests install
    Extension,
    /// Start each program of the tests once, so that a cold disk delays no test
    Warm,
    /// cargo test; every DAP message that it sends must be valid by the official schema
    Rust,
    /// MCP clients of others: PyPI `mcp` and the MCP Inspector
    Clients,
    /// Pack the program that was tested, and install and use each package
    Packages,
}

/// Runs the chosen steps; the first that fails ends the run. A step also fails when a process that it started is left.
pub fn run_steps(options: &TestOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let run = TestRun::start()?;
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
            times.push((step, run_timed(step, || step.run(&sh, &place, &run, options.repeat))?));
        }
    }
    print_summary(&times, began.elapsed());
    Ok(())
}

fn run_timed(step: Step, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    println!("\n▶ {}", step.name());
    let began = Instant::now();
    work()
        .with_context(|| format!("step `{0}` failed\n  hint: `cargo xtask test --only {0}` repeats it", step.name()))?;
    println!("✔ {} in {:.1} s", step.name(), began.elapsed().as_secs_f64());
    Ok(began.elapsed())
}

fn print_summary(times: &[(Step, Duration)], total: Duration) {
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

    fn run(self, sh: &Shell, place: &CheckoutPaths, run: &TestRun, repeat: u32) -> Result<()> {
        let result = match self {
            Step::Tools => install_tools_or_warn(),
            Step::Fmt => check_format(sh),
            Step::Clippy => Ok(cmd!(sh, "cargo clippy --workspace --all-targets -- -D warnings").run()?),
            Step::Book => build_book(sh, run),
            Step::Fuzz => fuzz::run_each_briefly(sh, place),
            Step::Warm => warm_up::start_programs(run),
            Step::Rust => (1..=repeat).try_for_each(|round| run_rust_tests(sh, place, run, round, repeat)),
            Step::Extension => test_extension(sh, place),
            Step::Clients => foreign_clients::run_client_tests(sh, place),
            Step::Packages => check_packages(sh, place, run),
        };
        // A failed step may also have left processes: report both.
        match (result, run.assert_nothing_left()) {
            (Err(failed), Err(left)) => Err(failed.context(left)),
            (result, left) => result.and(left),
        }
    }
}

/// Under CI a missing tool is an error; elsewhere the tests that need it are skipped with a warning.
fn install_tools_or_warn() -> Result<()> {
    match tools::install_tools(ToolSet::Tests) {
        Err(error) if env::var_os("CI").is_none() => {
            eprintln!("warning: {error:#}\n  the tests that need what is missing will be skipped");
            Ok(())
        }
        result => result,
    }
}

fn check_format(sh: &Shell) -> Result<()> {
    cmd!(sh, "cargo fmt --all --check").run()?;
    Ok(cmd!(sh, "cargo fmt --manifest-path fuzz/Cargo.toml --check").run()?)
}

/// Fails when a page or a picture that the book names is missing. Links are checked by the tidy tests.
fn build_book(sh: &Shell, run: &TestRun) -> Result<()> {
    let mdbook = entry_path("mdbook").map_err(to_anyhow)?;
    if !mdbook.exists() {
        ensure!(env::var_os("CI").is_none(), "mdbook is not installed");
        eprintln!("warning: mdbook is not installed: the book is not built");
        return Ok(());
    }
    let built = run.folder().join("book");
    cmd!(sh, "{mdbook} build docs --dest-dir {built}").run()?;
    ensure!(built.join("architecture.html").is_file(), "mdbook has built no page of the architecture");
    ensure!(built.join("crates.svg").is_file(), "mdbook has not copied the picture of the crates");
    Ok(())
}

fn run_rust_tests(sh: &Shell, place: &CheckoutPaths, run: &TestRun, round: u32, rounds: u32) -> Result<()> {
    if rounds > 1 {
        println!("\n  round {round} of {rounds}");
    }
    let trace = run.folder().join(format!("dap-{round}"));
    let previous = previous_build::build_previous(sh, place)?;
    {
        let _previous = previous.map(|program| sh.push_env("DEVTETHER_PREVIOUS", program));
        let _traced = sh.push_env("DEVTETHER_DAP_RECORD", &trace);
        let _threads = sh.push_env("RUST_TEST_THREADS", test_threads().to_string());
        // The tests end programs by these signals. A script that runs in the background (`&`, `nohup`) ignores them, and
        // each program that it starts would too.
        let test = ["--default-signal=HUP,INT,QUIT", "cargo", "test", "--workspace", "--no-fail-fast"];
        // The quick tests first: a message of theirs that is not valid ends the run at once.
        run_tests(cmd!(sh, "env {test...} --lib --bins"))?;
        dap_schema::check_messages(&trace, &place.data)?;
        // With `--test`, cargo does not build the server that the tests of `tether wrap` start.
        cmd!(sh, "cargo build --workspace --examples").run()?;
        run_tests(cmd!(sh, "env {test...} --test * -- --skip {SCRIPTED_TESTS}"))?;
    }
    // Not recorded: they send invalid messages on purpose.
    run_tests(cmd!(sh, "cargo test --test scripted_sessions"))?;
    run.assert_nothing_left()?;
    dap_schema::check_messages(&trace, &place.data)
}

/// Those of a release differ in the program only: that takes minutes to build.
fn check_packages(sh: &Shell, place: &CheckoutPaths, run: &TestRun) -> Result<()> {
    cmd!(sh, "cargo test --workspace --no-run --quiet").run()?;
    dist::check_packages(sh, place, run, &place.target().join("debug/tether"))
}

/// As many as there are cores. With twice as many, fifteen processes wanted to run on 2 cores at times, tests that compare times
/// failed, and nothing was won: browsers and VS Code compute on all cores while they start.
fn test_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    env::var("RUST_TEST_THREADS").ok().and_then(|count| count.parse().ok()).unwrap_or(cores)
}

fn test_extension(sh: &Shell, place: &CheckoutPaths) -> Result<()> {
    let folder = place.checkout.join("extension");
    let _in = sh.push_dir(folder);
    for command in [&["ci", "--ignore-scripts"][..], &["run", "compile"], &["test"], &["run", "package"]] {
        cmd!(sh, "npm {command...}").run()?;
    }
    Ok(())
}
