//! How many windows there have been in a workspace: the number of a window is its generation, for every supervisor.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const NAME: &str = "launches.json";

/// The count, kept in the state folder.
#[derive(Debug, Default)]
pub struct Launches {
    file: PathBuf,
    kept: Kept,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    count: u64,
    /// The launch id of the newest.
    newest: String,
}

impl Launches {
    /// What is kept; nothing, or nothing that can be read, is none.
    pub fn load(state: &Path) -> Launches {
        let file = state.join(NAME);
        let kept = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Launches { file, kept }
    }

    /// The number of the newest window there has been.
    pub fn count(&self) -> u64 {
        self.kept.count
    }

    /// The number of a launch: the one that it has, when it is the newest, else the next.
    pub fn number(&mut self, launch_id: &str) -> u64 {
        if self.kept.newest != launch_id {
            self.kept = Kept { count: self.kept.count + 1, newest: launch_id.to_owned() };
            let text = serde_json::to_vec(&self.kept).unwrap_or_default();
            // Where it cannot be written, the next supervisor may give this number again: nothing else is lost.
            let _ = std::fs::write(&self.file, text);
        }
        self.kept.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_keeps_its_number_and_none_is_given_twice() {
        let state = tempfile::tempdir().unwrap();
        let mut launches = Launches::load(state.path());
        assert_eq!((launches.count(), launches.number("a"), launches.number("a"), launches.number("b")), (0, 1, 1, 2));
        let mut next = Launches::load(state.path());
        assert_eq!((next.count(), next.number("b"), next.number("c")), (2, 2, 3));
        std::fs::write(state.path().join(NAME), "[").unwrap();
        assert_eq!(Launches::load(state.path()).count(), 0);
        // A state folder that cannot be written to.
        let mut nowhere = Launches::load(&state.path().join("none"));
        assert_eq!((nowhere.number("a"), nowhere.number("b")), (1, 2));
    }
}
