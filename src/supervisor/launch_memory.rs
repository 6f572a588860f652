//! What debug operations keep from one call to the next: the parameters of launches.
//!
//! Does not depend on what is debugged.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::api::debug::DebugLaunchParams;
use crate::debug::SessionRegistry;
use crate::sync::lock;

/// One per supervisor.
#[derive(Default)]
pub struct LaunchMemory {
    /// The parameters of launches by configuration or by test, by session id.
    launches: Mutex<BTreeMap<String, DebugLaunchParams>>,
}

impl LaunchMemory {
    /// Keeps the parameters of a launch as long as the session is listed.
    pub fn remember(&self, sessions: &SessionRegistry, id: &str, launch: DebugLaunchParams) {
        let all = sessions.list_sessions();
        let mut launches = lock(&self.launches);
        launches.retain(|id, _| all.iter().any(|it| it.id == *id));
        launches.insert(id.to_owned(), launch);
    }

    /// The parameters of a launch that has to be planned anew for a restart: its configuration or its build may have
    /// changed.
    pub fn launch_params(&self, id: &str) -> Option<DebugLaunchParams> {
        lock(&self.launches).get(id).cloned()
    }
}
