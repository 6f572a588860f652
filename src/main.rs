//! `tether`: parse arguments, choose a front end, print the error, exit code.

use std::process::ExitCode;

use devtether::frontends::cli::{Daemons, run_command_line};
use devtether::session_host::server::host_session;
use devtether::supervisor::server::supervise;
use tether_base::display_text::escape_text;

fn main() -> ExitCode {
    exit_on_panic();
    let daemons = Daemons { supervise, host_session };
    ExitCode::from(run_command_line(std::env::args_os(), &daemons))
}

/// Prints a panic and exits: a front end that lost one task would leave a call unanswered. The supervisor logs it instead.
/// The release build cannot unwind.
fn exit_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{}", escape_text(&format!("this is a bug of tether; please report it with this text: {panic}")));
        std::process::exit(101);
    }));
}
