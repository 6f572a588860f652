//! The calls that use the window at this moment: those that its unexpected exit interrupts.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The calls in flight, and the last ones that ended.
#[derive(Default)]
pub struct InFlight(Mutex<Vec<InFlightCall>>);

struct InFlightCall {
    number: u64,
    /// The call in one line.
    call: String,
    ended: Option<Instant>,
}

impl InFlightCall {
    /// Whether the call runs or has just ended: a broken connection ends its calls shortly before the exit of the window
    /// is noticed.
    fn is_recent(&self) -> bool {
        const RECENT: Duration = Duration::from_secs(1);
        self.ended.is_none_or(|ended| ended.elapsed() < RECENT)
    }
}

impl InFlight {
    fn lock_calls(&self) -> MutexGuard<'_, Vec<InFlightCall>> {
        lock(&self.0)
    }

    /// Adds a call until the guard is dropped.
    pub fn track(&self, call: String) -> InFlightGuard<'_> {
        let mut calls = self.lock_calls();
        calls.retain(InFlightCall::is_recent);
        let number = calls.last().map_or(0, |last| last.number + 1);
        calls.push(InFlightCall { number, call, ended: None });
        InFlightGuard { in_flight: self, number }
    }

    /// The calls that run, each in one line; without any, the one that ended last, if that was within the last second.
    pub fn describe_calls(&self) -> Vec<String> {
        let calls = self.lock_calls();
        let running: Vec<_> = calls.iter().filter(|call| call.ended.is_none()).collect();
        let last = calls.iter().filter(|call| call.is_recent()).max_by_key(|call| call.ended);
        let described = if running.is_empty() { last.into_iter().collect() } else { running };
        described.into_iter().map(|call| call.call.clone()).collect()
    }
}

/// A call in flight; ended when dropped.
pub struct InFlightGuard<'a> {
    in_flight: &'a InFlight,
    number: u64,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let mut calls = self.in_flight.lock_calls();
        if let Some(call) = calls.iter_mut().find(|call| call.number == self.number) {
            call.ended = Some(Instant::now());
        }
    }
}
