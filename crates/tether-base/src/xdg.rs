//! The user's folders for state, configuration and data, by the XDG base directory specification.
//! Source: <https://specifications.freedesktop.org/basedir-spec/latest/>

use std::path::PathBuf;

use crate::error::{Error, Result};

/// Logs, snapshots, locks: `$XDG_STATE_HOME/devtether`. Outlives a reboot, and can be created again.
/// Errors: there is no home folder.
pub fn state_dir() -> Result<PathBuf> {
    base_dir("XDG_STATE_HOME", ".local/state")
}

/// Records of consent: `$XDG_CONFIG_HOME/devtether`. Errors: there is no home folder.
pub fn config_dir() -> Result<PathBuf> {
    base_dir("XDG_CONFIG_HOME", ".config")
}

/// Installed tools: `$DEVTETHER_DATA_DIR`, else `$XDG_DATA_HOME/devtether`. Errors: there is no home folder.
pub fn data_dir() -> Result<PathBuf> {
    absolute_path("DEVTETHER_DATA_DIR").map_or_else(|| base_dir("XDG_DATA_HOME", ".local/share"), Ok)
}

/// What can be made again at any time: `$XDG_CACHE_HOME/devtether`. Errors: there is no home folder.
pub fn cache_dir() -> Result<PathBuf> {
    base_dir("XDG_CACHE_HOME", ".cache")
}

/// The specification requires that relative paths are ignored.
fn absolute_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// Our folder in a base directory of the specification.
fn base_dir(variable: &str, below_home: &str) -> Result<PathBuf> {
    let base = absolute_path(variable).or_else(|| std::env::home_dir().map(|home| home.join(below_home)));
    base.map(|base| base.join("devtether")).ok_or_else(|| {
        Error::other("cannot determine a folder for state")
            .because("there is no home folder")
            .hint(format!("set HOME or {variable} to a folder that you own"))
    })
}
