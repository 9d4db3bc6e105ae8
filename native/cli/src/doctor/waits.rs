//! Counts how long a light client waits at its start, by the reason of the wait.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::service_call::quantity;

/// Interval between two requests for the progress of the headers.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(POLL_MILLIS);
/// The same in milliseconds.
const POLL_MILLIS: u64 = 50;

/// The progress of headers, as of `rootlight_syncStatus`.
pub(super) struct HeaderProgress {
    /// The number of the block at which the headers begin.
    pub(super) first: u64,
    /// The number of the newest verified block.
    pub(super) last: u64,
    /// The number of the newest block that an upstream has announced.
    pub(super) highest: u64,
}

impl HeaderProgress {
    pub(super) fn read(status: &Value) -> Self {
        let [first, last, highest] = ["startingBlock", "currentBlock", "highestBlock"]
            .map(|name| quantity(&status[name]).unwrap_or_default());
        Self { first, last, highest }
    }

    /// Number of verified headers.
    pub(super) const fn verified(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

/// The time waited, in milliseconds, by the reason. Each request for the progress adds one interval to one of the reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Waits {
    /// For a first source that says which block is its newest.
    sources: u64,
    /// For headers.
    headers: u64,
    /// For Bitcoin's headers and for other sources, after all headers of one source are verified.
    judgement: u64,
}

impl Waits {
    /// Adds an interval to the reason that the progress shows.
    pub(super) fn count(&mut self, reached: &HeaderProgress, upstreams: &Value) {
        let announced = upstreams.as_array().into_iter().flatten().any(|one| one["announced"].is_string());
        let waited = if !announced {
            &mut self.sources
        } else if reached.verified() == 0 || reached.last < reached.highest {
            &mut self.headers
        } else {
            &mut self.judgement
        };
        *waited = waited.saturating_add(POLL_MILLIS);
    }

    /// The waits as the end of a step's line.
    pub(super) fn words(&self) -> String {
        let Self { sources, headers, judgement } = self;
        format!(
            "; waited {sources} ms for sources, {headers} ms for headers, {judgement} ms for Bitcoin and other sources"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_look_counts_as_what_is_waited_for() {
        let mut waits = Waits::default();
        let progress = |first, last, highest| HeaderProgress { first, last, highest };
        let (silent, one) =
            (json!([{ "announced": null }]), json!([{ "announced": null }, { "announced": "0x9" }]));
        waits.count(&progress(0, 0, 0), &silent);
        for reached in [progress(5, 5, 9), progress(5, 7, 9)] {
            waits.count(&reached, &one);
        }
        (0..3).for_each(|_| waits.count(&progress(5, 9, 9), &one));
        assert_eq!(waits, Waits { sources: 50, headers: 100, judgement: 150 });
        assert_eq!(
            waits.words(),
            "; waited 50 ms for sources, 100 ms for headers, 150 ms for Bitcoin and other sources"
        );
    }
}
