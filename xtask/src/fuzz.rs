//! `cargo xtask fuzz`: runs a target of `fuzz/` with libFuzzer, which follows the coverage of the code.
//!
//! Instruments as `cargo fuzz --sanitizer none` does, which the stable compiler can: safe code has no use for a
//! sanitizer. Needs a C++ compiler, with which libFuzzer is built. Does not depend on what a target decodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;

/// What the compiler is told, as cargo-fuzz tells it: counters for each edge, and the operands of comparisons.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                               -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                               -Cllvm-args=-sanitizer-coverage-pc-table \
                               -Cllvm-args=-sanitizer-coverage-trace-compares";
/// How long one input may take, in seconds.
const INPUT_TIMEOUT: u32 = 10;
/// How much memory a target may use, in MiB.
const MEMORY_LIMIT: u32 = 1024;

/// How long each target runs with all other tests, in seconds.
const BRIEF_SECONDS: u32 = 10;

/// How many lines of a run that fails are shown.
const SHOWN_LINES: usize = 40;

/// How a target is built.
#[derive(Clone, Copy)]
enum FuzzProfile {
    Dev,
    Release,
}

#[derive(clap::Args)]
pub struct FuzzOptions {
    /// The decoder that is fuzzed, or the session
    target: FuzzTarget,
    /// How long, in seconds
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Run this input only, which a run before has written
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    input: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FuzzTarget {
    /// Messages of a browser or Node
    Cdp,
    /// Messages of adapters and editors
    Dap,
    /// Packets of a virtual machine
    Jdwp,
    /// Sessions of the supervisor with a scripted adapter
    #[value(name = "adapter_session")]
    AdapterSession,
    /// Sessions of the adapter for Java with a scripted virtual machine
    #[value(name = "java_session")]
    JavaSession,
    /// Sessions of the adapter for Node with a scripted inspector
    #[value(name = "node_session")]
    NodeSession,
}

/// Builds the target and runs it. What it finds stays below the target folder: the inputs that reach new code, with
/// which the next run begins, and those that fail. Errors: an input fails.
pub fn run_target(options: &FuzzOptions) -> Result<()> {
    let place = CheckoutPaths::find()?;
    let sh = Shell::new()?;
    let name = options.target.name();
    let output = place.target().join("fuzz");
    let folder = build_targets(&sh, &place.checkout, &output, std::slice::from_ref(&name), FuzzProfile::Release)?;
    let program = folder.join(&name);
    if let Some(input) = &options.input {
        return Ok(cmd!(sh, "{program} {input}").run()?);
    }
    let status = fuzz_command(&place, &program, &name, options.seconds)?.status()?;
    ensure!(status.success(), failure_hint(&name));
    Ok(())
}

/// Runs each target for some seconds, as many at once as there are cores; built without optimization, which is sooner done.
/// Errors: an input fails; with what libFuzzer has printed last.
pub fn run_each_briefly(sh: &Shell, place: &CheckoutPaths) -> Result<()> {
    let output = place.target().join("fuzz");
    let names: Vec<String> = FuzzTarget::value_variants().iter().map(|target| target.name()).collect();
    let folder = build_targets(sh, &place.checkout, &output, &names, FuzzProfile::Dev)?;
    let waiting = Mutex::new(names.into_iter());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run_waiting = || -> Result<()> {
        loop {
            let Some(name) = waiting.lock().expect("no run panics with the lock").next() else { return Ok(()) };
            let mut run = fuzz_command(place, &folder.join(&name), &name, BRIEF_SECONDS)?;
            let ended = run.output().with_context(|| format!("cannot run {name}"))?;
            let printed = String::from_utf8_lossy(&ended.stderr);
            let last: Vec<&str> = printed.lines().rev().take(SHOWN_LINES).collect();
            let shown = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            ensure!(ended.status.success(), "{shown}\n{}", failure_hint(&name));
            let runs = shown.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
            println!("  {name}: {} inputs", runs.context("libFuzzer has not said how many inputs it ran")?.trim());
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(run_waiting)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no run panics"))
    })
}

fn failure_hint(name: &str) -> String {
    format!("an input fails\n  hint: `cargo xtask fuzz {name} --input FILE` runs it again")
}

/// A run of the target for some seconds.
fn fuzz_command(place: &CheckoutPaths, program: &Path, name: &str, seconds: u32) -> Result<Command> {
    let output = place.target().join("fuzz");
    let [corpus, failed] = ["corpus", "failed"].map(|folder| output.join(folder).join(name));
    for folder in [&corpus, &failed] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_LIMIT}"))
        .arg(format!("-timeout={INPUT_TIMEOUT}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", failed.display()))
        .arg(corpus)
        .arg(seeds_folder(&place.checkout, name));
    Ok(command)
}

impl FuzzTarget {
    fn name(self) -> String {
        self.to_possible_value().expect("no target is hidden").get_name().to_owned()
    }
}

/// Inputs of the checkout that every run begins with.
fn seeds_folder(checkout: &Path, name: &str) -> PathBuf {
    checkout.join("fuzz/seeds").join(name)
}

/// Builds the targets, and returns the folder of their programs. For the host by its name, so that build scripts and macros are
/// not instrumented.
fn build_targets(
    sh: &Shell,
    checkout: &Path,
    output: &Path,
    names: &[String],
    profile: FuzzProfile,
) -> Result<PathBuf> {
    let (profile, folder) = match profile {
        FuzzProfile::Dev => ("dev", "debug"),
        FuzzProfile::Release => ("release", "release"),
    };
    let compiler = cmd!(sh, "rustc -vV").read()?;
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let manifest = checkout.join("fuzz/Cargo.toml");
    let targets = names.iter().flat_map(|name| ["--bin", name]);
    let build = cmd!(sh, "cargo build --profile {profile} --locked --manifest-path {manifest} --target-dir {output}");
    build.args(["--target", host]).args(targets).env("RUSTFLAGS", INSTRUMENTATION).run()?;
    Ok(output.join(host).join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_in_the_package_and_has_seeds() {
        let checkout = CheckoutPaths::find().unwrap().checkout;
        let manifest = fs::read_to_string(checkout.join("fuzz/Cargo.toml")).unwrap();
        for target in FuzzTarget::value_variants() {
            let name = target.name();
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
            assert!(fs::read_dir(seeds_folder(&checkout, &name)).unwrap().count() > 5, "{name}");
        }
    }
}
