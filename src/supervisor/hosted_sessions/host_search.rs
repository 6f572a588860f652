//! The hosts that run, found by their sockets beside the supervisor's: where the disk was full, nothing else tells of them.
//!
//! Whether one of them is what it seems is for the caller to prove.

use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::sockopt::socket_peercred;

use crate::debug::HostRecord;
use crate::supervisor::paths::SupervisorPaths;

/// The hosts of a workspace that listen, by their launch ids. Blocks shortly.
pub fn find_running_hosts(paths: &SupervisorPaths) -> Vec<(String, HostRecord)> {
    let (Some(folder), Some(name)) = (paths.socket.parent(), paths.socket.file_stem()) else { return Vec::new() };
    let beside = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let is_host = |path: &Path| path.file_stem() == Some(name) && *path != *paths.socket;
    beside.filter(|path| is_host(path)).filter_map(|socket| identify_host(&socket)).collect()
}

/// Who listens there, if that is a host of our own user.
fn identify_host(socket: &Path) -> Option<(String, HostRecord)> {
    let peer = socket_peercred(UnixStream::connect(socket).ok()?).ok()?;
    if peer.uid != rustix::process::getuid() {
        return None;
    }
    let pid = peer.pid.as_raw_nonzero().get().cast_unsigned();
    let arguments = tether_process::read_arguments(pid).ok()?;
    let at = arguments.iter().position(|word| word == OsStr::new("--launch-id"))?;
    let launch_id = arguments.get(at.checked_add(1)?)?.to_str()?.to_owned();
    let start_ticks = tether_process::read_facts(pid).ok()?.start_ticks;
    Some((launch_id, HostRecord { pid, start_ticks, socket: socket.to_owned() }))
}
