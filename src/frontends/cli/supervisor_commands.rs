//! What is done to the supervisor itself: end it, replace it, read its log.

use std::io::{BufRead, BufReader};
use std::path::Path;

use tether_base::display_text::escape_line;
use tether_base::error::{Error, ErrorKind, Result};
use tokio::sync::mpsc;

use super::{GlobalArgs, initialize_params, print_result};
use crate::api::protocol::SHUTDOWN;
use crate::supervisor::connect::{IfNotRunning, SupervisorPaths, connect};

/// Ends the supervisor; with `all` the debug sessions, too.
pub(super) async fn shut_down_supervisor(common: &GlobalArgs, workspace: &Path, all: bool) -> Result<()> {
    let paths = SupervisorPaths::of_workspace(workspace)
        .or_else(|error| SupervisorPaths::of_deleted_workspace(workspace).map_err(|_| error))?;
    // Only a supervisor can end the sessions of an earlier one.
    let missing = if all && paths.workspace.exists() { IfNotRunning::Start } else { IfNotRunning::Skip };
    let Some(connection) = connect(&paths, &initialize_params(IfNotRunning::Skip), missing).await? else {
        let result = serde_json::json!({"ended": false});
        return print_result(common, &result, || {
            escape_line(&format!("no supervisor runs for {}", paths.workspace.display()))
        });
    };
    let pid = connection.supervisor.pid;
    // It may exit before its response is sent.
    let _ = connection.call(SHUTDOWN, &serde_json::json!({"all": all}), mpsc::unbounded_channel().0).await;
    connection.wait_for_exit().await;
    let result = serde_json::json!({"ended": true, "pid": pid});
    let stays =
        if all { "its window, if it had one, stays" } else { "its window and its debug sessions, if it had any, stay" };
    print_result(common, &result, || format!("supervisor {pid} has exited; {stays}"))
}

/// Replaces the supervisor by one of this program.
pub(super) async fn upgrade_supervisor(common: &GlobalArgs, workspace: &Path, now: bool) -> Result<()> {
    let paths = SupervisorPaths::of_workspace(workspace)?;
    let client = initialize_params(IfNotRunning::Skip);
    let old = connect(&paths, &client, IfNotRunning::Skip).await?;
    let replaced = old.as_ref().map(|old| (old.supervisor.pid, old.supervisor.version.clone()));
    if let Some(old) = old {
        old.call(SHUTDOWN, &serde_json::json!({"unlessBusy": !now}), mpsc::unbounded_channel().0).await?;
        old.wait_for_exit().await;
    }
    let new = connect(&paths, &client, IfNotRunning::Start).await?.ok_or_else(|| Error::other("no supervisor"))?;
    let (pid, version) = (new.supervisor.pid, &new.supervisor.version);
    let result = serde_json::json!({
        "pid": pid, "version": version,
        "replaced": replaced.as_ref().map(|(pid, version)| serde_json::json!({"pid": pid, "version": version})),
    });
    print_result(common, &result, || match &replaced {
        Some((old, was)) => escape_line(&format!(
            "supervisor {pid}, version {version}, has replaced {old}, version {was}; window and debug sessions stay"
        )),
        None => escape_line(&format!("supervisor {pid}, version {version}, has started")),
    })
}

/// Prints the last lines of the supervisor's log.
pub(super) fn print_log(common: &GlobalArgs, workspace: &Path, lines: usize) -> Result<()> {
    let paths = SupervisorPaths::of_workspace(workspace)
        .or_else(|error| SupervisorPaths::of_deleted_workspace(workspace).map_err(|_| error))?;
    let log = paths.log_file();
    let file = std::fs::File::open(&log).map_err(|cause| {
        Error::new(ErrorKind::NotFound, format!("cannot read the log {}", log.display()))
            .because(cause)
            .hint("a supervisor writes it: `tether status` starts one")
    })?;
    // Rotated at 1 MiB: it may be held whole.
    let all: Vec<String> = BufReader::new(file).lines().map_while(Result::ok).collect();
    let last = &all[all.len().saturating_sub(lines)..];
    print_result(common, &serde_json::json!({"log": log, "lines": last}), || last.join("\n"))
}
