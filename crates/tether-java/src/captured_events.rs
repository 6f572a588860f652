//! Which events are captured, and how many of each kind have been reported: plain data.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tether_jdwp::EventKind;

/// How many events of a kind are reported in a period.
const MAX_REPORTED: u32 = 500;
const PERIOD: Duration = Duration::from_secs(1);

/// The requests of what is captured, and how much has been reported.
#[derive(Default)]
pub(crate) struct CapturedEvents {
    /// The kind of each request.
    pub requests: HashMap<i32, (&'static str, EventKind)>,
    /// What the client wants to know.
    pub wanted: Vec<&'static str>,
    rates: HashMap<&'static str, EventRate>,
}

/// How many events of a kind there were in the current period.
struct EventRate {
    since: Instant,
    seen: u32,
}

impl CapturedEvents {
    /// Whether one more event is reported, and how many of the last period were not.
    pub(crate) fn count_event(&mut self, kind: &'static str, now: Instant) -> (bool, u32) {
        let rate = self.rates.entry(kind).or_insert(EventRate { since: now, seen: 0 });
        let mut left_out = 0;
        if now.duration_since(rate.since) >= PERIOD {
            left_out = rate.seen.saturating_sub(MAX_REPORTED);
            *rate = EventRate { since: now, seen: 0 };
        }
        rate.seen = rate.seen.saturating_add(1);
        (rate.seen <= MAX_REPORTED, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_kind_only_so_many_a_second_are_reported_and_the_others_counted() {
        let (mut captured, start) = (CapturedEvents::default(), Instant::now());
        let reported = (0..MAX_REPORTED + 7).filter(|_| captured.count_event("monitorWait", start).0).count();
        assert_eq!(reported, MAX_REPORTED as usize);
        assert_eq!(captured.count_event("classPrepare", start), (true, 0), "each kind has its own");
        assert_eq!(captured.count_event("monitorWait", start + PERIOD), (true, 7));
        assert_eq!(captured.count_event("monitorWait", start + 2 * PERIOD), (true, 0));
    }
}
