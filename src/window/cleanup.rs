//! Closing a window and leaving nothing of it behind.
//!
//! ```text
//! asked (Browser.close) ─grace─► TERM the tree ─grace─► KILL the tree ──► sweep by launch id ──► remove its folder
//! ```

use std::io;
use std::path::Path;
use std::time::Duration;

use super::launch::{is_launch_id, launch_id_of_scratch_dir, scratch_dir_of};
use crate::error::{ErrorContext, Result};
use crate::process::{self, Process, StopOutcome};

/// How long a window may take over each step of its end.
pub const GRACE: Duration = Duration::from_secs(3);

/// Ends the window and everything that carries its launch id, and removes its scratch folder.
///
/// `process` must have been launched by us or proven by [`super::identity`]. `ask` closes it politely and answers
/// whether it was heard: [`super::page::Page::ask_to_close`], or `async { false }`. Errors: someone outlives
/// SIGKILL, or the folder cannot be removed; everything else has been done by then.
pub async fn stop_window(
    process: &Process,
    ask: impl Future<Output = bool>,
    launch_id: &str,
    state_dir: &Path,
    grace: Duration,
) -> Result<StopOutcome> {
    let ended = process::stop_tree(process, ask, grace).await;
    let cleaned = clean_up_launch(launch_id, state_dir).await;
    let ended = ended.doing(|| format!("cannot end the window's process {}", process.pid()))?;
    cleaned.map(|()| ended)
}

/// What is to be done after a window has ended, however it did: ends what carries its launch id (a server, a crash
/// reporter), and removes its scratch folder. Does nothing where nothing is left.
pub async fn clean_up_launch(launch_id: &str, state_dir: &Path) -> Result<()> {
    if !is_launch_id(launch_id) {
        return Ok(()); // it would name a folder outside, and nobody can carry it
    }
    let swept = process::sweep_launch(launch_id, Duration::from_secs(1)).await;
    let scratch = scratch_dir_of(state_dir, launch_id);
    let removed = remove_scratch(&scratch).await;
    swept.doing(|| format!("cannot end what is left of launch {launch_id}"))?;
    removed.doing(|| format!("cannot remove {}", scratch.display()))
}

/// Removes the folder, however long a browser's helpers still write there: those that outlive their browser for a
/// moment carry no launch id (they have overwritten their environment), but they end by themselves.
async fn remove_scratch(scratch: &Path) -> io::Result<()> {
    const TRIES: usize = 5;
    for _ in 1..TRIES {
        if remove_folder(scratch).is_ok() {
            return Ok(());
        }
        process::wait_until_gone(&process::find_file_holders_below(scratch)?).await?;
    }
    remove_folder(scratch)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Cleans up after every launch that has left a scratch folder in `state_dir`, except that of `living`: what a
/// supervisor that was killed in the middle of a launch has left. Only for the one supervisor that owns the folder.
pub async fn clean_up_abandoned(state_dir: &Path, living: Option<&str>) -> Result<()> {
    let entries = match std::fs::read_dir(state_dir) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.doing(|| format!("cannot read {}", state_dir.display()))?,
    };
    let launches = entries.flatten().filter_map(|entry| launch_id_of_scratch_dir(&entry.file_name()));
    for launch_id in launches.filter(|launch_id| living != Some(launch_id.as_str())) {
        clean_up_launch(&launch_id, state_dir).await?;
    }
    Ok(())
}
