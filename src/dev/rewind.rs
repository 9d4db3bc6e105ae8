//! Removes the newest blocks of the chain (`anvil_rollback`) or replaces them by others (`anvil_reorg`), for tests of reorganisations.

use super::block_limits::MAX_BLOCKS_AT_ONCE;
use super::chain::{DevChain, DevEvent};
use super::config::Mining;
use super::error::DevError;

impl DevChain {
    /// Removes the newest `depth` blocks with their transactions, so that chain and state are as before these blocks. The pool, the
    /// clock and snapshots stay.
    ///
    /// # Errors
    /// [`DevError::TooDeep`] if the chain has fewer blocks, or no longer has the state before the removed ones.
    pub fn rollback(&mut self, depth: u64) -> Result<(), DevError> {
        let head = self.chain.head().number;
        let rewound = head.checked_sub(depth).and_then(|number| self.chain.rewound(number));
        self.chain.replace(rewound.ok_or(DevError::TooDeep { depth, head })?);
        self.work.clear();
        self.settle_all();
        Ok(())
    }

    /// Replaces the newest `depth` blocks by as many others. `fill` gets the index of each new block and adds the block's transactions
    /// to the pool, which has no other transactions then. `now` is the host's time in seconds since 1970. After an error nothing has
    /// changed.
    ///
    /// # Errors
    /// The errors of [`Self::rollback`], [`Self::mine`] and `fill`; [`DevError::NotMined`] if a block cannot hold all its
    /// transactions.
    pub fn reorganise<E: From<DevError>>(
        &mut self,
        depth: u64,
        now: u64,
        fill: &mut dyn FnMut(&mut Self, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if depth > MAX_BLOCKS_AT_ONCE {
            return Err(DevError::TooManyBlocks { count: depth, most: MAX_BLOCKS_AT_ONCE }.into());
        }
        self.change_atomically(|chain| chain.replace_blocks(depth, now, fill))
    }

    /// As [`Self::reorganise`]; after an error the caller undoes all changes.
    fn replace_blocks<E: From<DevError>>(
        &mut self,
        depth: u64,
        now: u64,
        fill: &mut dyn FnMut(&mut Self, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        // With instant mining, `fill` would mine a block for each transaction.
        let mining = core::mem::replace(&mut self.mining, Mining::Manual);
        let waiting = self.pool.clone();
        self.pool.clear();
        let first = self.chain.head().number.saturating_sub(depth).saturating_add(1);
        let replaced = self.chain.view().headers().by_number(first).map(|header| header.timestamp);
        self.rollback(depth)?;
        // The first new block must differ from the block that it replaces even if neither has a transaction.
        let parent = self.chain.head().timestamp;
        let time = self.clock.block_time(parent, now);
        if replaced == Some(time) {
            self.clock.set_next(time.saturating_add(1), parent)?;
        }
        for index in 0..depth {
            fill(self, index)?;
            let wanted = self.pool.pending_len().saturating_add(self.pool.queued_len());
            let hash = self.mine_after(index, now)?.header.hash();
            // Mining drops transactions that no block can take. The last one of each block is REMASC's.
            let mined = self.chain.view().block(&hash).map_or(0, |block| block.body.transactions().len());
            if mined.saturating_sub(1) != wanted {
                return Err(DevError::NotMined.into());
            }
        }
        self.mining = mining;
        self.pool = waiting;
        self.settle_all();
        let blocks = usize::try_from(depth).unwrap_or(usize::MAX);
        self.note(DevEvent::Reorganised { removed: blocks, added: blocks });
        Ok(())
    }
}
