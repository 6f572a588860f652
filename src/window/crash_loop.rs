//! Crash loop detection: how long a window that crashes repeatedly may not be started.
//!
//! Pure: the caller passes the time. Does not depend on why a window exited.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// This many crashes within [`WITHIN`] are a loop.
const MIN_CRASHES: usize = 3;
const WITHIN: Duration = Duration::from_secs(60);
/// The first pause; each further crash doubles it, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// The recent crashes of one window.
#[derive(Debug, Default)]
pub struct CrashLoop {
    /// At most [`WITHIN`] before the last one.
    recent: VecDeque<Instant>,
    /// Consecutive crashes in a loop.
    looping: u32,
}

impl CrashLoop {
    /// Adds a crash.
    pub fn record_crash(&mut self, now: Instant) {
        let in_loop =
            self.remaining_pause(now).is_some() || self.pause_until().is_some_and(|until| now < until + WITHIN);
        self.recent.retain(|at| now.duration_since(*at) <= WITHIN);
        self.recent.push_back(now);
        self.looping = if self.recent.len() >= MIN_CRASHES || in_loop { self.looping + 1 } else { 0 };
    }

    /// Forgets all crashes: a tracked file has changed, or the user requires a start.
    pub fn reset(&mut self) {
        *self = CrashLoop::default();
    }

    /// The rest of the pause; `None`: the window may be started.
    pub fn remaining_pause(&self, now: Instant) -> Option<Duration> {
        self.pause_until()?.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// The number of recent crashes.
    pub fn count(&self) -> usize {
        self.recent.len()
    }

    fn pause_until(&self) -> Option<Instant> {
        let doublings = self.looping.checked_sub(1)?;
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(10)).min(MAX_PAUSE);
        Some(*self.recent.back()? + pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_crashes_within_a_minute_are_a_loop_and_each_further_one_doubles_the_pause() {
        let zero = Instant::now();
        let check = |at: &[u64], now: u64, expect: Option<u64>| {
            let mut crashes = CrashLoop::default();
            at.iter().for_each(|at| crashes.record_crash(zero + Duration::from_secs(*at)));
            let left = crashes.remaining_pause(zero + Duration::from_secs(now)).map(|left| left.as_secs());
            assert_eq!(left, expect, "{at:?} at {now}");
        };
        check(&[], 0, None);
        check(&[0, 1], 1, None);
        check(&[0, 1, 2], 2, Some(10));
        check(&[0, 1, 2], 11, Some(1));
        check(&[0, 1, 2], 12, None);
        check(&[0, 40, 80], 80, None);
        check(&[0, 1, 2, 13], 13, Some(20));
        check(&[0, 1, 2, 13, 34], 34, Some(40));
        check(&[0, 1, 2, 13, 34, 75, 156, 317], 317, Some(300));
        // A window that ran long enough: the count begins anew.
        check(&[0, 1, 2, 13, 200], 200, None);
    }

    #[test]
    fn a_reset_forgets_all_crashes() {
        let now = Instant::now();
        let mut crashes = CrashLoop::default();
        (0..5).for_each(|_| crashes.record_crash(now));
        assert!(crashes.remaining_pause(now).is_some());
        crashes.reset();
        assert_eq!((crashes.remaining_pause(now), crashes.count()), (None, 0));
    }
}
