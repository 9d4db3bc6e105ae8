//! The host's clocks, as data: the core has none of its own.

/// A moment on both clocks of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Wall clock in seconds since 1970: what headers' times are compared with. It may be wrong.
    pub unix: u64,
    /// Milliseconds on a clock that never goes back, from any start: pauses and rates.
    pub millis: u64,
}

impl Now {
    /// This moment and some milliseconds, on the clock for pauses.
    pub(super) fn plus(self, millis: u64) -> u64 {
        self.millis.saturating_add(millis)
    }
}
