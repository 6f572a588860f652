//! The calls that use the window at this moment: those that its unexpected exit interrupts.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tether_base::sync::lock;

/// The calls in flight, and the last ones that failed.
#[derive(Default)]
pub struct RunningCalls(Mutex<Vec<RunningCall>>);

struct RunningCall {
    number: u64,
    /// The call in one line.
    call: String,
    ended: Option<Instant>,
}

impl RunningCall {
    /// Whether the call runs or has just failed: a broken connection ends its calls shortly before the exit of the window
    /// is noticed.
    fn is_recent(&self) -> bool {
        const RECENT: Duration = Duration::from_secs(1);
        self.ended.is_none_or(|ended| ended.elapsed() < RECENT)
    }
}

impl RunningCalls {
    /// Adds a call until the guard is dropped.
    pub fn track(&self, call: String) -> RunningCallGuard<'_> {
        let mut calls = lock(&self.0);
        calls.retain(RunningCall::is_recent);
        let number = calls.last().map_or(0, |last| last.number + 1);
        calls.push(RunningCall { number, call, ended: None });
        RunningCallGuard { running_calls: self, number }
    }

    /// The calls that run, each in one line; without any, the one that failed last, if that was within the last second.
    pub fn describe_calls(&self) -> Vec<String> {
        let calls = lock(&self.0);
        let running: Vec<_> = calls.iter().filter(|call| call.ended.is_none()).collect();
        let last = calls.iter().filter(|call| call.is_recent()).max_by_key(|call| call.ended);
        let described = if running.is_empty() { last.into_iter().collect() } else { running };
        described.into_iter().map(|call| call.call.clone()).collect()
    }
}

/// A call in flight; ended, without a result, when dropped.
pub struct RunningCallGuard<'a> {
    running_calls: &'a RunningCalls,
    number: u64,
}

impl RunningCallGuard<'_> {
    /// Forgets a call that has returned its result: an exit of the window can no longer interrupt it.
    pub fn succeeded(self) {
        lock(&self.running_calls.0).retain(|call| call.number != self.number);
    }
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.running_calls.0);
        if let Some(call) = calls.iter_mut().find(|call| call.number == self.number) {
            call.ended = Some(Instant::now());
        }
    }
}
