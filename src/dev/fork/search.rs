//! The search for the block on which a chain begins.

use alloc::format;
use alloc::sync::Arc;

use alloy_primitives::B256;

use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched};
use super::headers::{below, fetch_linked, nearest, trusted_block, trusted_header};
use super::state::ForkState;
use crate::consensus::{ChainView, Network, VerifiedHeader};

/// Ancestors that are fetched for REMASC, at most. Where it pays later, as on the public networks after 4,000 blocks, it pays
/// from those that are verified anyway.
pub const MOST_FOR_REMASC: u64 = 64;

/// The block on which a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkBlock {
    /// The newest verified one.
    Head,
    /// The block at a height of the verified chain.
    Number(u64),
    /// A trusted block, by height and hash.
    Trusted(u64, B256),
}

/// A search for a block, which goes on with each response.
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

    /// Headers between the lowest that was linked and the block.
    #[must_use]
    pub fn to_go(&self) -> u64 {
        let number = match self.block {
            ForkBlock::Number(number) => number,
            ForkBlock::Head | ForkBlock::Trusted(..) => return 0,
        };
        self.reached.as_ref().map_or(0, |reached| reached.number.saturating_sub(number))
    }

    /// Looks for the header of the block: hashes lead to it from the verified chain, or its own is trusted.
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
        let mut at = match self.reached.take() {
            Some(reached) => reached,
            None => nearest(exchanges, chain, number)?,
        };
        while at.number > number {
            let begun = exchanges.used();
            let linked = below(exchanges, &self.network, self.reached.insert(at), number)?;
            exchanges.forget(begun);
            let missing = || ForkError::Unverified(format!("it does not have block {number}"));
            at = linked.into_iter().next_back().ok_or_else(missing)?;
        }
        Ok(at)
    }

    /// Adds the ancestors that the verified chain has, and those from which REMASC pays soon.
    ///
    /// # Errors
    /// [`super::Stop`]
    pub fn ancestors(&self, exchanges: &mut Exchanges, state: &mut ForkState) -> Fetched<()> {
        let number = state.block.number;
        for header in self
            .chain
            .iter()
            .flat_map(|chain| (chain.lowest()..number).rev().filter_map(|at| chain.by_number(at)))
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
