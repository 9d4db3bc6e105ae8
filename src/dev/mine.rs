//! Mining: per transaction, by the clock, on demand, and with external miners.

use super::bitcoin::Submission;
use super::block_limits::{BlockLimits, MAX_BLOCKS_AT_ONCE};
use super::chain::{DevChain, DevEvent};
use super::config::Mining;
use super::error::DevError;
use super::miner_settings::Assembled;
use super::work::Work;
use crate::consensus::HeadChange;
use crate::consensus::mining::{BitcoinWork, hash_to_commit};
use crate::exec::TxError;
use crate::local::{ImportError, Imported};
use crate::types::{B256, FORK_DETECTION_LEN, Header, SealedHeader, Transaction};

/// The largest number of nonces of the Bitcoin header that are tried for one block; regtest needs three on average. A network of high
/// difficulty gets an error after these, instead of a message that never ends.
const ATTEMPTS: u32 = 1 << 22;

/// The seconds between the blocks of one request, in [`DevChain::mine_many`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// The clock determines the timestamps.
    Clock,
    /// This number of seconds before each block, as in anvil's `anvil_mine`.
    Each(u64),
    /// This number of seconds before each block but the first, as in hardhat's `hardhat_mine`.
    Later(u64),
}

impl DevChain {
    /// Mines a block with the transactions of the pool. `now` is the host's time in seconds since 1970.
    ///
    /// # Errors
    /// The difficulty is too high, or the block cannot be built.
    pub fn mine(&mut self, now: u64) -> Result<Imported, DevError> {
        let block = self.assemble(now)?;
        let network = self.chain.view().network();
        let difficulty = block.header.difficulty.value();
        let rules = network.rules(block.header.number);
        let work = self.bitcoin_work(&block.header).solved(difficulty, ATTEMPTS);
        let work = work.ok_or(DevError::Difficulty(difficulty))?;
        // Sealing fails only without a tag in the coinbase, and `bitcoin_work` commits to the header by one.
        let sealed = work.seal(block.header.clone(), rules).ok_or(DevError::Difficulty(difficulty))?;
        let imported = self.append(sealed, block, now)?;
        self.last_tick = Some(now);
        if let Some(bitcoin) = &self.bitcoin {
            bitcoin.add_merge_mined(&work);
        }
        Ok(imported)
    }

    /// The Bitcoin block that is to prove the work of a header, still without its nonce. If the host simulates no Bitcoin chain, the
    /// block has no real parent.
    fn bitcoin_work(&self, header: &Header) -> BitcoinWork {
        let hash = hash_to_commit(header, &self.fork_detection());
        match &self.bitcoin {
            Some(bitcoin) => bitcoin.next(&hash, header.timestamp),
            None => BitcoinWork::new(&hash, u32::try_from(header.timestamp).unwrap_or(u32::MAX)),
        }
    }

    /// Builds the next block within the host's time limit.
    fn assemble(&mut self, now: u64) -> Result<Assembled, DevError> {
        if !self.interrupts.next_block() {
            return Err(DevError::TimeLimit { mined: 0 });
        }
        self.clock.next_time(self.chain.head().timestamp, now)?;
        let interrupt = || self.interrupts.is_due();
        let block =
            self.miner_settings.assemble(self.chain.view(), &self.pool, &self.clock, now, &interrupt)?;
        if self.interrupts.is_stopping() {
            return Err(DevError::Stopping);
        }
        Ok(block)
    }

    /// Mines `count` blocks.
    ///
    /// # Errors
    /// As [`Self::mine`]. Nothing has changed then.
    pub fn mine_many(&mut self, count: u64, spacing: Spacing, now: u64) -> Result<(), DevError> {
        if count > MAX_BLOCKS_AT_ONCE {
            return Err(DevError::TooManyBlocks { count, most: MAX_BLOCKS_AT_ONCE });
        }
        self.change_atomically(|chain| {
            (0..count).try_for_each(|index| {
                match spacing {
                    Spacing::Each(seconds) => chain.space(seconds, now)?,
                    Spacing::Later(seconds) if index > 0 => chain.space(seconds, now)?,
                    Spacing::Clock | Spacing::Later(_) => {}
                }
                chain.mine_after(index, now).map(drop)
            })
        })
    }

    /// Sets the timestamp of the next block by [`super::Clock::space`].
    fn space(&mut self, seconds: u64, now: u64) -> Result<(), DevError> {
        self.clock.space(seconds, self.chain.head().timestamp, now)
    }

    /// Mines a block after `mined` others of the same request, a number that the error of an expired time limit states.
    pub(super) fn mine_after(&mut self, mined: u64, now: u64) -> Result<Imported, DevError> {
        self.mine(now).map_err(|error| match error {
            DevError::TimeLimit { .. } => DevError::TimeLimit { mined },
            other => other,
        })
    }

    /// Mines a block, and further ones while they include transactions of the pool. If the remaining transactions need a gas limit or
    /// gas price that only a later block allows ([`BlockLimits`]), the blocks before that one are mined too.
    pub(super) fn mine_pool(&mut self, now: u64) -> Result<(), DevError> {
        let mut mined = 0_u64;
        loop {
            for _ in 0..self.blocks_before_pool().unwrap_or(0) {
                self.mine_after(mined, now)?;
                mined = mined.saturating_add(1);
            }
            let imported = self.mine_after(mined, now)?;
            mined = mined.saturating_add(1);
            let block = self.chain.view().block(&imported.header.hash());
            // The last transaction is REMASC's. A block without others ends the loop: what is left stays out for another reason.
            let is_empty = block.is_none_or(|block| block.body.transactions().len() <= 1);
            if is_empty || self.pool.pending_len() == 0 {
                return Ok(());
            }
        }
    }

    /// The number of blocks before the first one that can hold a transaction of the pool: 0 for the next block. `None` if no block
    /// can.
    fn blocks_before_pool(&self) -> Option<u64> {
        let first_of_senders = self.pool.pending().into_values().filter_map(|list| list.into_iter().next());
        first_of_senders.filter_map(|pooled| self.blocks_before(&pooled.transaction)).min()
    }

    /// See [`BlockLimits::blocks_before`], from the head on.
    fn blocks_before(&self, transaction: &Transaction) -> Option<u64> {
        let (head, network) = (self.chain.head(), self.chain.view().network());
        let rules = network.rules(head.number.saturating_add(1));
        BlockLimits::of(head).blocks_before(transaction, &self.miner_settings.target(), network, rules)
    }

    /// With interval mining, mines a block if one is due. Returns whether it did.
    pub fn tick(&mut self, now: u64) -> Result<bool, DevError> {
        let Mining::Interval(seconds) = self.mining else { return Ok(false) };
        let last = *self.last_tick.get_or_insert(now);
        if now.saturating_sub(last) < seconds {
            return Ok(false);
        }
        // `mine` sets `last_tick`.
        self.mine(now).map(|_| true)
    }

    /// Sets when blocks are mined. Instant mining mines the transactions of the pool at once.
    ///
    /// # Errors
    /// As [`Self::mine`]. Nothing has changed then.
    pub fn set_mining(&mut self, mining: Mining, now: u64) -> Result<(), DevError> {
        self.change_atomically(|chain| {
            chain.mining = mining;
            chain.paused = None;
            chain.last_tick = Some(now);
            match mining == Mining::Instant && chain.pool.pending_len() > 0 {
                true => chain.mine_pool(now),
                false => Ok(()),
            }
        })
    }

    /// Mines on demand only, until [`Self::resume`].
    pub fn pause(&mut self) {
        if self.mining != Mining::Manual {
            self.paused = Some(core::mem::replace(&mut self.mining, Mining::Manual));
        }
    }

    /// Restores the mining mode from before [`Self::pause`].
    ///
    /// # Errors
    /// As [`Self::set_mining`].
    pub fn resume(&mut self, now: u64) -> Result<(), DevError> {
        match self.paused {
            Some(mining) => self.set_mining(mining, now),
            None => Ok(()),
        }
    }

    /// The fork-detection data of a child of the head, which its Bitcoin coinbase contains (RSKIP-110); zeros if the chain is too short.
    pub(super) fn fork_detection(&self) -> [u8; FORK_DETECTION_LEN] {
        let head = self.chain.head().hash();
        self.chain.view().headers().fork_detection_after(&head).unwrap_or_default()
    }

    /// Adds a sealed block to the chain, and updates clock and pool.
    fn append(&mut self, sealed: SealedHeader, block: Assembled, now: u64) -> Result<Imported, DevError> {
        let Assembled { uncles, transactions, executed, dropped, .. } = block;
        let time = sealed.timestamp;
        let imported = self.chain.append(sealed, uncles, transactions, executed)?;
        self.clock.mined(time, now);
        for (hash, error) in dropped {
            if error.is_interruption() {
                self.slow.push(hash);
                self.note(DevEvent::TooSlow { hash });
            }
            if never_minable(&error) || is_price(&error) && !self.fits_later_block(&hash) {
                self.pool.remove(&hash);
            }
        }
        self.follow(&imported.change);
        self.report(&imported);
        Ok(imported)
    }

    /// Whether one of the next blocks can hold a transaction of the pool ([`BlockLimits::blocks_before`]).
    fn fits_later_block(&self, hash: &B256) -> bool {
        self.pool.get(hash).is_some_and(|pooled| self.blocks_before(&pooled.transaction).is_some())
    }

    /// Records the events of an imported block, unless the block is no new head.
    fn report(&mut self, imported: &Imported) {
        if matches!(imported.change, HeadChange::Known | HeadChange::Side) {
            return;
        }
        let (header, hash) = (imported.header.clone(), imported.header.hash());
        let Some(stored) = self.chain.view().block(&hash).cloned() else { return };
        let transactions = stored.body.transactions().len().saturating_sub(1);
        self.note(DevEvent::Mined { header, transactions });
        for (index, method) in &imported.unsimulated {
            if let Some(hash) = stored.body.hashes().get(*index) {
                let method = alloc::format!("{method}");
                self.note(DevEvent::Unsimulated { hash: *hash, method });
            }
        }
        if stored.receipts.receipts().iter().any(|receipt| !receipt.success) {
            for (hash, output, halt) in self.failures(&hash) {
                self.note(DevEvent::Failed { hash, output, halt });
            }
        }
    }

    /// Returns work for an external miner: the next block.
    ///
    /// # Errors
    /// The block cannot be built.
    pub fn work(&mut self, now: u64) -> Result<Work, DevError> {
        let (parent, arrivals) = (self.chain.head().hash(), self.pool.arrivals());
        if let Some(work) = self.work.current(&parent, arrivals, now) {
            return Ok(work);
        }
        let block = self.assemble(now)?;
        let mining_hash = hash_to_commit(&block.header, &self.fork_detection());
        self.work.offer(block, mining_hash, arrivals, now);
        // `offer` has just stored the work for this parent, so the error is not reached.
        self.work.current(&parent, arrivals, now).ok_or(DevError::UnknownWork(mining_hash))
    }

    /// Seals and appends the block to which an external miner's Bitcoin block commits.
    ///
    /// # Errors
    /// Unknown work, an invalid proof of work, or a block that the chain refuses.
    pub fn submit_work(&mut self, submission: &Submission, now: u64) -> Result<Imported, DevError> {
        let network = self.chain.view().network();
        let (sealed, block) = self.work.solve(&submission.work, submission.named, network)?;
        self.append(sealed, block, now)
    }

    /// Imports a complete block from another source after verifying and executing it. `now` is the time in seconds since 1970;
    /// without it, timestamps in the future are accepted.
    ///
    /// # Errors
    /// The rule that the block breaks, or that the host interrupted its execution. The chain is unchanged then.
    pub fn import(&mut self, block: crate::types::Block, now: Option<u64>) -> Result<Imported, ImportError> {
        let imported = self.chain.import_until(block, now, &|| self.interrupts.is_due())?;
        self.follow(&imported.change);
        self.report(&imported);
        Ok(imported)
    }
}

/// Whether a transaction that fails like this cannot be in any later block either.
const fn never_minable(error: &TxError) -> bool {
    matches!(
        error,
        TxError::InitCodeSize { .. }
            | TxError::Intrinsic { .. }
            | TxError::NoBlakeData
            | TxError::Signature(_)
            | TxError::NotExecuted(_)
            | TxError::Remasc
    )
}

/// Whether a block's rules on prices refuse a transaction. Another block's may not.
const fn is_price(error: &TxError) -> bool {
    matches!(error, TxError::MinimumGasPrice { .. } | TxError::GasPriceCap { .. })
}
