//! Rounds of one message: each runs it, and fetches what the run has found missing.

use alloc::collections::BTreeSet;

use super::blocks::{Blocks, fetch_blocks};
use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched};
use super::kept::Keeper;
use super::missing::{Wanted, in_parts};
use super::state::ForkState;
use super::values::fetch_values;

/// Most rounds of requests for one message. Each of them gets what the run before it has missed; code that walks through a list
/// misses one slot at a time.
const MOST_ROUNDS: usize = 1_000;

/// Values that are fetched at once. With their proofs and code, those of the main network take less than half of the memory that the
/// responses of one upstream may take.
const VALUES_AT_ONCE: usize = 256;

/// Longest time in seconds for finding another block to begin on, which a light client verifies.
pub const RESET_SECONDS: u64 = 600;

/// The rounds that one message has used, and its time.
#[derive(Debug)]
pub struct Rounds {
    /// Limit of its time in seconds.
    pub seconds: u64,
    count: usize,
    /// Blocks whose contents it reads.
    contents: BTreeSet<u64>,
}

impl Rounds {
    /// A message with this time.
    #[must_use]
    pub const fn within(seconds: u64) -> Self {
        Self { seconds, count: 0, contents: BTreeSet::new() }
    }

    /// Counts a run, and what it has found missing. A message that begins on another block has the time of a reset from
    /// then on.
    ///
    /// # Errors
    /// [`ForkError::TooManyRounds`], and [`ForkError::TooMuch`] if one message reads the contents of more blocks than are kept.
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

    /// Fetches what is wanted of a block, except other blocks to begin on, and takes out of `wanted` what is done.
    ///
    /// # Errors
    /// [`super::Stop`]
    pub fn fetch(
        &self,
        exchanges: &mut Exchanges,
        state: &ForkState,
        wanted: &mut Wanted,
        keeper: Keeper<'_>,
    ) -> Fetched<()> {
        let begun = exchanges.used();
        in_parts(&mut wanted.values, VALUES_AT_ONCE, |part| {
            let learned = fetch_values(exchanges, state, part)?;
            exchanges.forget(begun);
            if let Some(keeper) = keeper {
                keeper.keep_values(&learned);
            }
            Fetched::Ok(())
        })?;
        fetch_blocks(exchanges, &Blocks { state, run: &self.contents, keeper }, wanted)
    }
}
