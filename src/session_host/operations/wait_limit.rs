//! How long an operation with a `wait` may take in all, whether its adapter answers or not.
//!
//! Without a `wait`, each single request has its own deadline. Does not depend on what is waited for.

use std::time::{Duration, Instant};

use tether_base::error::{Error, ErrorKind, Result};

use crate::api::debug::values::Seconds;

/// How long requests to the adapter may take beyond the wait: a stop may come at its very end, and is then read.
const REQUEST_GRACE: Duration = Duration::from_secs(2);

/// The `wait` of an operation, from its start on.
#[derive(Clone, Copy)]
pub struct WaitLimit {
    wait: Option<Seconds>,
    began: Instant,
}

impl WaitLimit {
    /// A limit that begins now.
    pub fn start(wait: Option<Seconds>) -> WaitLimit {
        WaitLimit { wait, began: Instant::now() }
    }

    /// Whether there is a wait at all.
    pub fn has_wait(&self) -> bool {
        self.wait.is_some()
    }

    /// What is left of the wait; zero without one.
    pub fn remaining(&self) -> Duration {
        self.wait.map_or(Duration::ZERO, |wait| wait.duration().saturating_sub(self.began.elapsed()))
    }

    /// What is left of the wait, for another limit that begins now. `None` without a wait.
    pub fn remaining_wait(&self) -> Option<Seconds> {
        // It is less than the whole, which is a number of seconds.
        self.wait.map(|whole| Seconds::try_from(self.remaining().as_secs_f64()).unwrap_or(whole))
    }

    /// How long requests may still take; `None` without a wait.
    pub fn time_with_grace(&self) -> Option<Duration> {
        let wait = self.wait?.duration() + REQUEST_GRACE;
        Some(wait.saturating_sub(self.began.elapsed()))
    }

    /// Errors: it takes longer than the wait and the grace. `doing` names it: "cannot pause the program".
    pub async fn or_timed_out<T>(&self, doing: &str, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.time_with_grace() else { return operation.await };
        tokio::time::timeout(limit, operation).await.unwrap_or_else(|_| {
            let waited = humantime::format_duration(self.wait.map_or(Duration::ZERO, Seconds::duration));
            Err(Error::new(ErrorKind::TimedOut, doing)
                .because(format!("its debugger has not answered within {waited}"))
                .hint("`tether debug status` shows its state; a longer `--wait` waits longer"))
        })
    }
}
