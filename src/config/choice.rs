//! Which launch configuration the user has chosen: kept in the state folder of the workspace's supervisor, so that later
//! builds, relaunches and supervisors hold on to it.
//!
//! Must not know what configurations there are.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::recipe::WindowConfig;
use crate::error::{ErrorContext, ErrorKind, Result};

const STATE_FILE: &str = "configuration.json";

/// `None`: the first one that can be launched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveConfig {
    /// What the user wants.
    #[serde(rename = "wanted")]
    pub selected: Option<String>,
    /// What the window was launched from.
    pub running: Option<String>,
}

impl ActiveConfig {
    /// The choice kept in `state`; none where nothing can be read.
    pub fn load(state: &Path) -> ActiveConfig {
        let bytes = std::fs::read(state.join(STATE_FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// What would run for this choice, as [`WindowConfig::resolve`].
    pub fn resolve(&self, workspace: &Path) -> Result<WindowConfig> {
        WindowConfig::resolve(workspace, self.selected.as_deref()).map_err(|error| match (&self.selected, error.kind) {
            (Some(_), ErrorKind::NotFound) => error.hint("`tether stop` forgets that it was chosen"),
            _ => error,
        })
    }

    pub fn save(&self, state: &Path) -> Result<()> {
        let file = state.join(STATE_FILE);
        let doing = || format!("cannot keep the choice of a configuration in {}", file.display());
        let mut draft = tempfile::NamedTempFile::new_in(state).doing(doing)?;
        draft.write_all(&serde_json::to_vec(self).doing(doing)?).doing(doing)?;
        draft.as_file().sync_all().doing(doing)?;
        draft.persist(&file).doing(doing)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_and_a_damaged_one_is_none() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(ActiveConfig::load(state.path()), ActiveConfig::default());
        let choice = ActiveConfig { selected: Some("Run \"it\"".into()), running: None };
        choice.save(state.path()).unwrap();
        assert_eq!(ActiveConfig::load(state.path()), choice);
        std::fs::write(state.path().join(STATE_FILE), "{\"wan").unwrap();
        assert_eq!(ActiveConfig::load(state.path()), ActiveConfig::default());
    }
}
