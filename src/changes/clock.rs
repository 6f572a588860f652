//! The wall clock in the unit of reports and snapshots.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in milliseconds since the epoch; 0 before it.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
