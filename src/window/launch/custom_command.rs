//! A window that is any program with a CDP port: `${cdpPort}` in its command is replaced by a free port.
//!
//! Another program may take that port before this one listens on it; the owner of the port is checked.

use std::net::{Ipv4Addr, TcpListener};

use tether_base::error::{Error, ErrorContext, Result};

use super::attempt::{LaunchAttempt, LaunchedWindow, WindowLaunchPlan, untrusted_port_error};
use super::readiness::wait_for_listener;
use crate::window::identity::verify_tree_port;

const PLACEHOLDER: &str = "${cdpPort}";

/// Starts the configured command.
pub async fn launch_custom_command(attempt: &LaunchAttempt<'_>) -> Result<LaunchedWindow> {
    let port = find_free_port()?;
    let argv = command_line(attempt.plan, port)?;
    attempt.report_progress(&format!("starting {}", argv[0]));
    let program = attempt.spawn(&format!("`{}`", argv[0]), &argv)?;
    let process = program.process.clone();
    let ready = wait_for_listener(port, move |port| verify_tree_port(&process, port).map_err(untrusted_port_error));
    let endpoint = program.wait_for("answered on its debugging port", ready).await?;
    let inspector_port = (!endpoint.is_browser).then_some(port);
    Ok(LaunchedWindow { inspector_port, ..attempt.launched_window(program.process, endpoint) })
}

/// The configured command with a debugging port. Errors: it has none.
pub(super) fn command_line(plan: &WindowLaunchPlan, port: u16) -> Result<Vec<String>> {
    let settings = &plan.settings;
    let words = settings.command.iter().chain(&settings.args);
    let argv: Vec<String> = words.map(|word| word.replace(PLACEHOLDER, &port.to_string())).collect();
    let hint =
        "write `command = [\"app\", \"--remote-debugging-port=${cdpPort}\"]` in the [window] section of devtools.toml";
    if settings.command.first().is_none_or(String::is_empty) {
        return Err(Error::usage("no command to launch is configured").hint(hint));
    }
    if !settings.command.iter().chain(&settings.args).any(|word| word.contains(PLACEHOLDER)) {
        let doing = format!("cannot pass the debugging port to `{}`", settings.command[0]);
        return Err(Error::usage(doing).because("the command has no ${cdpPort}").hint(hint));
    }
    Ok(argv)
}

/// A port of the loopback interface that is free at this moment.
pub fn find_free_port() -> Result<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(bound.doing(|| "cannot get a free port".to_owned())?.port())
}
