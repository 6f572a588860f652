//! What the operating system reports of the program that a process runs: the files that it has mapped, the signals that it
//! catches; and what its name says.
//!
//! As in `platform`, a PID names another process as soon as its owner is reaped: callers hold a pidfd first.

use std::io;
use std::path::{Path, PathBuf};

use procfs::process::MMapPath;
use rustix::process::Signal;

use super::platform::{open_process, to_io_error};

/// Whether `pid` has a handler for a signal: any other process ends by most signals, or ignores them.
pub fn catches_signal(pid: u32, signal: Signal) -> io::Result<bool> {
    let caught = open_process(pid)?.status().map_err(to_io_error)?.sigcgt;
    // The first signal is 1.
    Ok((caught >> (signal.as_raw() - 1)) & 1 == 1)
}

/// The files that `pid` has mapped: its program, its libraries; some several times.
pub fn list_mapped_files(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = open_process(pid)?.maps().map_err(to_io_error)?;
    let file = |path| if let MMapPath::Path(path) = path { Some(path) } else { None };
    Ok(maps.into_iter().filter_map(|map| file(map.pathname)).collect())
}

/// Whether a program is Node by its name: `node`, `nodejs`, `node-v20.1.0`.
pub fn is_node_program(program: &Path) -> bool {
    is_runtime(program, &["node", "nodejs"])
}

/// Whether a program has one of these names, apart from a version: `python`, `python3.11`.
pub fn is_runtime(program: &Path, names: &[&str]) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // What the link to a program ends in when its file is gone.
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || "-v.".contains(c));
    names.iter().any(|runtime| name.strip_prefix(runtime).is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_is_caught_once_it_has_a_handler() {
        let me = std::process::id();
        // No other test of this process handles it.
        assert!(!catches_signal(me, Signal::VTALARM).unwrap());
        let kind = tokio::signal::unix::SignalKind::from_raw(Signal::VTALARM.as_raw());
        let _handler = tokio::signal::unix::signal(kind).unwrap();
        assert!(catches_signal(me, Signal::VTALARM).unwrap());
        assert!(!catches_signal(me, Signal::KILL).unwrap());
        assert_eq!(catches_signal(u32::MAX, Signal::USR1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_mapped_files_are_the_program_and_its_libraries() {
        let files = list_mapped_files(std::process::id()).unwrap();
        assert!(files.contains(&std::env::current_exe().unwrap()), "{files:?}");
        let is_libc = |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc."));
        assert!(files.iter().any(is_libc), "{files:?}");
        assert!(list_mapped_files(u32::MAX).is_err());
    }

    #[test]
    fn node_is_known_by_the_name_of_its_program() {
        for name in ["node", "nodejs", "node20", "node-v20.11.1", "node (deleted)"] {
            assert!(is_node_program(&Path::new("/usr/bin").join(name)), "{name}");
        }
        for name in ["sleep", "nodemon", "electron", "my-node", "node_exporter", ""] {
            assert!(!is_node_program(&Path::new("/usr/bin").join(name)), "{name}");
        }
        assert!(is_runtime(Path::new("/usr/bin/python3.11"), &["python", "pypy"]));
        assert!(!is_runtime(Path::new("/usr/bin/python3.11-config"), &["python", "pypy"]));
    }
}
