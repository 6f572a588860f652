//! How many windows there have been in a workspace: the number of a window is its generation, for every supervisor.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const NAME: &str = "launches.json";

/// The count, kept in the state folder.
#[derive(Debug, Default)]
pub struct GenerationCounter {
    file: PathBuf,
    stored: StoredGeneration,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredGeneration {
    count: u64,
    /// The launch id of the newest.
    newest: String,
}

impl GenerationCounter {
    /// What is kept; nothing, or nothing that can be read, is none.
    pub fn load(state: &Path) -> GenerationCounter {
        let file = state.join(NAME);
        let stored =
            std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        GenerationCounter { file, stored }
    }

    /// The number of the newest window there has been.
    pub fn current(&self) -> u64 {
        self.stored.count
    }

    /// The number of a launch: the one that it has, when it is the newest, else the next.
    pub fn assign(&mut self, launch_id: &str) -> u64 {
        if self.stored.newest != launch_id {
            self.stored = StoredGeneration { count: self.stored.count + 1, newest: launch_id.to_owned() };
            let text = serde_json::to_vec(&self.stored).unwrap_or_default();
            // Where it cannot be written, the next supervisor may give this number again: nothing else is lost.
            let _ = std::fs::write(&self.file, text);
        }
        self.stored.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_keeps_its_number_and_none_is_given_twice() {
        let state = tempfile::tempdir().unwrap();
        let mut launches = GenerationCounter::load(state.path());
        assert_eq!(
            (launches.current(), launches.assign("a"), launches.assign("a"), launches.assign("b")),
            (0, 1, 1, 2)
        );
        let mut next = GenerationCounter::load(state.path());
        assert_eq!((next.current(), next.assign("b"), next.assign("c")), (2, 2, 3));
        std::fs::write(state.path().join(NAME), "[").unwrap();
        assert_eq!(GenerationCounter::load(state.path()).current(), 0);
        // A state folder that cannot be written to.
        let mut nowhere = GenerationCounter::load(&state.path().join("none"));
        assert_eq!((nowhere.assign("a"), nowhere.assign("b")), (1, 2));
    }
}
