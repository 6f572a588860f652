//! What the debug operations have to remember from one call to the next: whose turn it is, and how sessions were begun.
//!
//! Must not know what is debugged.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::api::debug::DebugLaunchParams;
use crate::debug::SessionRegistry;

#[derive(Default)]
pub struct LaunchMemory {
    /// Of those who run tasks of the workspace: two at a time would write the same files.
    pub task_lock: tokio::sync::Mutex<()>,
    /// How sessions were launched that were found out in more than one step; by their ids.
    launches: Mutex<BTreeMap<String, DebugLaunchParams>>,
}

impl LaunchMemory {
    /// Remembers how a session was launched, as long as anybody can see it.
    pub fn remember(&self, sessions: &SessionRegistry, id: &str, launch: DebugLaunchParams) {
        let all = sessions.list_sessions();
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.retain(|id, _| all.iter().any(|it| it.id == *id));
        launches.insert(id.to_owned(), launch);
    }

    /// How a session was launched, when that has to be found out again: a configuration may say, and a build may give,

    /// something else by now.
    pub fn launch_params(&self, id: &str) -> Option<DebugLaunchParams> {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}
