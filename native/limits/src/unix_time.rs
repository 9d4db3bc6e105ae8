//! The wall clock of this machine. The core reads no clock; hosts give it the time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub const DAY: u64 = 86_400;

/// Seconds since the start of 1970 (UTC); 0 if the clock is set to an earlier time.
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
