//! `cargo xtask soak`: a window and six debug sessions are used over and over, while the memory, the descriptors and the
//! busy times of the supervisor are recorded. Fails when they grow, or a thread of the supervisor is kept busy too long.
//!
//! What is used is the real binary, by its command line. A table (CSV) and a plot (SVG) are left.

mod measurements;
mod plot;
mod programs;
mod usage;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use procfs::process::{Process, all_processes};
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;
use crate::test_run::TestRun;
use measurements::{BusyTotals, Measurements, Sample};
use usage::{Tether, UseCount};

/// Between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Of the supervisor, at the start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct SoakOptions {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Use the development build, which is sooner done
    #[arg(long)]
    dev: bool,
    /// Where the table and the plot go, as `soak.csv` and `soak.svg`; `docs/src` for the book [default: `target/soak`]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Runs the soak. Errors: something grows, a thread is busy too long, or an action does not work at all.
pub fn run_soak(options: &SoakOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let sh = Shell::new()?;
    sh.change_dir(&place.checkout);
    let (profile, folder) = if options.dev { ("dev", "debug") } else { ("release", "release") };
    // Selecting this package too makes cargo resolve the same features as for `cargo xtask`.
    cmd!(sh, "cargo build --profile {profile} --package devtether --package xtask --bin tether").quiet().run()?;
    let output = options.output.clone().unwrap_or_else(|| place.target().join("soak"));
    fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
    let run = TestRun::start()?;
    let workspace = run.folder().join("workspace");
    programs::write_workspace(&workspace, &place.data)?;
    let record = run.folder().join("busy.csv");
    let mut variables = run.variables()?;
    variables.push(("DEVTETHER_DATA_DIR", place.data.clone()));
    variables.push(("DEVTETHER_BUSY_RECORD", record.clone()));
    let tether = Tether { program: place.target().join(folder).join("tether"), workspace, variables };
    let used = use_for_long(&tether, Duration::from_secs(60 * options.minutes), &record);
    tether
        .call(&["stop"])
        .and(tether.call(&["shutdown", "--all"]))
        .context("cannot stop the window and the supervisor")?;
    let (measurements, counts) = used?;
    fs::write(output.join("soak.csv"), measurements.to_csv())?;
    fs::write(output.join("soak.svg"), plot::draw_plot(&measurements))?;
    for count in &counts {
        println!("{count}");
    }
    println!("{}\n{}", measurements.summary(), output.display());
    run.assert_nothing_left()?;
    for count in &counts {
        ensure!(count.succeeded > 0, "{} has never worked: {}", count.name, count.last_failure);
    }
    measurements.check_growth()
}

/// Uses everything that there is, each from a thread of its own.
fn use_for_long(tether: &Tether, length: Duration, record: &Path) -> Result<(Measurements, Vec<UseCount>)> {
    tether.call(&["trust", "--yes"])?;
    tether.call(&["trust", "--programs", "--yes"])?;
    tether.call(&["start"]).context("cannot start the window")?;
    let supervisor = find_supervisor(tether)?;
    let is_over = AtomicBool::new(false);
    let programs = programs::available_programs(&tether.workspace);
    println!(
        "a window and {} sessions: {}",
        programs.len(),
        programs.iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
    );
    thread::scope(|scope| {
        let sessions: Vec<_> =
            programs.iter().map(|program| scope.spawn(|| usage::use_session(tether, program, &is_over))).collect();
        let window = scope.spawn(|| usage::use_window(tether, &is_over));
        let measured = measure(&supervisor, length, record);
        is_over.store(true, Ordering::Release);
        let mut counts: Vec<UseCount> = sessions.into_iter().map(|it| it.join().expect("it does not panic")).collect();
        counts.push(window.join().expect("it does not panic"));
        Ok((measured?, counts))
    })
}

fn find_supervisor(tether: &Tether) -> Result<Process> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let serves = |line: Vec<String>| {
            line.contains(&"supervise".to_owned()) && line.iter().any(|it| *it == tether.workspace.to_string_lossy())
        };
        let mut all = all_processes()?.flatten();
        if let Some(found) = all.find(|process| process.cmdline().is_ok_and(serves)) {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "no supervisor serves {}", tether.workspace.display());
        thread::sleep(Duration::from_millis(50));
    }
}

fn measure(supervisor: &Process, length: Duration, record: &Path) -> Result<Measurements> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < length {
        thread::sleep(SAMPLE_INTERVAL);
        let rollup = supervisor.smaps_rollup().context("the supervisor has ended")?;
        let memory = rollup.memory_map_rollup.iter().find_map(|map| map.extension.map.get("Pss")).copied();
        samples.push(Sample {
            at: began.elapsed(),
            memory: memory.context("the kernel tells no PSS")?,
            descriptors: supervisor.fd_count().context("the supervisor has ended")?,
        });
    }
    let busy = BusyTotals::parse(&fs::read_to_string(record).context("the supervisor has recorded no busy times")?)?;
    Ok(Measurements { samples, busy })
}
