//! The rounds of one message on a fork. In each round the host runs the message, and then [`Rounds::fetch`] gets the data that the run
//! has found missing.

use alloc::collections::BTreeSet;

use super::blocks::{Blocks, fetch_blocks};
use super::cache::HostCache;
use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched};
use super::missing::{Wanted, in_parts};
use super::state::ForkState;
use super::values::fetch_values;

/// Most rounds of one message. A contract that walks through a linked list in storage misses one slot in each round.
const MOST_ROUNDS: usize = 1_000;

/// Values that are fetched at once. With their proofs and code, this many of the main network take less than half of the memory that
/// the responses of one upstream may take.
const VALUES_AT_ONCE: usize = 256;

/// Longest time in seconds of a message that begins the fork on another block: a light client verifies the chain of that block first.
pub const RESET_SECONDS: u64 = 600;

/// The rounds that one message has used, and the limit of its time.
#[derive(Debug)]
pub struct Rounds {
    /// Limit of the message's time in seconds.
    pub seconds: u64,
    count: usize,
    /// Heights of the blocks whose contents the message reads.
    contents: BTreeSet<u64>,
}

impl Rounds {
    /// Begins a message with this limit of its time.
    #[must_use]
    pub const fn within(seconds: u64) -> Self {
        Self { seconds, count: 0, contents: BTreeSet::new() }
    }

    /// Counts a run, and the blocks whose contents it has found missing. A message that begins the fork on another block gets
    /// [`RESET_SECONDS`] from then on.
    ///
    /// # Errors
    /// [`ForkError::TooManyRounds`], and [`ForkError::TooMuch`] if one message reads the contents of more blocks than are stored.
    pub fn count<'a>(&mut self, wanted: impl IntoIterator<Item = &'a Wanted>) -> Result<(), ForkError> {
        if self.count >= MOST_ROUNDS {
            return Err(ForkError::TooManyRounds(MOST_ROUNDS));
        }
        self.count = self.count.saturating_add(1);
        for wanted in wanted {
            wanted.count_contents(&mut self.contents)?;
            if !wanted.others.is_empty() {
                self.seconds = RESET_SECONDS;
            }
        }
        Ok(())
    }

    /// Fetches the wanted data, except other blocks on which the fork is to begin, and removes from `wanted` what is stored in `state`.
    ///
    /// # Errors
    /// [`super::Stop`]
    pub fn fetch(
        &self,
        exchanges: &mut Exchanges,
        state: &ForkState,
        wanted: &mut Wanted,
        cache: HostCache<'_>,
    ) -> Fetched<()> {
        let begun = exchanges.used();
        in_parts(&mut wanted.values, VALUES_AT_ONCE, |part| {
            let fetched = fetch_values(exchanges, state, part)?;
            exchanges.forget(begun);
            if let Some(cache) = cache {
                cache.store_values(&fetched);
            }
            Fetched::Ok(())
        })?;
        fetch_blocks(exchanges, &Blocks { state, in_use: &self.contents, cache }, wanted)
    }
}
