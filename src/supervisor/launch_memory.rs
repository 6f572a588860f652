//! What debug operations keep from one call to the next: the parameters of launches.
//!
//! Does not depend on what is debugged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tether_base::sync::lock;

use crate::api::debug::DebugLaunchParams;

/// One per supervisor.
#[derive(Default)]
pub struct LaunchMemory {
    /// Launches that are planned anew for a restart, by session id.
    launches: Mutex<BTreeMap<String, DebugLaunchParams>>,
}

impl LaunchMemory {
    /// Keeps the parameters of a launch as long as the session is listed; `listed` are the ids of those that are.
    pub fn remember(&self, listed: &BTreeSet<String>, id: &str, params: DebugLaunchParams) {
        let mut launches = lock(&self.launches);
        launches.retain(|id, _| listed.contains(id));
        launches.insert(id.to_owned(), params);
    }

    /// The parameters of a launch that has to be planned anew for a restart: its configuration or its build may have
    /// changed.
    pub fn launch_params(&self, id: &str) -> Option<DebugLaunchParams> {
        lock(&self.launches).get(id).cloned()
    }
}
