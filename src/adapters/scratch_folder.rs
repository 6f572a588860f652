//! The private folder of a session: sockets, reports, what an adapter writes.
//!
//! Does not depend on how an adapter is started.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;
use tether_base::error::{ErrorContext, Result};

use super::launch_plan::ConnectMethod;

/// The longest path of a Unix socket, in bytes, without the terminating zero.
const MAX_SOCKET_PATH: usize = 107;

/// A private folder (mode 0700) whose path is short enough for a Unix socket in it. The launch id in its name finds it
/// when we are killed.
pub(super) fn create_scratch_folder(launch_id: &str, method: &ConnectMethod) -> Result<TempDir> {
    let create = |below: &Path| {
        let created = tempfile::Builder::new().prefix(&scratch_prefix(launch_id)).tempdir_in(below);
        created.doing(|| format!("cannot create a folder in {}", below.display()))
    };
    let created = create(&std::env::temp_dir())?;
    let is_too_long = matches!(method, ConnectMethod::UnixSocket { .. })
        && created.path().join("node-cdp.4194304-12345678.sock").as_os_str().as_bytes().len() > MAX_SOCKET_PATH;
    if is_too_long { create(Path::new("/tmp")) } else { Ok(created) }
}

fn scratch_prefix(launch_id: &str) -> String {
    format!("tether-{launch_id}-")
}

/// Removes the private folders of a session whose supervisor was killed. Those of other users are left alone.
pub fn remove_scratch_folders(launch_id: &str) {
    let (prefix, us) = (scratch_prefix(launch_id), rustix::process::geteuid().as_raw());
    for below in BTreeSet::from([std::env::temp_dir(), "/tmp".into()]) {
        let entries = std::fs::read_dir(below).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            if entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == us) {
                // What cannot be removed is only left over.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}
