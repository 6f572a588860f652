//! Holds each new extension host before its first line until the debug sessions that follow it are attached: their
//! breakpoints are set before an extension is activated. Gives a host whose inspector port is in use another one.
//!
//! ```text
//! <scratch>/host-hold/
//!   hook.cjs       loaded by the VS Code server, which makes each extension host load it
//!   compile-cache  a link to the folder of `compile_cache`, which both use
//!   armed          the PID of the supervisor: a host that starts now waits
//!   held-<pid>     a host that waits; it goes on when the file is removed, and removes it when it goes on by itself
//! ```
//! A host goes on by itself when the supervisor is gone, or after 20 s (`host_hold.cjs`). A desktop VS Code
//! is not held: Electron loads no such script.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::{ErrorContext, Result};
use crate::process;
use crate::window::launch_id::scratch_dir_of;

const HOOK: &str = include_str!("host_hold.cjs");

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
    pub fn install(&self, compile_cache: &Path) -> Result<PathBuf> {
        let hook = self.hook();
        let link = || symlink(compile_cache, self.folder.join("compile-cache"));
        let written = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&hook, HOOK)).and_then(|()| link());
        written.doing(|| format!("cannot write {}", hook.display()))?;
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
        process::watch_until(&self.folder, || Ok(file.exists().then_some(()))).await
    }

    fn file_of(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("held-{pid}"))
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
        hold.install(state.path()).unwrap();
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
}
