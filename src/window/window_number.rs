//! The generation of a window: its number among all windows of a workspace, the same for every supervisor.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const NAME: &str = "launches.json";

/// Assigns generations; kept in the state folder.
#[derive(Debug, Default)]
pub struct GenerationCounter {
    file: PathBuf,
    stored: StoredGeneration,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredGeneration {
    count: u64,
    /// The newest launch or refresh: [`crate::window::session_file::WindowSession::generation_key`].
    newest: String,
}

impl GenerationCounter {
    /// Reads the counter. Begins at 0 when the file is missing or unreadable.
    pub fn load(state: &Path) -> GenerationCounter {
        let file = state.join(NAME);
        let stored = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        GenerationCounter { file, stored: stored.unwrap_or_default() }
    }

    /// The generation of the newest window; 0 before the first.
    pub fn current(&self) -> u64 {
        self.stored.count
    }

    /// The generation of a launch or refresh: the current one if this is the newest, else the next.
    pub fn assign(&mut self, key: &str) -> u64 {
        if self.stored.newest != key {
            self.stored = StoredGeneration { count: self.stored.count + 1, newest: key.to_owned() };
            let text = serde_json::to_vec(&self.stored).unwrap_or_default();
            // After a failed write the next supervisor may assign this generation again; nothing else is lost.
            let _ = std::fs::write(&self.file, text);
        }
        self.stored.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_keeps_its_generation_and_no_generation_is_assigned_twice() {
        let state = tempfile::tempdir().unwrap();
        let mut counter = GenerationCounter::load(state.path());
        assert_eq!((counter.current(), counter.assign("a"), counter.assign("a"), counter.assign("b")), (0, 1, 1, 2));
        let mut next = GenerationCounter::load(state.path());
        assert_eq!((next.current(), next.assign("b"), next.assign("c")), (2, 2, 3));
        std::fs::write(state.path().join(NAME), "[").unwrap();
        assert_eq!(GenerationCounter::load(state.path()).current(), 0);
        // A state folder that cannot be written to.
        let mut unwritable = GenerationCounter::load(&state.path().join("none"));
        assert_eq!((unwritable.assign("a"), unwritable.assign("b")), (1, 2));
    }
}
