//! `cargo xtask`: everything around the product that a fresh clone needs: tools, tests, the demo.
//!
//! Owns how the checkout is set up and judged. Must not know the product's inside: it builds `tether`
//! and talks to it as any user would.

mod clients;
mod demo;
mod leftovers;
mod place;
mod schema;
mod test;
mod tools;
mod warm;

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
    /// Install every pinned outside tool that is missing (src/tools/pins.toml)
    Tools,
    /// Everything that must hold before a merge: formatting, lints, tests, foreign clients, nothing left behind
    Test(test::Options),
    /// Hold DAP messages that were written down (DEVTETHER_DAP_RECORD=FOLDER) against the official schema
    Schema { folder: std::path::PathBuf },
    /// The story of the tether, told with a real Extension Development Host
    Demo(demo::Options),
}

fn main() -> ExitCode {
    match carry_out(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not anyhow's own report: with RUST_BACKTRACE set it buries the hint under a backtrace.
            let causes: String = error.chain().skip(1).map(|cause| format!("\n  because: {cause}")).collect();
            eprintln!("error: {error}{causes}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(task: Task) -> Result<()> {
    match task {
        Task::Tools => tools::install(tools::For::Tests),
        Task::Test(options) => test::run(&options),
        Task::Schema { folder } => schema::hold(&folder, &place::Place::find()?.data),
        Task::Demo(options) => demo::run(&options),
    }
}
