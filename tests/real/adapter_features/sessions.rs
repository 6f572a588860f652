//! Sessions of a workspace as in the supervisor, and the check that no process of them is left.

use std::path::Path;
use std::time::Duration;

use devtether::debug::breakpoints::BindingStatus;
use devtether::debug::inspect;
use devtether::debug::{ManagedSession, Resume, SessionRegistry, SessionRequest};
use devtether::vocabulary::StopKind;
use tether_base::ring::RingQuery;
use tether_process::LAUNCH_ID;
use tokio::task::JoinHandle;

pub const LONG: Duration = Duration::from_secs(120);

pub struct FeatureSessions {
    pub sessions: SessionRegistry,
    driver: JoinHandle<()>,
    mark: String,
}

impl FeatureSessions {
    pub fn of(workspace: &Path) -> FeatureSessions {
        let mark = format!("abilities-{}", workspace.file_name().unwrap().to_string_lossy().replace(' ', "-"));
        let (sessions, driver) = SessionRegistry::open(None, workspace, mark.clone(), |_| Default::default());
        FeatureSessions { sessions, driver: tokio::spawn(driver), mark }
    }

    pub async fn start(&self, request: SessionRequest) -> FeatureSession {
        let managed = self.sessions.start_session(request).await.unwrap_or_else(|error| panic!("{error}"));
        FeatureSession { managed }
    }

    /// Ends all sessions; no process may be left.
    pub async fn end(self) {
        self.sessions.end_all().await;
        assert_eq!(crate::support::carrying_prefix(LAUNCH_ID, &self.mark), []);
        drop(self.sessions);
        tokio::time::timeout(LONG, self.driver).await.unwrap().unwrap();
    }
}

pub struct FeatureSession {
    pub managed: ManagedSession,
}

/// A stop: kind, function, line.
pub type Stop = (StopKind, String, u32);

impl FeatureSession {
    /// Waits for a stop.
    pub async fn stopped(&self) -> Stop {
        let session = &self.managed.session;
        let waited = session.wait_for_stop(LONG).await;
        let output = || session.event_log().read_output(&RingQuery { limit: 40, ..RingQuery::default() }).entries;
        let Some((target, stop)) = &waited.stop else { panic!("{waited:?}: {:#?}", output()) };
        let reason = inspect::stop_cause(session, *target, stop).await;
        let top = reason.top_frame.unwrap_or_else(|| panic!("no frame: {stop:?}"));
        (stop.kind, top.name, u32::try_from(top.line).unwrap())
    }

    pub async fn resume(&self, how: Resume) {
        self.managed.session.resume(how, None).await.unwrap_or_else(|error| panic!("{error}"));
    }

    pub async fn then(&self, how: Resume) -> Stop {
        self.resume(how).await;
        self.stopped().await
    }

    pub async fn evaluate(&self, expression: &str) -> String {
        let (_, answer) = inspect::evaluate(&self.managed.session, expression, None, "watch")
            .await
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        answer.result
    }

    /// Waits until the program has printed `words`.
    pub async fn prints(&self, words: &str) {
        let record = self.managed.session.event_log();
        let mut spoken = record.watch_output();
        let all = || record.read_output(&RingQuery { limit: 10_000, ..RingQuery::default() }).entries;
        let output = spoken.wait_for(|_| all().iter().any(|output| output.text.contains(words)));
        let output = tokio::time::timeout(LONG, output).await;
        assert!(output.is_ok(), "{words:?} is not in {:#?}", all());
    }

    /// Whether the adapter accepts a breakpoint; else its reason.
    pub async fn takes(&self, sessions: &SessionRegistry, id: u32) -> Result<(), String> {
        self.managed.session.wait_for_binding(id).await;
        let reported = sessions.list_breakpoints().await.into_iter().find(|it| it.spec.id == id).unwrap();
        match reported.status {
            BindingStatus::Verified { .. } | BindingStatus::Pending(_) => Ok(()),
            BindingStatus::Unbound(reason) => Err(reason),
        }
    }
}
