//! `cargo xtask chaos`: plays the chaos suite (`tests/chaos`) for long, once for each seed, and prints what was injected.
//!
//! Does not depend on what is played: each run writes its counts, as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;
use crate::test_run::TestRun;

/// How much of a run that fails is shown, in lines.
const SHOWN_LINES: usize = 300;

#[derive(clap::Args)]
pub struct ChaosOptions {
    /// Operations from each seed
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    operations: u32,
    /// A seed; may be given several times
    #[arg(long = "seed", value_name = "S", default_values_t = [1, 2, 3, 4, 5])]
    seeds: Vec<u64>,
    /// How many seeds are played at once: a run waits more than it computes
    #[arg(long, value_name = "J", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
}

/// What has come of a seed.
struct Played {
    seed: u64,
    /// The counts; none when it has written none.
    counts: Option<Value>,
    /// The last lines of its output, if it has failed.
    failure: Option<String>,
}

/// What puts a process into the run.
type Variables = [(&'static str, PathBuf)];

/// Plays each seed. Errors: in one of them something did not hold.
pub fn run_chaos(options: &ChaosOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    cmd!(sh, "cargo test --workspace --test chaos --no-run").run()?;
    let run = TestRun::start()?;
    let variables = run.variables()?;
    let began = Instant::now();
    let waiting = Mutex::new(options.seeds.iter().copied());
    let played = Mutex::new(Vec::new());
    let play_waiting = || -> Result<()> {
        loop {
            let Some(seed) = waiting.lock().expect("no run panics with the lock").next() else { return Ok(()) };
            let done = play(&place.checkout, (run.folder(), &variables), seed, options.operations)?;
            match &done.failure {
                Some(failure) => println!("  seed {seed}: BROKEN\n{failure}"),
                None => println!("  seed {seed}: holds"),
            }
            played.lock().expect("no run panics with the lock").push(done);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(play_waiting)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no run panics"))
    })?;
    let mut played = played.into_inner().expect("no run panics with the lock");
    played.sort_by_key(|it| options.seeds.iter().position(|seed| *seed == it.seed));
    print_table(&played);
    println!("  all in {:.0} s", began.elapsed().as_secs_f64());
    let broken: Vec<String> = played.iter().filter(|it| it.failure.is_some()).map(|it| it.seed.to_string()).collect();
    run.assert_nothing_left()?;
    ensure!(broken.is_empty(), "something did not hold with seed {}", broken.join(", "));
    Ok(())
}

fn play(checkout: &Path, (folder, variables): (&Path, &Variables), seed: u64, operations: u32) -> Result<Played> {
    let report = folder.join(format!("chaos-{seed}.json"));
    let mut command = Command::new("cargo");
    command.args(["test", "--quiet", "--workspace", "--test", "chaos", "--", "--nocapture"]).current_dir(checkout);
    command.envs(variables.iter().cloned()).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command.env("DEVTETHER_CHAOS_SEED", seed.to_string()).env("DEVTETHER_CHAOS_OPERATIONS", operations.to_string());
    command.env("DEVTETHER_CHAOS_REPORT", &report);
    let output = command.output().context("cannot run cargo")?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().collect();
    let tail = || lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    let counts = fs::read(&report).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(Played { seed, counts, failure: (!output.status.success()).then(tail) })
}

/// A row for each count and each fault, a column for each seed.
fn print_table(played: &[Played]) {
    let counts: Vec<&Value> = played.iter().filter_map(|it| it.counts.as_ref()).collect();
    let mut rows: Vec<(&str, Vec<u64>)> = Vec::new();
    for (title, field) in [
        ("seed", "seed"),
        ("operations", "operations"),
        ("answered with an error", "failed"),
        ("sessions", "sessions"),
        ("stops checked", "stopsChecked"),
        ("attaches that debugpy ended", "endedAttaches"),
        ("readings of the files", "fileReadings"),
        ("seconds", "seconds"),
    ] {
        rows.push((title, counts.iter().map(|it| it[field].as_f64().unwrap_or_default() as u64).collect()));
    }
    let mut faults: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (column, count) in counts.iter().enumerate() {
        for (fault, times) in count["injected"].as_object().into_iter().flatten() {
            let row = faults.entry(fault).or_insert_with(|| vec![0; counts.len()]);
            row[column] = times.as_u64().unwrap_or_default();
        }
    }
    rows.extend(faults);
    println!();
    for (title, values) in rows {
        let sum: u64 = values.iter().sum();
        let cells: String = values.iter().map(|it| format!("{it:>9}")).collect();
        let sum = if title == "seed" { "all".to_owned() } else { sum.to_string() };
        println!("  {title:<26}{cells}{sum:>11}");
    }
}
