//! The search for the block on which a fork begins: its header, and the ancestors that the chain needs from the start.

use alloc::format;
use alloc::sync::Arc;

use alloy_primitives::B256;

use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched};
use super::headers::{below, fetch_linked, nearest, trusted_block, trusted_header};
use super::state::ForkState;
use crate::consensus::{ChainView, Network, VerifiedHeader};

/// Most ancestors that are fetched at the start for REMASC, the contract that pays the fees of a block a number of blocks later
/// (`remasc_maturity`). If that number is higher, as on the main network with 4,000 blocks, no ancestors are fetched for it. The test
/// networks have 50 blocks.
pub const MOST_FOR_REMASC: u64 = 64;

/// The block on which a fork is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkBlock {
    /// The head of the verified chain.
    Head,
    /// The block at a height of the verified chain.
    Number(u64),
    /// A trusted block, by height and hash.
    Trusted(u64, B256),
}

/// A search for a block, which is continued with each response of an upstream.
#[derive(Debug)]
pub struct Search {
    network: Arc<Network>,
    block: ForkBlock,
    /// The chain that a light client has verified, unless the block is trusted.
    chain: Option<ChainView>,
    /// The lowest header that was linked to the verified chain.
    reached: Option<VerifiedHeader>,
}

impl Search {
    /// A search for a block of a verified chain, or for a trusted one.
    #[must_use]
    pub const fn new(network: Arc<Network>, block: ForkBlock, chain: Option<ChainView>) -> Self {
        Self { network, block, chain, reached: None }
    }

    /// The number of headers between the lowest linked one and the block, for the display of progress.
    #[must_use]
    pub fn to_go(&self) -> u64 {
        let number = match self.block {
            ForkBlock::Number(number) => number,
            ForkBlock::Head | ForkBlock::Trusted(..) => return 0,
        };
        self.reached.as_ref().map_or(0, |reached| reached.number.saturating_sub(number))
    }

    /// Finds the header of the block. Parent hashes lead to it from the verified chain, unless the block's own hash is trusted.
    ///
    /// # Errors
    /// [`super::Stop`]
    pub fn header(&mut self, exchanges: &mut Exchanges) -> Fetched<VerifiedHeader> {
        let (number, chain) = match (self.block, &self.chain) {
            (ForkBlock::Trusted(number, hash), _) => {
                let header = trusted_header(exchanges, &self.network, (number, hash))?;
                return Ok(trusted_block(&self.network, header)?);
            }
            (_, None) => return Err(ForkError::Unverified("there is none".into()).into()),
            (ForkBlock::Number(number), Some(chain)) => (number, chain),
            (ForkBlock::Head, Some(chain)) => (chain.head().number, chain),
        };
        let mut lowest = match self.reached.take() {
            Some(reached) => reached,
            None => nearest(exchanges, chain, number)?,
        };
        while lowest.number > number {
            let begun = exchanges.used();
            let linked = below(exchanges, &self.network, self.reached.insert(lowest), number)?;
            exchanges.forget(begun);
            let missing = || ForkError::Unverified(format!("it does not have block {number}"));
            lowest = linked.into_iter().next_back().ok_or_else(missing)?;
        }
        Ok(lowest)
    }

    /// Adds the ancestors that the verified chain has, and those whose fees REMASC pays in the first blocks of the fork, if the
    /// network's maturity is at most [`MOST_FOR_REMASC`].
    ///
    /// # Errors
    /// [`super::Stop`]
    pub fn ancestors(&self, exchanges: &mut Exchanges, state: &mut ForkState) -> Fetched<()> {
        let number = state.block.number;
        for header in self
            .chain
            .iter()
            .flat_map(|chain| (chain.lowest()..number).rev().filter_map(|height| chain.by_number(height)))
        {
            state.add_header(header.clone());
        }
        let maturity = state.network.params.remasc_maturity;
        if maturity <= MOST_FOR_REMASC {
            let oldest = number.saturating_add(1).saturating_sub(maturity).max(1).min(number);
            fetch_linked(exchanges, state, oldest)?;
        }
        state.set_first_rewarded();
        Ok(())
    }
}
