//! Closing a window, and removing all its processes and files.
//!
//! ```text
//! close request (Browser.close) ─grace─► TERM the tree ─grace─► KILL the tree ──► sweep by launch id ──► remove its folder
//! ```

use std::io;
use std::path::Path;
use std::time::Duration;

use tether_base::error::{ErrorContext, Result};
use tether_base::sync::run_blocking;
use tether_process::{Process, StopOutcome};
use tokio::time::Instant;
use tracing::debug;

use super::launch_id::{is_launch_id, launch_id_of_scratch_dir, scratch_dir_of};

/// The time between the steps of closing a window.
pub const GRACE: Duration = Duration::from_secs(3);

/// Closes the window, kills all processes with its launch id, and removes its scratch folder.
///
/// `process` must have been launched by us or verified by [`super::identity`]. `request_close` sends a close request and
/// returns whether it was received; `async { false }` to skip this step. Errors: a process survives SIGKILL, or the
/// folder cannot be removed; everything else has been done by then.
pub async fn stop_window(
    process: &Process,
    request_close: impl Future<Output = bool>,
    launch_id: &str,
    state_dir: &Path,
    grace: Duration,
) -> Result<StopOutcome> {
    let began = Instant::now();
    let ended = tether_process::stop_tree(process, request_close, grace).await;
    debug!("closing the window: its main process and their tree have ended after {:.0?}", began.elapsed());
    let cleaned = clean_up_launch(launch_id, state_dir).await;
    debug!("closing the window: its other programs and its folder are gone after {:.0?}", began.elapsed());
    let ended = ended.doing(|| format!("cannot end the window's process {}", process.pid()))?;
    cleaned.map(|()| ended)
}

/// Kills the remaining processes with a launch id (a server, a crash reporter), and removes its scratch folder. Does
/// nothing if there are none.
pub async fn clean_up_launch(launch_id: &str, state_dir: &Path) -> Result<()> {
    if !is_launch_id(launch_id) {
        return Ok(()); // it could be a path to another folder, and no process has it
    }
    let scratch = scratch_dir_of(state_dir, launch_id);
    let swept = tether_process::sweep_launch(launch_id, Some(&scratch), Duration::from_secs(1)).await;
    let removed = remove_scratch(&scratch).await;
    swept.doing(|| format!("cannot end what is left of launch {launch_id}"))?;
    removed.doing(|| format!("cannot remove {}", scratch.display()))
}

/// Removes the folder, also while helper processes of a browser still write there. They exit soon after their browser;
/// they have no launch id, since they overwrite their environment.
async fn remove_scratch(scratch: &Path) -> io::Result<()> {
    const ATTEMPTS: usize = 5;
    for _ in 1..ATTEMPTS {
        let folder = scratch.to_owned();
        let removed = run_blocking(move || match remove_folder(&folder) {
            Ok(()) => Ok(None),
            Err(_) => tether_process::find_file_holders_below(&folder).map(Some),
        });
        let Some(holders) = removed.await? else { return Ok(()) };
        tether_process::wait_until_gone(&holders).await?;
    }
    let folder = scratch.to_owned();
    run_blocking(move || remove_folder(&folder)).await
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Cleans up after every launch with a scratch folder in `state_dir`, except `running`: the supervisor was killed during
/// such a launch. Only for the supervisor that holds the lock of the folder.
pub async fn clean_up_abandoned(state_dir: &Path, running: Option<&str>) -> Result<()> {
    for launch_id in list_launches(state_dir)?.iter().filter(|launch_id| running != Some(launch_id.as_str())) {
        clean_up_launch(launch_id, state_dir).await?;
    }
    Ok(())
}

/// The ids of the launches with a scratch folder in `state_dir`.
pub fn list_launches(state_dir: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(state_dir) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.doing(|| format!("cannot read {}", state_dir.display()))?,
    };
    Ok(entries.flatten().filter_map(|entry| launch_id_of_scratch_dir(&entry.file_name())).collect())
}
