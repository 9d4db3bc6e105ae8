//! Rests: pauses in reading request bodies while long work occupies all processors, so that the threads that serve connections
//! have time for brief messages. All bodies of one caller share its rests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rootlight_limits::quota_owner::QuotaOwner;
use tokio::time::Instant;

/// The time between two pieces (of 128 KiB, `body.rs`) of the bodies of one caller.
const REST: Duration = Duration::from_millis(2);

/// The largest number of callers whose times are stored. Beyond it all are forgotten, which bounds memory.
const MAX_RESTING: usize = 1_024;

/// The time at which the next piece of each caller's bodies may be read.
#[derive(Default)]
pub(crate) struct Rests(Mutex<BTreeMap<QuotaOwner, Instant>>);

impl Rests {
    /// The time at which the next piece may be read, after a piece of a body of this caller was read.
    pub(crate) fn next_piece(&self, owner: QuotaOwner, now: Instant) -> Instant {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rests.len() >= MAX_RESTING {
            rests.clear();
        }
        let next = rests.entry(owner).or_insert(now);
        *next = now.max(*next) + REST;
        *next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_one_address_share_the_times_at_which_they_are_read() {
        let (rests, now, one, other) = (Rests::default(), Instant::now(), 1, 2);
        assert_eq!(
            [one, one, other, one].map(|owner| rests.next_piece(owner.into(), now)),
            [1, 2, 1, 3].map(|n| now + REST * n)
        );
        let later = now + Duration::from_secs(1);
        assert_eq!(rests.next_piece(one.into(), later), later + REST, "a pause is not made up for");
    }
}
