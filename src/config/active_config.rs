//! The launch configuration that the user selected, stored in the state folder of the workspace's supervisor: later
//! builds, relaunches and supervisors use it too.
//!
//! Does not depend on which configurations exist.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tether_base::error::{ErrorContext, ErrorKind, Result};

use crate::config::source_file::replace_file;
use crate::config::window_config::WindowConfig;

const STATE_FILE: &str = "configuration.json";

/// Names of launch configurations; `None`: the first that can be launched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveConfig {
    /// Selected by the user.
    #[serde(rename = "wanted")]
    pub selected: Option<String>,
    /// The one from which the window was launched.
    pub running: Option<String>,
}

impl ActiveConfig {
    /// Reads the selection from the folder `state`; none when the file is missing or damaged.
    pub fn load(state: &Path) -> ActiveConfig {
        let bytes = std::fs::read(state.join(STATE_FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// [`WindowConfig::resolve`] of the selected configuration.
    pub fn resolve(&self, workspace: &Path) -> Result<WindowConfig> {
        WindowConfig::resolve(workspace, self.selected.as_deref()).map_err(|error| match (&self.selected, error.kind) {
            (Some(_), ErrorKind::NotFound) => error.hint("`tether stop` clears the selection"),
            _ => error,
        })
    }

    /// Writes the selection atomically into the folder `state`.
    pub fn save(&self, state: &Path) -> Result<()> {
        let file = state.join(STATE_FILE);
        let doing = || format!("cannot store the selected configuration in {}", file.display());
        replace_file(&file, &serde_json::to_vec(self).doing(doing)?).doing(doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_stored_and_a_damaged_file_is_none() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(ActiveConfig::load(state.path()), ActiveConfig::default());
        let active = ActiveConfig { selected: Some("Run \"it\"".into()), running: None };
        active.save(state.path()).unwrap();
        assert_eq!(ActiveConfig::load(state.path()), active);
        std::fs::write(state.path().join(STATE_FILE), "{\"wan").unwrap();
        assert_eq!(ActiveConfig::load(state.path()), ActiveConfig::default());
    }
}
