//! Programs of another user. Starting one takes root; see [`super::requirements::is_root`].

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// `nobody`, on every Linux.
pub const NOBODY: u32 = 65534;

/// A Node process of another user that runs this script with these arguments.
pub fn spawn_node_as_nobody<S: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = S>) -> Child {
    let mut command = Command::new("node");
    command.args(["-e", script]).args(arguments).current_dir("/").uid(NOBODY).gid(NOBODY);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}
