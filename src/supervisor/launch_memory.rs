//! What debug operations keep from one call to the next: the parameters of launches.
//!
//! Does not depend on what is debugged.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tether_base::sync::lock;

use crate::api::debug::DebugLaunchParams;
use crate::config::TestRunner;
use crate::debug::SessionRegistry;

struct RememberedLaunch {
    params: DebugLaunchParams,
    /// What runs the test, if it is one.
    runner: Option<TestRunner>,
}

/// One per supervisor.
#[derive(Default)]
pub struct LaunchMemory {
    /// Launches that are planned anew for a restart, by session id.
    launches: Mutex<BTreeMap<String, RememberedLaunch>>,
}

impl LaunchMemory {
    /// Keeps the parameters of a launch as long as the session is listed.
    pub fn remember(
        &self,
        sessions: &SessionRegistry,
        id: &str,
        params: DebugLaunchParams,
        runner: Option<TestRunner>,
    ) {
        let all = sessions.list_sessions();
        let mut launches = lock(&self.launches);
        launches.retain(|id, _| all.iter().any(|it| it.id == *id));
        launches.insert(id.to_owned(), RememberedLaunch { params, runner });
    }

    /// The parameters of a launch that has to be planned anew for a restart: its configuration or its build may have
    /// changed.
    pub fn launch_params(&self, id: &str) -> Option<DebugLaunchParams> {
        lock(&self.launches).get(id).map(|launch| launch.params.clone())
    }

    /// What runs the test of a session that was launched by a test's name.
    pub fn test_runner(&self, id: &str) -> Option<TestRunner> {
        lock(&self.launches).get(id)?.runner
    }
}
