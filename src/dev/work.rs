//! Work for external miners (methods `mnr_*`): blocks of the development chain without proof of work, each of which waits for a Bitcoin
//! block whose coinbase names it. [`super::DevChain::work`] and [`super::DevChain::submit_work`] use this file.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::error::DevError;
use super::miner_settings::Assembled;
use crate::consensus::mining::BitcoinWork;
use crate::consensus::{Network, verify_merged_mining};
use crate::types::SealedHeader;

/// The largest number of blocks that wait at the same time, as in the reference node.
const MAX_WAITING: usize = 20;
/// Seconds after which a new block is built although neither parent nor pool has changed.
const REFRESH_SECONDS: u64 = 60;

/// The work that a miner receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The hash that the Bitcoin coinbase must contain.
    pub mining_hash: B256,
    /// The largest Bitcoin block hash that proves the work, as a number.
    pub target: U256,
    /// Fees of the block's transactions, in wei.
    pub fees: U256,
    /// Whether miners should abandon earlier work for this work.
    pub notify: bool,
    /// Hash of the parent block.
    pub parent: B256,
}

/// A block waiting for its proof of work.
#[derive(Debug, Clone)]
struct UnsealedBlock {
    mining_hash: B256,
    block: Assembled,
}

/// All work that was given to miners and is not too old.
#[derive(Debug, Clone, Default)]
pub(super) struct MinerWork {
    /// At most [`MAX_WAITING`] blocks, the oldest first.
    waiting: VecDeque<UnsealedBlock>,
    current: Option<CurrentWork>,
    /// Parent and fees of the last work that had `notify` set.
    last_notified: Option<(B256, U256)>,
}

/// The newest work.
#[derive(Debug, Clone)]
struct CurrentWork {
    work: Work,
    /// The host's time in seconds since 1970 when the block was built.
    built: u64,
    /// The pool's count of arrivals then ([`super::pool::Pool::arrivals`]).
    arrivals: u64,
}

impl MinerWork {
    /// Returns the newest work if it has this parent, the pool has no new transactions since, and it is not too old. The field `notify` is
    /// set the first time only. `now` is in seconds since 1970.
    pub(super) fn current(&mut self, parent: &B256, arrivals: u64, now: u64) -> Option<Work> {
        let current = self.current.as_mut()?;
        let fresh = current.work.parent == *parent
            && current.arrivals == arrivals
            && now.saturating_sub(current.built) < REFRESH_SECONDS;
        if !fresh {
            return None;
        }
        let work = current.work.clone();
        current.work.notify = false;
        Some(work)
    }

    /// Adds a block; the Bitcoin coinbase that proves it must contain `mining_hash`.
    pub(super) fn offer(&mut self, block: Assembled, mining_hash: B256, arrivals: u64, now: u64) {
        let (parent, fees) = (block.header.parent_hash, block.header.paid_fees);
        // Miners should restart when the fees have more than doubled.
        let notify = self.last_notified.is_none_or(|(last_notified, before)| {
            last_notified != parent || fees > before.saturating_mul(U256::from(2))
        });
        if notify {
            self.last_notified = Some((parent, fees));
        }
        let target = target(block.header.difficulty.value());
        let work = Work { mining_hash, target, fees, notify, parent };
        self.current = Some(CurrentWork { work, built: now, arrivals });
        self.waiting.retain(|other| other.mining_hash != mining_hash);
        self.waiting.push_back(UnsealedBlock { mining_hash, block });
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
    }

    /// Returns the waiting block with the mining hash `named`, sealed with the Bitcoin block as its proof of work, which is verified.
    pub(super) fn solve(
        &self,
        bitcoin: &BitcoinWork,
        named: B256,
        network: &Network,
    ) -> Result<(SealedHeader, Assembled), DevError> {
        let waiting = self.waiting.iter().find(|waiting| waiting.mining_hash == named);
        let block = waiting.ok_or(DevError::UnknownWork(named))?.block.clone();
        let rules = network.rules(block.header.number);
        // Sealing fails only if the coinbase has no tag; `named`, which was found, is read from the tag.
        let sealed = bitcoin.seal(block.header.clone(), rules).ok_or(DevError::UnknownWork(named))?;
        if verify_merged_mining(&sealed, network).is_err() {
            return Err(DevError::InvalidWork {
                block: sealed.hash(),
                mining_hash: named,
                number: sealed.number,
            });
        }
        Ok((sealed, block))
    }

    /// Removes all work, for instance when the chain is reverted.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The largest Bitcoin block hash that meets a difficulty: `2^256 / difficulty`. Difficulties below 3 count as 3, as in the check of the
/// proof of work.
fn target(difficulty: U256) -> U256 {
    let difficulty = difficulty.max(U256::from(3));
    let target = U256::MAX.checked_div(difficulty).unwrap_or_default();
    // The dividend is 2^256, one more than U256::MAX.
    let remainder = U256::MAX.checked_rem(difficulty).unwrap_or_default();
    if remainder.saturating_add(U256::from(1)) == difficulty {
        return target.saturating_add(U256::from(1));
    }
    target
}

/// Builds the proof from the parts that a miner submits.
impl BitcoinWork {
    /// Makes the proof from a header, the coinbase, and the hashes of all transactions (internal byte order, the
    /// coinbase's first).
    #[must_use]
    pub fn with_transactions(header: [u8; 80], coinbase: Vec<u8>, hashes: &[B256]) -> Self {
        let branch = crate::consensus::mining::first_branch(hashes);
        let transactions = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
        Self { header, coinbase, branch, transactions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_difficulties_up_to_three_is_a_third_of_all_hashes() {
        let third = U256::from_be_bytes([0x55; 32]);
        assert_eq!(target(U256::from(1)), third);
        assert_eq!(target(U256::from(3)), third);
        assert_eq!(target(U256::from(4)), U256::from(1) << 254);
    }
}
