//! What is kept of the workbench from launch to launch: the browser's files and their compiled code, and the server's list
//! of extensions.
//!
//! ```text
//! <state>/workbench-cache/
//!   browser/     the browser's cache
//!   extensions/  the lists of extensions that the server has read; `CachedProfilesData` of its user data is a link to it
//!   port         the port of the server of the last launch
//! ```
//! Browsers keep both by address, so the server takes the port of the last launch again where it is free. VS Code compares
//! a list with its own version and the time of the folder that it was read from, and reads the folder again soon after. A
//! `profile` that the user keeps has a cache and lists of its own.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};
use tracing::debug;

use super::attempt::{create_private_dir, flag_with_path};
use super::browser::KindFlags;

/// The browser keeps its cache below this size, in bytes. A workbench takes about 60 MB.
const MAX_BYTES: u64 = 256 << 20;
/// Chromium does not use the compiled code of a script that it has fetched by this way, which is on unless switched off.
const UNCACHED_CODE: &[&str] = &["BackgroundResourceFetch"];
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

    /// The flags of a browser that loads a workbench, whose profile is kept by the user or not.
    pub fn browser_flags(&self, keeps_profile: bool) -> KindFlags {
        let cache = [
            flag_with_path("--disk-cache-dir=", &self.folder.join("browser")),
            OsString::from(format!("--disk-cache-size={MAX_BYTES}")),
        ];
        let flags = if keeps_profile { Vec::new() } else { cache.into() };
        KindFlags { flags, disabled_features: UNCACHED_CODE }
    }

    /// Makes the lists of extensions that the servers of the last launches have read those of a new user data folder.
    pub fn keep_extension_lists(&self, user_data: &Path) -> Result<()> {
        let kept = self.folder.join("extensions");
        create_private_dir(&kept)?;
        create_private_dir(user_data)?;
        let link = user_data.join("CachedProfilesData");
        symlink(&kept, &link).doing(|| format!("cannot make the link {}", link.display()))
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
            debug!("the next launch will load the workbench again: {error}");
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
    fn lists_of_extensions_are_kept_from_launch_to_launch() {
        let state = tempfile::tempdir().unwrap();
        let cache = WorkbenchCache::prepare(state.path()).unwrap();
        let [first, second] = ["first", "second"].map(|name| state.path().join(name).join("user"));
        cache.keep_extension_lists(&first).unwrap();
        fs::write(first.join("CachedProfilesData/list"), "kept").unwrap();
        fs::remove_dir_all(&first).unwrap();
        cache.keep_extension_lists(&second).unwrap();
        assert_eq!(fs::read_to_string(second.join("CachedProfilesData/list")).unwrap(), "kept");
    }

    #[test]
    fn a_profile_that_is_kept_has_a_cache_of_its_own() {
        let state = tempfile::tempdir().unwrap();
        let cache = WorkbenchCache::prepare(state.path()).unwrap();
        assert_eq!(cache.browser_flags(true).flags, [] as [OsString; 0]);
        assert_eq!(cache.browser_flags(false).flags.len(), 2);
    }

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
