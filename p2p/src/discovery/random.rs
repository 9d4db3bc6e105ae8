//! Random numbers that are computed from a seed, so that a run of the machine can be repeated.

use alloy_primitives::{B256, Keccak256};

use super::message_id::MessageId;

/// A generator: each number is the Keccak-256 of a secret seed and a counter, so that a peer cannot compute the next number from those
/// that it has received.
#[derive(Clone)]
pub(super) struct Random {
    seed: [u8; 32],
    counter: u64,
}

impl Random {
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0 }
    }

    /// The next 32 bytes.
    fn word(&mut self) -> B256 {
        self.counter = self.counter.wrapping_add(1);
        let mut state = Keccak256::new();
        state.update(self.seed);
        state.update(self.counter.to_be_bytes());
        state.finalize()
    }

    /// A random message id: the first 16 of the 32 bytes.
    pub(super) fn message_id(&mut self) -> MessageId {
        MessageId::from_random(*self.word().0.first_chunk().unwrap_or(&[0; 16]))
    }

    /// A random number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = u64::from_be_bytes(*self.word().0.first_chunk().unwrap_or(&[0; 8]));
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(number.checked_rem(end).unwrap_or(0)).unwrap_or(0)
    }
}
