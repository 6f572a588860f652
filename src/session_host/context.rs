//! What the operations on a session share, in the supervisor and in a session host.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tether_base::sync::lock;

use crate::config::TestRunner;
use crate::debug::SessionRegistry;

/// The sessions of this process.
pub struct SessionContext {
    /// All of them; in a session host there is one.
    pub sessions: SessionRegistry,
    /// What runs the test, of sessions that were launched by a test's name.
    test_runners: Mutex<BTreeMap<String, TestRunner>>,
}

impl SessionContext {
    /// For these sessions.
    pub fn new(sessions: SessionRegistry) -> SessionContext {
        SessionContext { sessions, test_runners: Mutex::default() }
    }

    /// What runs the test of a session that was launched by a test's name.
    pub fn test_runner(&self, id: &str) -> Option<TestRunner> {
        lock(&self.test_runners).get(id).copied()
    }

    /// Keeps what runs the test of a session, as long as that is listed.
    pub fn remember_test_runner(&self, id: &str, runner: TestRunner) {
        let all = self.sessions.list_sessions();
        let mut runners = lock(&self.test_runners);
        runners.retain(|id, _| all.iter().any(|it| it.id == *id));
        runners.insert(id.to_owned(), runner);
    }
}
