//! Holds each new extension host before its first line until the debug sessions that follow it are attached: their
//! breakpoints are set before an extension is activated. Gives a host whose inspector port is in use another one. Keeps a
//! host ahead of the next restart.
//!
//! ```text
//! <scratch>/host-hold/
//!   hook.cjs       loaded by the VS Code server, which makes each extension host load it
//!   compile-cache  a link to the folder of `compile_cache`, which both use, and the language servers of VS Code's own
//!                  extensions
//!   armed          the PID of the supervisor: a host that starts now waits
//!   held-<pid>     a host that waits; it goes on when the file is removed, and removes it when it goes on by itself
//!   spare.cjs      loaded by the hook, where a host is kept ahead of the next restart
//!   spare-<pid>    that host: it has no connection to a workbench yet, and has run nothing of an extension
//!   taken-<pid>    when it was given to a workbench: clock ticks since boot
//! ```
//! A host goes on by itself when the supervisor is gone, or after 20 s (`host_hold.cjs`). In a desktop VS Code no host is
//! held or kept ahead: Electron loads no such script.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

use crate::window::launch_id::scratch_dir_of;

const HOOK: &str = include_str!("host_hold.cjs");
const SPARE_HOST: &str = include_str!("spare_host.cjs");

/// The files of one launch by which its extension hosts are held.
pub struct HostHold {
    folder: PathBuf,
}

impl HostHold {
    /// Of a launch, whether it has them or not.
    pub fn of_launch(state: &Path, launch_id: &str) -> HostHold {
        HostHold { folder: scratch_dir_of(state, launch_id).join("host-hold") }
    }

    /// Writes the hook below the existing scratch folder, with a link to the folder of the compile cache; returns its path.
    /// `keeps_spare`: whether a host is kept ahead of each restart.
    pub fn install(&self, compile_cache: &Path, keeps_spare: bool) -> Result<PathBuf> {
        let hook = self.hook();
        let write = || {
            fs::create_dir_all(&self.folder)?;
            symlink(compile_cache, self.folder.join("compile-cache"))?;
            if keeps_spare {
                fs::write(self.folder.join("spare.cjs"), SPARE_HOST)?;
            }
            fs::write(&hook, HOOK)
        };
        write().doing(|| format!("cannot write {}", hook.display()))?;
        Ok(hook)
    }

    fn hook(&self) -> PathBuf {
        self.folder.join("hook.cjs")
    }

    /// Whether the server of this launch has loaded the hook.
    pub fn is_installed(&self) -> bool {
        self.hook().is_file()
    }

    /// Whether hosts that start from now on wait. Those that wait go on when they need not any longer.
    pub fn set_armed(&self, armed: bool) -> io::Result<()> {
        let file = self.folder.join("armed");
        if !armed {
            return match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let pid = std::process::id().to_string();
        if fs::read_to_string(&file).is_ok_and(|text| text == pid) {
            return Ok(());
        }
        // By renaming: a host never reads half of it.
        let new = self.folder.join("armed.new");
        fs::write(&new, pid)?;
        fs::rename(&new, &file)
    }

    /// Resolves when the host waits.
    pub async fn wait_until_held(&self, pid: u32) -> io::Result<()> {
        let file = self.file_of(pid);
        tether_process::watch_until(&self.folder, || Ok(file.exists().then_some(()))).await
    }

    fn file_of(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("held-{pid}"))
    }

    /// From when on a host could run an extension, in clock ticks since boot: its start, or for one that was started ahead
    /// when it was given to a workbench. Errors: there is no such process.
    pub fn read_start(&self, pid: u32) -> io::Result<u64> {
        let taken = fs::read_to_string(self.folder.join(format!("taken-{pid}")));
        let taken = taken.ok().and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        Ok(tether_process::read_facts(pid)?.start_ticks.max(taken))
    }

    /// Lets all hosts go on. Returns whether this one has waited until now: it has run nothing of an extension yet.
    pub fn release_hosts(&self, pid: Option<u32>) -> bool {
        let was_held = pid.is_some_and(|pid| fs::remove_file(self.file_of(pid)).is_ok());
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("held-") {
                let _ = fs::remove_file(entry.path());
            }
        }
        was_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_released_once_and_the_others_go_on_with_it() {
        let state = tempfile::tempdir().unwrap();
        let hold = HostHold::of_launch(state.path(), "abcdefgh");
        assert!(!hold.is_installed() && hold.set_armed(false).is_ok());
        hold.install(state.path(), true).unwrap();
        assert!(hold.folder.join("spare.cjs").is_file());
        hold.set_armed(true).unwrap();
        assert_eq!(fs::read_to_string(hold.folder.join("armed")).unwrap(), std::process::id().to_string());
        for pid in [7, 8] {
            fs::write(hold.file_of(pid), "").unwrap();
        }
        assert!(hold.release_hosts(Some(7)));
        assert!(!hold.file_of(8).exists() && !hold.release_hosts(Some(7)) && !hold.release_hosts(None));
        hold.set_armed(false).unwrap();
        assert!(!hold.folder.join("armed").exists());
    }

    #[test]
    fn a_host_that_was_started_ahead_counts_from_when_it_was_taken() {
        let state = tempfile::tempdir().unwrap();
        let (hold, pid) = (HostHold::of_launch(state.path(), "abcdefgh"), std::process::id());
        hold.install(state.path(), false).unwrap();
        assert!(!hold.folder.join("spare.cjs").exists());
        let start = tether_process::read_facts(pid).unwrap().start_ticks;
        for (taken, counts) in [(start + 7, start + 7), (start - 7, start)] {
            fs::write(hold.folder.join(format!("taken-{pid}")), taken.to_string()).unwrap();
            assert_eq!(hold.read_start(pid).unwrap(), counts);
        }
        fs::write(hold.folder.join(format!("taken-{pid}")), "no number").unwrap();
        assert_eq!(hold.read_start(pid).unwrap(), start);
        assert!(hold.read_start(u32::MAX).is_err());
    }
}
