//! Any program that can be told its CDP port as the window: `${cdpPort}` in its command.
//!
//! We choose the port, so between our choice and its start somebody else may take it.

use std::net::{Ipv4Addr, TcpListener};

use super::readiness::{wait_for, wait_for_listener};
use super::{LaunchAttempt, ReadyProgram, untrusted_port};
use crate::error::{Error, ErrorContext, Result};
use crate::window::identity::verify_tree_port;

const PLACEHOLDER: &str = "${cdpPort}";

pub async fn launch_custom_command(launch: &LaunchAttempt<'_>) -> Result<ReadyProgram> {
    let port = find_free_port()?;
    let argv = command_line(launch, port)?;
    launch.progress(&format!("starting {}", argv[0]));
    let process = launch.spawn(&argv)?;
    let who = format!("`{}`", argv[0]);
    let ready = wait_for_listener(port, |port| verify_tree_port(&process, port).map_err(untrusted_port));
    let endpoint = wait_for(launch, &process, &who, "answered on its debugging port", ready).await?;
    let inspector_port = (!endpoint.is_browser).then_some(port);
    Ok(ReadyProgram { process, others: Vec::new(), endpoint, inspector_port, user_data_dir: None })
}

fn command_line(launch: &LaunchAttempt<'_>, port: u16) -> Result<Vec<String>> {
    let settings = launch.settings();
    let words = settings.command.iter().chain(&settings.args);
    let argv: Vec<String> = words.map(|word| word.replace(PLACEHOLDER, &port.to_string())).collect();
    let hint =
        "write `command = [\"app\", \"--remote-debugging-port=${cdpPort}\"]` in the [window] section of devtools.toml";
    if settings.command.first().is_none_or(String::is_empty) {
        return Err(Error::usage("cannot tell which command to launch").hint(hint));
    }
    if !settings.command.iter().chain(&settings.args).any(|word| word.contains(PLACEHOLDER)) {
        let doing = format!("cannot tell `{}` its debugging port", settings.command[0]);
        return Err(Error::usage(doing).because("the command has no ${cdpPort}").hint(hint));
    }
    Ok(argv)
}

/// A port of the loopback that is free in this moment.
pub fn find_free_port() -> Result<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(bound.doing(|| "cannot get a free port".to_owned())?.port())
}
