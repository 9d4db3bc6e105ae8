//! Work for outside miners (`mnr_*`): blocks that wait for the Bitcoin block that names them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::error::DevError;
use super::recipe::Assembled;
use crate::consensus::mining::BitcoinWork;
use crate::consensus::{verify_merged_mining, Network};
use crate::types::SealedHeader;

/// Blocks that wait at the same time, as in the reference.
const MAX_WAITING: usize = 20;
/// Seconds after which work is built anew.
const REFRESH_SECONDS: u64 = 60;

/// What a miner is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// What the Bitcoin coinbase must name.
    pub mining_hash: B256,
    /// The largest Bitcoin hash that will do, as a number.
    pub target: U256,
    /// Fees of the block's transactions, in wei.
    pub fees: U256,
    /// Whether it is worth to drop the work before it.
    pub notify: bool,
    /// Hash of the parent block.
    pub parent: B256,
}

/// A block waiting for its proof of work.
#[derive(Debug, Clone)]
struct Waiting {
    mining_hash: B256,
    block: Assembled,
}

/// All work that was given out and is not too old.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkShop {
    waiting: VecDeque<Waiting>,
    current: Option<Current>,
    /// Parent and fees of the work that miners were last told to start.
    told: Option<(B256, U256)>,
}

/// What the newest work was built from.
#[derive(Debug, Clone)]
struct Current {
    work: Work,
    built: u64,
    arrivals: u64,
}

impl WorkShop {
    /// The newest work, if it is still that of this parent and this pool; miners are told of it once.
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

    /// Keeps a block whose coinbase must name `mining_hash`.
    pub(super) fn offer(&mut self, block: Assembled, mining_hash: B256, arrivals: u64, now: u64) {
        let (parent, fees) = (block.header.parent_hash, block.header.paid_fees);
        // More than twice the fees are worth another start.
        let notify = self
            .told
            .is_none_or(|(told, before)| told != parent || fees > before.saturating_mul(U256::from(2)));
        if notify {
            self.told = Some((parent, fees));
        }
        let target = target(block.header.difficulty.value());
        let work = Work { mining_hash, target, fees, notify, parent };
        self.current = Some(Current { work, built: now, arrivals });
        self.waiting.retain(|other| other.mining_hash != mining_hash);
        self.waiting.push_back(Waiting { mining_hash, block });
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
    }

    /// The block that a Bitcoin block names, with its proof of work, checked.
    ///
    /// # Errors
    /// [`DevError::UnknownWork`], [`DevError::InvalidWork`].
    pub(super) fn solve(
        &self,
        bitcoin: &BitcoinWork,
        named: B256,
        network: &Network,
    ) -> Result<(SealedHeader, Assembled), DevError> {
        let waiting = self.waiting.iter().find(|waiting| waiting.mining_hash == named);
        let block = waiting.ok_or(DevError::UnknownWork(named))?.block.clone();
        let rules = network.rules(block.header.number);
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

    /// Forgets everything, when the chain goes back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The largest hash that meets a difficulty: `2^256 / difficulty`, difficulties below 3 counting as 3.
fn target(difficulty: U256) -> U256 {
    let difficulty = difficulty.max(U256::from(3));
    let target = U256::MAX.checked_div(difficulty).unwrap_or_default();
    // 2^256 is divided, not the largest number.
    let remainder = U256::MAX.checked_rem(difficulty).unwrap_or_default();
    if remainder.saturating_add(U256::from(1)) == difficulty {
        return target.saturating_add(U256::from(1));
    }
    target
}

/// A Bitcoin header with its coinbase and the branch above it, taken apart from what a miner submits.
impl BitcoinWork {
    /// From a header, the coinbase, and the hashes of all transactions (internal byte order), the coinbase's first.
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
    fn the_target_of_regtest_is_a_third() {
        let third = U256::from_be_bytes([0x55; 32]);
        assert_eq!(target(U256::from(1)), third);
        assert_eq!(target(U256::from(3)), third);
        assert_eq!(target(U256::from(4)), U256::from(1) << 254);
    }
}
