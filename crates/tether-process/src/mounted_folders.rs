//! Which folders of this process another process has elsewhere: the bind mounts of a container (`/proc/PID/mountinfo`, see
//! `proc_pid_mountinfo(5)`).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::process::{MountInfo, Process};

use super::platform::{open_process, to_io_error};

/// A part of a filesystem, and where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The device of the filesystem, as MAJOR:MINOR.
    device: String,
    /// The folder of the filesystem that is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// The folders in `folder`, or that `folder` is in, which `pid` has by another path: each by its path here, and there. Each is proven to be the
/// same folder. None where both processes see the same mounts. Errors: `pid` is gone, or may not be looked at.
pub fn find_mounted_folders(pid: u32, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let other = open_process(pid)?;
    let own = Process::myself().map_err(to_io_error)?;
    let namespace = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/mnt")).map(|it| it.ino());
    if namespace(&pid.to_string())? == namespace("self")? {
        return Ok(Vec::new());
    }
    let mounts = |process: &Process| -> io::Result<Vec<Mount>> {
        Ok(process.mountinfo().map_err(to_io_error)?.into_iter().map(Mount::of).collect())
    };
    let found = common_folders(&mounts(&own)?, &mounts(&other)?, folder);
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let is_same = |(here, there): &(PathBuf, PathBuf)| {
        let there = root.join(there.strip_prefix("/").unwrap_or(there)).metadata();
        let ids = |file: std::fs::Metadata| (file.dev(), file.ino());
        here.metadata().ok().map(ids).is_some_and(|here| there.ok().map(ids) == Some(here))
    };
    Ok(found.into_iter().filter(is_same).collect())
}

/// As their mounts say; one that is mounted over is among them.
fn common_folders(own: &[Mount], other: &[Mount], folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for mount in other {
        let here = own
            .iter()
            .filter(|it| it.device == mount.device)
            .filter_map(|it| Some(it.point.join(mount.root.strip_prefix(&it.root).ok()?)));
        for here in here {
            let pair = match (folder.strip_prefix(&here), here.starts_with(folder)) {
                (Ok(inner), _) => (folder.to_owned(), mount.point.join(inner)),
                (Err(_), true) => (here, mount.point.clone()),
                (Err(_), false) => continue,
            };
            // Without the `/` that an empty end leaves.
            let pair = (pair.0.components().collect(), pair.1.components().collect::<PathBuf>());
            if pair.0 != pair.1 && !found.contains(&pair) {
                found.push(pair);
            }
        }
    }
    found
}

impl Mount {
    fn of(mount: MountInfo) -> Mount {
        Mount {
            device: mount.majmin,
            root: unescape(mount.root.as_bytes()),
            point: unescape(mount.mount_point.as_os_str().as_bytes()),
        }
    }
}

/// The kernel writes a blank, and what else would end a field, as `\` and three octal digits.
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(lines: &[(&str, &str, &str)]) -> Vec<Mount> {
        let mount = |(device, root, point): &(&str, &str, &str)| Mount {
            device: (*device).to_owned(),
            root: unescape(root.as_bytes()),
            point: unescape(point.as_bytes()),
        };
        lines.iter().map(mount).collect()
    }

    #[test]
    fn folders_that_are_mounted_elsewhere_are_found() {
        let own = mounts(&[("8:1", "/", "/"), ("8:2", "/homes", "/home"), ("0:5", "/", "/proc")]);
        let check = |other: &[(&str, &str, &str)], folder: &str, expect: &[(&str, &str)]| {
            let found = common_folders(&own, &mounts(other), Path::new(folder));
            let expect: Vec<_> =
                expect.iter().map(|(here, there)| (PathBuf::from(here), PathBuf::from(there))).collect();
            assert_eq!(found, expect, "{other:?} {folder}");
        };
        // The folder itself, one above it, one in it.
        check(&[("8:2", "/homes/me/w", "/app")], "/home/me/w", &[("/home/me/w", "/app")]);
        check(&[("8:2", "/homes/me", "/host")], "/home/me/w", &[("/home/me/w", "/host/w")]);
        check(&[("8:2", "/homes/me/w/src\\040it", "/app/src")], "/home/me/w", &[("/home/me/w/src it", "/app/src")]);
        // At the same place, of another filesystem, of another folder.
        check(&[("8:1", "/", "/"), ("0:9", "/homes/me/w", "/app"), ("8:2", "/homes/you", "/app")], "/home/me/w", &[]);
    }

    #[test]
    fn a_process_with_the_same_mounts_has_no_folders_elsewhere() {
        assert_eq!(find_mounted_folders(std::process::id(), Path::new("/")).unwrap(), []);
        assert!(find_mounted_folders(u32::MAX, Path::new("/")).is_err());
    }
}
