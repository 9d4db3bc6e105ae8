//! When the bodies of each address may be read on, while long work occupies all processors.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rootlight::types::Asker;
use tokio::time::Instant;

/// The time between two pieces of the bodies of one address.
const REST: Duration = Duration::from_millis(2);

/// The largest number of addresses whose rests are kept. Beyond it all are forgotten.
const MAX_RESTING: usize = 1_024;

/// The time at which each address may read its next piece.
#[derive(Default)]
pub(crate) struct Rests(Mutex<BTreeMap<Asker, Instant>>);

impl Rests {
    /// The time at which an asker that has read a piece may read the next one. All its bodies share these times.
    pub(crate) fn next_piece(&self, asker: Asker, now: Instant) -> Instant {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rests.len() >= MAX_RESTING {
            rests.clear();
        }
        let next = rests.entry(asker).or_insert(now);
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
            [one, one, other, one].map(|asker| rests.next_piece(asker.into(), now)),
            [1, 2, 1, 3].map(|n| now + REST * n)
        );
        let later = now + Duration::from_secs(1);
        assert_eq!(rests.next_piece(one.into(), later), later + REST, "a pause is not made up for");
    }
}
