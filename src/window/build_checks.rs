//! The checks of a build (type checker, linter), which run after it, while its window is used already; a note tells how they end.
//!
//! The next build ends those of the one before. Does not depend on how a step runs.

use std::sync::Arc;

use tether_base::clock::now_ms;
use tether_base::sync::lock;
use tokio::task::JoinSet;

use super::context::WindowContext;
use crate::config::BuildPlan;

/// What is known of the checks of the last build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// The one that runs.
    pub running: Option<String>,
    /// Those that have failed: each with its error.
    pub failures: Vec<String>,
    /// When all had ended, epoch ms.
    pub ended_at_ms: Option<u64>,
}

impl CheckSummary {
    /// One sentence each: what still runs, and what has failed.
    pub fn describe(&self) -> Vec<String> {
        let running = self.running.as_ref().map(|label| format!("the check `{label}` of the build still runs"));
        self.failures.iter().cloned().chain(running).collect()
    }
}

impl WindowContext {
    /// Runs the checks of a build that has ended well, one after the other.
    pub fn start_checks(self: &Arc<Self>, plan: &BuildPlan) {
        let mut running = JoinSet::new();
        if !plan.checks.is_empty() {
            let (context, plan) = (Arc::clone(self), plan.clone());
            running.spawn(async move { context.run_checks(&plan).await });
        }
        *lock(&self.checks) = running;
    }

    /// Ends checks that run, and forgets what they have found: it is about files that are built anew.
    pub fn end_checks(&self) {
        *lock(&self.checks) = JoinSet::new();
        self.published.send_if_modified(|published| published.check.take().is_some());
    }

    async fn run_checks(&self, plan: &BuildPlan) {
        let publish = |change: &dyn Fn(&mut CheckSummary)| {
            self.published.send_modify(|published| change(published.check.get_or_insert_default()));
        };
        for &step in &plan.checks {
            let label = plan.steps.get(step).map(|step| step.secrets.mask(&step.label)).unwrap_or_default();
            publish(&|check| check.running = Some(label.clone()));
            let failure = self.queue.run_check(plan, step).await.err().map(|error| error.to_string());
            publish(&|check| check.failures.extend(failure.clone()));
        }
        publish(&|check| (check.running, check.ended_at_ms) = (None, Some(now_ms())));
    }
}

#[cfg(test)]
mod tests {
    use super::CheckSummary;

    #[test]
    fn what_runs_and_what_has_failed_is_said() {
        let failures = vec!["the build `npm run lint` failed".to_owned()];
        let summary = CheckSummary { running: Some("npm run types".to_owned()), failures, ended_at_ms: None };
        let expect = ["the build `npm run lint` failed", "the check `npm run types` of the build still runs"];
        assert_eq!(summary.describe(), expect);
        assert_eq!(CheckSummary::default().describe(), [""; 0]);
    }
}
