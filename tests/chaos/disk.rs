//! The disk of the sandbox: one of its own, which can be filled, and whose folders can be made read-only.
//!
//! It is mounted where only this thread and its children see it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::thread::UnshareFlags;

use crate::support::requirements::report_missing;

/// What the workspace, the state and all logs of a run need, many times.
const SIZE: &str = "size=96m";

pub struct Disk {
    folder: tempfile::TempDir,
    pub is_mounted: bool,
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).status().is_ok_and(|status| status.success())
}

impl Disk {
    /// Mounts it. Where that is not permitted, which is reported, it is a folder of the machine's disk.
    pub fn mount() -> Disk {
        let folder = tempfile::Builder::new().prefix("ch-").rand_bytes(4).tempdir().unwrap();
        // SAFETY: no file descriptor is shared otherwise than before; the flag for that is not given.
        let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
        let is_mounted = unshared.is_ok()
            && run("mount", &["--make-rprivate"], Path::new("/"))
            && run("mount", &["-t", "tmpfs", "-o", SIZE, "tmpfs"], folder.path());
        if !is_mounted {
            report_missing("this user cannot mount: no full disk, and no folder becomes read-only");
        }
        Disk { folder, is_mounted }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills it with a file, which is returned.
    pub fn fill(&self) -> PathBuf {
        let path = self.path().join("filling");
        let file = File::create(&path).unwrap();
        // What is freed while it is being filled, too.
        loop {
            let free = fstatvfs(file.as_fd()).unwrap();
            if free.f_bavail == 0 {
                return path;
            }
            let length = file.metadata().unwrap().len();
            let _ = fallocate(&file, FallocateFlags::empty(), length, free.f_bavail * free.f_frsize);
        }
    }

    /// Makes a folder read-only for all that look it up by its path.
    pub fn protect(folder: &Path) -> bool {
        let place = folder.to_str().unwrap();
        run("mount", &["--bind", place], folder) && run("mount", &["-o", "remount,bind,ro"], folder)
    }

    /// Undoes [`Disk::protect`].
    pub fn unprotect(folder: &Path) {
        // Files that were opened meanwhile stay open.
        assert!(run("umount", &["--lazy"], folder), "{} is not mounted", folder.display());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            run("umount", &["--lazy"], self.folder.path());
        }
    }
}
