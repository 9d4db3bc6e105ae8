//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub const DAY: u64 = 86_400;

/// Seconds since 1970; 0 if the clock is set before.
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
