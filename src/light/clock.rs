//! The host's clocks, as data: the core has no clock.

/// A moment on both clocks of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Wall clock, in seconds since 1970, for comparisons with the times of headers. The operator may have set it wrong.
    pub unix: u64,
    /// Monotonic clock, in milliseconds from any start, for pauses and rates.
    pub millis: u64,
}

impl Now {
    /// The monotonic time this many milliseconds after this moment.
    pub(super) fn plus(self, millis: u64) -> u64 {
        self.millis.saturating_add(millis)
    }
}
