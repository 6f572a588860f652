//! Any program that can be told its CDP port as the window: `${cdpPort}` in its command.
//!
//! We choose the port, so between our choice and its start somebody else may take it. The kernel tells nobody that
//! a port is listened on, so this is the one place that looks again and again, less and less often.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use super::wait::wait_for;
use super::{Launch, Ready, not_ours};
use crate::cdp::{self, Endpoint};
use crate::error::{Context, Error, Result};
use crate::process::{self, Process};
use crate::window::identity::check_port;

const PLACEHOLDER: &str = "${cdpPort}";
const FIRST_LOOK: Duration = Duration::from_millis(5);
const SELDOMEST: Duration = Duration::from_millis(200);

pub async fn launch(launch: &Launch<'_>) -> Result<Ready> {
    let port = free_port()?;
    let argv = command_line(launch, port)?;
    launch.progress(&format!("starting {}", argv[0]));
    let process = launch.spawn(&argv)?;
    let who = format!("`{}`", argv[0]);
    let ready = listening(&process, port);
    let endpoint = wait_for(launch, &process, &who, "answered on its debugging port", ready).await?;
    let inspector_port = (!endpoint.is_browser).then_some(port);
    Ok(Ready { process, others: Vec::new(), endpoint, inspector_port, user_data_dir: None })
}

fn command_line(launch: &Launch<'_>, port: u16) -> Result<Vec<String>> {
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
pub fn free_port() -> Result<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(bound.doing(|| "cannot get a free port".to_owned())?.port())
}

/// Resolves when the process (or a descendant) answers on the port; errors when a stranger listens there.
async fn listening(process: &Process, port: u16) -> Result<Endpoint> {
    let mut pause = FIRST_LOOK;
    loop {
        if process::is_listened_on(port).unwrap_or(false) {
            check_port(process, port).map_err(not_ours)?;
            // It listens, but may not serve yet.
            if let Ok(endpoint) = cdp::discover(port).await {
                return Ok(endpoint);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SELDOMEST);
    }
}
