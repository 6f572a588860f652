//! `cargo xtask`: everything around the product that a fresh clone needs: tools, tests, the demo.
//!
//! Sets the checkout up, and checks it. Uses of the product what is shared with it (tools, processes); everything else
//! goes through the `tether` binary.

mod chaos;
mod crate_graph;
mod dap_schema;
mod demo;
mod dist;
mod failed_tests;
mod foreign_clients;
mod fuzz;
mod paths;
mod previous_build;
mod shell;
mod soak;
mod test_run;
mod test_steps;
mod tools;
mod warm_up;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, tests and the demo of devtether", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install every pinned outside tool that is missing (crates/tether-tools/src/pins.toml)
    Tools,
    /// Everything that must hold before a merge: formatting, lints, tests, foreign clients, nothing left behind
    Test(test_steps::TestOptions),
    /// Check recorded DAP messages (DEVTETHER_DAP_RECORD=FOLDER) against the official schema
    Schema { folder: std::path::PathBuf },
    /// Fuzz the decoder of a protocol, or whole sessions, with libFuzzer
    Fuzz(fuzz::FuzzOptions),
    /// Use a window and six debug sessions for an hour, and check that the supervisor does not grow
    Soak(soak::SoakOptions),
    /// Play random operations and faults for long, and check what must hold (tests/chaos)
    Chaos(chaos::ChaosOptions),
    /// Make the packages that install tether without a compiler, and install and use each
    Dist(dist::DistOptions),
    /// Draw the picture of the workspace's crates again (docs/src/crates.svg)
    Graph,
    /// Run the README's story on a real Extension Development Host
    Demo(demo::DemoOptions),
}

fn main() -> ExitCode {
    match run_task(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not anyhow's own report: with RUST_BACKTRACE set it buries the hint under a backtrace.
            let causes: String = error.chain().skip(1).map(|cause| format!("\n  because: {cause}")).collect();
            eprintln!("error: {error}{causes}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(task: Task) -> Result<()> {
    match task {
        Task::Tools => tools::install_tools(tools::ToolSet::Tests),
        Task::Test(options) => test_steps::run_steps(&options),
        Task::Schema { folder } => dap_schema::check_messages(&folder, &paths::CheckoutPaths::find()?.data),
        Task::Fuzz(options) => fuzz::run_target(&options),
        Task::Soak(options) => soak::run_soak(&options),
        Task::Chaos(options) => chaos::run_chaos(&options),
        Task::Dist(options) => dist::make_packages(&options),
        Task::Graph => crate_graph::write_picture(&paths::CheckoutPaths::find()?.checkout),
        Task::Demo(options) => demo::run_demo(&options),
    }
}
