//! What a browser keeps of the workbench from launch to launch: its files, and their compiled code.
//!
//! ```text
//! <state>/workbench-cache/
//!   browser/   the browser's cache
//!   port       the port of the server of the last launch
//! ```
//! Browsers keep both by address, so the server takes the port of the last launch again where it is free. A `profile` that
//! the user keeps has a cache of its own.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use tracing::debug;

use super::attempt::{create_private_dir, flag_with_path};
use crate::error::Result;

/// The browser keeps its cache below this size, in bytes. A workbench takes about 60 MB.
const MAX_BYTES: u64 = 256 << 20;
/// As many ports behind the last one are tried where it is taken in the moment before the server opens it.
const MORE_PORTS: u16 = 19;

/// The cache of the windows of a workspace.
pub struct WorkbenchCache {
    folder: PathBuf,
}

impl WorkbenchCache {
    /// Creates the folder below a state folder.
    pub fn prepare(state: &Path) -> Result<WorkbenchCache> {
        let folder = state.join("workbench-cache");
        create_private_dir(&folder)?;
        Ok(WorkbenchCache { folder })
    }

    pub fn browser_flags(&self) -> [OsString; 2] {
        let folder = flag_with_path("--disk-cache-dir=", &self.folder.join("browser"));
        [folder, format!("--disk-cache-size={MAX_BYTES}").into()]
    }

    /// The server's port or range of ports.
    pub fn port_flag(&self) -> String {
        let last = fs::read_to_string(self.port_file()).ok().and_then(|text| text.trim().parse().ok());
        match last.filter(|&port| port > 0 && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            Some(port) => format!("--port={port}-{}", port.saturating_add(MORE_PORTS)),
            None => "--port=0".to_owned(),
        }
    }

    /// Remembers the server's port for the next launch.
    pub fn record_port(&self, port: u16) {
        if let Err(error) = fs::write(self.port_file(), port.to_string()) {
            debug!("the next launch will load the workbench anew: {error}");
        }
    }

    fn port_file(&self) -> PathBuf {
        self.folder.join("port")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_the_last_launch_is_taken_again_where_it_is_free() {
        let state = tempfile::tempdir().unwrap();
        let cache = WorkbenchCache::prepare(state.path()).unwrap();
        assert_eq!(cache.port_flag(), "--port=0");
        let used = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = used.local_addr().unwrap().port();
        cache.record_port(port);
        assert_eq!(cache.port_flag(), "--port=0");
        drop(used);
        assert_eq!(cache.port_flag(), format!("--port={port}-{}", port.saturating_add(MORE_PORTS)));
        for text in ["", "0", "-1", "70000", "port"] {
            fs::write(cache.port_file(), text).unwrap();
            assert_eq!(cache.port_flag(), "--port=0", "{text:?}");
        }
    }
}
