//! The folders of the user that we keep things in, by the XDG base directory specification.
//! Source: <https://specifications.freedesktop.org/basedir-spec/latest/>

use std::path::PathBuf;

use crate::error::{Error, Result};

/// What outlives a reboot but can be made again: logs, snapshots, locks. `$XDG_STATE_HOME/devtether`.
pub fn state_dir() -> Result<PathBuf> {
    Ok(base_dir("XDG_STATE_HOME", ".local/state")?.join("devtether"))
}

/// What the user has decided: trust. `$XDG_CONFIG_HOME/devtether`.
pub fn config_dir() -> Result<PathBuf> {
    Ok(base_dir("XDG_CONFIG_HOME", ".config")?.join("devtether"))
}

/// What was installed for us: tools. `$DEVTETHER_DATA_DIR`, else `$XDG_DATA_HOME/devtether`.
pub fn data_dir() -> Result<PathBuf> {
    match absolute_path("DEVTETHER_DATA_DIR") {
        Some(folder) => Ok(folder),
        None => Ok(base_dir("XDG_DATA_HOME", ".local/share")?.join("devtether")),
    }
}

/// A relative path in such a variable is to be ignored, says the specification.
fn absolute_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

fn base_dir(variable: &str, below_home: &str) -> Result<PathBuf> {
    absolute_path(variable).or_else(|| std::env::home_dir().map(|home| home.join(below_home))).ok_or_else(|| {
        Error::other("cannot tell where to keep state")
            .because("there is no home folder")
            .hint(format!("set HOME or {variable} to a folder that you own"))
    })
}
