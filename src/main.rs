//! `tether`: parse arguments, choose a front end, print the error, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(devtether::frontends::cli::run_command_line(
        std::env::args_os(),
        devtether::supervisor::server::supervise,
    ))
}
