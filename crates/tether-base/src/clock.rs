//! The wall clock, as the times in our files and on our wire have it; and a clock that never goes back, for the order of what
//! we observe.
//!
//! Does not depend on any other module.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Milliseconds since the Unix epoch; 0 on a machine whose clock is before it.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The moment at which that time has passed; years from now for a time that the clock cannot count.
pub fn deadline_after(time: Duration) -> Instant {
    const FAR: Duration = Duration::from_hours(24 * 365);
    let now = Instant::now();
    now.checked_add(time).or_else(|| now.checked_add(FAR)).unwrap_or(now)
}

/// Milliseconds since the machine was started. The order of two observations is that of these times, whatever happens to the
/// wall clock, and to the times of files.
pub fn monotonic_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_may_be_further_away_than_the_clock_can_count() {
        let now = Instant::now();
        assert!(deadline_after(Duration::MAX) > now);
        assert!(deadline_after(Duration::from_secs(1)) >= now);
    }
}
