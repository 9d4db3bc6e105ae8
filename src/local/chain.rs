//! The locally executed chain: imports blocks and keeps their states.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::error::ImportError;
use super::events::{ChainEvent, EventBlock, Events};
use super::fork::ForkBase;
use super::impersonated::marked_sender;
use super::index::BlockIndex;
use super::side_blocks::{MAX_SIDE_BLOCKS, MAX_SIDE_BYTES, SideBlocks};
use super::snapshot::ChainSnapshot;
use super::stored_block::StoredBlock;
use crate::consensus::{
    BodyError, ChainError, CheckedHeader, Checkpoint, HeadChange, HeaderCandidate, HeaderChain, Network,
    Rule, VerifiedBody, VerifiedHeader, VerifiedReceipts,
};
use crate::evm::precompiles::Unsimulated;
use crate::exec::{BlockContext, BlockInput, ExecutedBlock, NoObserver, OnUnsimulated, Recovery, execute_in};
use crate::trie::Trie;
use crate::types::{Asker, Block, Header, Receipt, SealedHeader, SenderError, Transaction};

/// The result of importing a block.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The header of the block.
    pub header: VerifiedHeader,
    /// The effect on the head.
    pub change: HeadChange,
    /// Calls of native-contract methods that failed because this version does not implement them: the transaction's
    /// index and the method. State and receipts of an imported block are still those of its header; its traces are not
    /// known.
    pub unsimulated: Vec<(usize, Unsimulated)>,
}

/// An executed block with its resulting state, without later changes by [`LocalChain::set_head_state`].
#[derive(Debug, Clone)]
pub struct BlockState {
    /// Hash of the block.
    pub block: B256,
    /// The state after the block.
    pub state: Trie,
}

/// A chain of executed blocks with the states after the newest ones. A block that fails a check leaves the chain
/// unchanged.
#[derive(Debug, Clone)]
pub struct LocalChain {
    headers: HeaderChain,
    /// The current snapshot for readers; its headers are those of `headers`.
    snapshot: ChainSnapshot,
    /// The number of blocks below the head whose states are kept; `None` keeps all.
    history: Option<u64>,
    /// States of blocks below this height have been dropped.
    lowest_state: u64,
    /// States of the blocks executed since the last [`Self::take_block_states`], for the host to store.
    block_states: Vec<BlockState>,
    /// Number and size of the blocks outside the canonical chain.
    side_blocks: SideBlocks,
    /// Recovers the senders of imported transactions; `None` recovers one after the other on the importing thread.
    recovery: Option<Arc<dyn Recovery>>,
}

impl LocalChain {
    /// Makes a chain of block 0 and the state after it. States of blocks more than `history` below the head are
    /// dropped; the head's state is always kept.
    ///
    /// # Errors
    /// The header does not have the hash of the network's genesis block.
    pub fn new(
        network: Arc<Network>,
        genesis: SealedHeader,
        state: Trie,
        history: Option<u64>,
    ) -> Result<Self, ChainError> {
        let mut chain = Self::with_headers(HeaderChain::from_genesis(network, genesis)?, None, history);
        let header = chain.headers.head().clone();
        chain.store(&header, Vec::new(), Vec::new(), Vec::new(), Some(state));
        Ok(chain)
    }

    /// Makes a chain that begins after a block of another network, with the state after that block. `history` has the same
    /// meaning as in [`Self::new`].
    ///
    /// # Errors
    /// None: the chain's checkpoint is made of the header that it is compared with.
    pub fn above(
        network: Arc<Network>,
        fork: Arc<dyn ForkBase>,
        state: Trie,
        history: Option<u64>,
    ) -> Result<Self, ChainError> {
        let header = fork.block().clone();
        let (number, hash) = (header.number, header.hash());
        let start = Checkpoint { number, hash, total_difficulty: None };
        let headers = HeaderChain::from_checkpoint(network, &start, header.sealed().clone())?;
        let mut chain = Self::with_headers(headers, Some(fork), history);
        chain.lowest_state = number;
        chain.snapshot.states.insert(hash, state);
        chain.snapshot.hashes_by_height.insert(number, Arc::new(alloc::vec![hash]));
        Ok(chain)
    }

    /// A chain of these headers, without bodies, receipts and states.
    fn with_headers(headers: HeaderChain, fork: Option<Arc<dyn ForkBase>>, history: Option<u64>) -> Self {
        // An executed chain keeps every canonical header, and `drop_excess_side_blocks` limits the others.
        let headers = headers.with_window(u64::MAX).with_side_limit(usize::MAX);
        let snapshot = ChainSnapshot {
            headers: headers.snapshot(),
            blocks: Default::default(),
            states: Default::default(),
            transactions: Default::default(),
            hashes_by_height: Default::default(),
            index: None,
            codes: None,
            events: Events::default(),
            fork,
        };
        Self {
            headers,
            snapshot,
            history,
            lowest_state: 0,
            block_states: Vec::new(),
            side_blocks: SideBlocks::default(),
            recovery: None,
        }
    }

    /// A snapshot of the chain for readers.
    pub fn snapshot(&self) -> ChainSnapshot {
        self.snapshot.clone()
    }

    /// The current snapshot of the chain.
    pub const fn view(&self) -> &ChainSnapshot {
        &self.snapshot
    }

    /// Sets the index to which blocks are added when they become canonical. The index must already contain the present
    /// canonical blocks, or return each of them in every search.
    pub fn set_index(&mut self, index: Arc<dyn BlockIndex>) {
        self.snapshot.index = Some(index);
    }

    /// Sets the cache of analysed code that calls on the chain share.
    pub fn set_codes(&mut self, codes: Arc<dyn crate::exec::SharedCodes>) {
        self.snapshot.codes = Some(codes);
    }

    /// Sets the recovery of the senders of imported transactions.
    pub fn set_recovery(&mut self, recovery: Arc<dyn Recovery>) {
        self.recovery = Some(recovery);
    }

    /// The number of blocks below the head whose states are kept; `None` if all are.
    #[cfg(feature = "dev")]
    pub(crate) const fn history(&self) -> Option<u64> {
        self.history
    }

    /// Uses the index and the caches of another chain.
    #[cfg(feature = "dev")]
    pub(crate) fn share_caches(&mut self, other: &Self) {
        self.snapshot.index.clone_from(&other.snapshot.index);
        self.snapshot.codes.clone_from(&other.snapshot.codes);
    }

    /// The head of the canonical chain.
    pub fn head(&self) -> &VerifiedHeader {
        self.snapshot.head()
    }

    /// Imports a block. Checks header and uncle rules and the transactions, executes the block, compares every root,
    /// then applies fork choice. `now` is the time in seconds since 1970; without it, timestamps in the future are
    /// accepted.
    ///
    /// # Errors
    /// The first rule that the block breaks. The chain is unchanged then.
    pub fn import(&mut self, block: Block, now: Option<u64>) -> Result<Imported, ImportError> {
        self.import_until(block, now, &|| false)
    }

    /// As [`Self::import`], but stops executing when `interrupt` returns true.
    ///
    /// # Errors
    /// As [`Self::import`]; the error of an interrupted block names the transaction that was running.
    pub fn import_until(
        &mut self,
        block: Block,
        now: Option<u64>,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<Imported, ImportError> {
        let Block { header, body, uncles } = block;
        let candidate = HeaderCandidate::from(header);
        if let Some(known) = self.imported_before(candidate.header().hash()) {
            return Ok(known);
        }
        let checked = self.headers.check_block(candidate, uncles, now)?;
        let header = checked.header().clone();
        let fail = |error| ImportError::Execution { number: header.number, hash: header.hash(), error };
        let state = self.snapshot.state(&header.parent_hash).ok_or_else(|| ImportError::NoState {
            number: header.number,
            hash: header.hash(),
            parent: header.parent_hash,
        })?;
        let input = BlockInput { header: header.header(), transactions: &body.transactions, senders: None };
        let ancestry = self.snapshot.ancestry(header.parent_hash);
        let network = self.snapshot.network();
        let mut context = BlockContext::new(network, header.header().into(), &ancestry);
        context.interrupt = interrupt;
        // Since RSKIP-126 the header's state root is that of our trie format, so `check` below compares the whole result. Execution
        // therefore goes on when a call fails because its method is not implemented here: if failing was wrong, the roots differ.
        if network.active(Rule::Rskip126, header.number) {
            context.unsimulated = OnUnsimulated::Fail;
        }
        context.recovery = self.recovery.as_deref();
        let executed = execute_in(&context, state, &input, &mut NoObserver).map_err(fail)?;
        executed.check(&header, network).map_err(fail)?;
        Ok(self.accept_executed(checked, body.transactions, executed))
    }

    /// Appends a block that was built and executed here, so that its roots follow from its execution. Checks header
    /// and uncle rules.
    ///
    /// # Errors
    /// The header or uncle rule that the block breaks. The chain is unchanged then.
    pub fn append(
        &mut self,
        header: SealedHeader,
        uncles: Vec<Header>,
        transactions: Vec<Transaction>,
        executed: ExecutedBlock,
    ) -> Result<Imported, ImportError> {
        if let Some(known) = self.imported_before(header.hash()) {
            return Ok(known);
        }
        let checked = self.headers.check_block(HeaderCandidate::from(header), uncles, None)?;
        Ok(self.accept_executed(checked, transactions, executed))
    }

    /// Restores a stored block that was executed before. Checks header and uncle rules, and transactions and receipts
    /// against the header; executes nothing. `state` is the state after the block, if the host has stored that state.
    ///
    /// # Errors
    /// The first check that fails. The chain is unchanged then.
    pub fn restore(
        &mut self,
        block: Block,
        receipts: Vec<Receipt>,
        state: Option<Trie>,
    ) -> Result<Imported, ImportError> {
        let Block { header, body, uncles } = block;
        let candidate = HeaderCandidate::from(header);
        if let Some(known) = self.imported_before(candidate.header().hash()) {
            return Ok(known);
        }
        let checked = self.headers.check_block(candidate, uncles, None)?;
        let header = checked.header().clone();
        let (number, hash) = (header.number, header.hash());
        let fail = |error: BodyError| ImportError::Body { number, hash, error };
        let network = self.snapshot.network();
        // Before RSKIP-126 headers commit to a trie of another format, so the root cannot be compared.
        let comparable = network.active(Rule::Rskip126, number);
        if let Some(state) = state.as_ref().filter(|state| comparable && state.root() != header.state_root) {
            let (found, expected) = (state.root(), header.state_root);
            return Err(ImportError::StoredState { number, hash, found, expected });
        }
        let body = VerifiedBody::check(&header, body.transactions, network).map_err(fail)?;
        VerifiedReceipts::check(&header, receipts.clone(), network)
            .and_then(|receipts| receipts.matches(&body))
            .map_err(fail)?;
        let senders = stored_senders(body.transactions(), network.chain_id)
            .map_err(|(index, error)| ImportError::Sender { number, hash, index, error })?;
        let transactions = body.transactions().to_vec();
        let restored = self.insert_checked(checked, transactions, receipts, senders, state, Vec::new());
        self.drop_beyond_limits();
        Ok(restored)
    }

    /// The result of importing a block that the chain already has.
    fn imported_before(&self, hash: B256) -> Option<Imported> {
        let header = self.headers.by_hash(&hash)?.clone();
        Some(Imported { header, change: HeadChange::Known, unsimulated: Vec::new() })
    }

    /// Takes the states of the blocks executed since the last call. The states of successive blocks share most of their
    /// nodes.
    pub fn take_block_states(&mut self) -> Vec<BlockState> {
        core::mem::take(&mut self.block_states)
    }

    /// Inserts a block that was executed here, and adds the events of the change to the canonical chain.
    fn accept_executed(
        &mut self,
        checked: CheckedHeader,
        transactions: Vec<Transaction>,
        executed: ExecutedBlock,
    ) -> Imported {
        let ExecutedBlock { state, receipts, senders, unsimulated, .. } = executed;
        self.block_states.push(BlockState { block: checked.header().hash(), state: state.clone() });
        let imported =
            self.insert_checked(checked, transactions, receipts, senders, Some(state), unsimulated);
        match &imported.change {
            HeadChange::Extended => self.push_event(&imported.header, ChainEvent::Connected),
            HeadChange::Reorganised(change) => {
                change.removed.iter().for_each(|header| self.push_event(header, ChainEvent::Removed));
                change.added.iter().for_each(|header| self.push_event(header, ChainEvent::Connected));
            }
            HeadChange::Side | HeadChange::Known => {}
        }
        // After the events, which take the blocks from the snapshot: the removed ones may be among those that are dropped.
        self.drop_beyond_limits();
        imported
    }

    /// Adds the event of a transaction that entered the pool and can be mined. `asker` has sent the transaction.
    pub fn note_pending(&mut self, hash: B256, asker: Option<Asker>) {
        self.snapshot.events.push(ChainEvent::Pending { hash, asker });
    }

    /// Adds the event of a block that joined or left the canonical chain. The snapshot still has the block, because callers add
    /// events before blocks beyond the limits are dropped.
    fn push_event(&mut self, header: &VerifiedHeader, event: fn(EventBlock) -> ChainEvent) {
        if let Some(block) = self.snapshot.blocks.get(&header.hash()).cloned() {
            self.snapshot.events.push(event(EventBlock { header: header.clone(), block }));
        }
    }

    /// Drops the events of a chain that a development tool keeps aside. If it returns with [`Self::replace`], the events of the
    /// chain that it replaces continue.
    pub fn forget_events(&mut self) {
        self.snapshot.events = Events::default();
    }

    /// Continues with another chain of the same genesis, for development tools. The events continue: the blocks that
    /// only this chain has are removed, those that only the other one has are connected.
    pub fn replace(&mut self, mut other: Self) {
        let (old, new) = (self.snapshot.headers.clone(), other.snapshot.headers.clone());
        let (mut common, mut removed) = (old.head().number, Vec::new());
        while let Some(header) =
            old.by_number(common).filter(|header| !new.is_canonical(common, &header.hash()))
        {
            removed.push(header);
            common = common.saturating_sub(1);
        }
        // `removed` is highest first; blocks are reported lowest first, as in `accept_executed`.
        removed.iter().rev().for_each(|header| self.push_event(header, ChainEvent::Removed));
        other.snapshot.events = core::mem::take(&mut self.snapshot.events);
        other.recovery.clone_from(&self.recovery);
        *self = other;
        for number in common.saturating_add(1)..=new.head().number {
            if let Some(header) = new.by_number(number) {
                self.push_event(header, ChainEvent::Connected);
            }
        }
    }

    /// A copy of the chain whose head is the canonical block of this height again, with the state after that block. `None` if
    /// the chain has no such block, or no longer its state.
    #[cfg(feature = "dev")]
    pub fn rewound(&self, number: u64) -> Option<Self> {
        let mut chain = self.clone();
        chain.snapshot.states.get(&chain.headers.by_number(number)?.hash())?;
        for hash in chain.headers.rewind(number)? {
            let stored = chain.snapshot.blocks.get(&hash).cloned();
            for transaction in stored.iter().flat_map(|stored| stored.body.hashes()) {
                if chain.snapshot.transactions.get(transaction).is_some_and(|(block, _)| *block == hash) {
                    chain.snapshot.transactions.remove(transaction);
                }
            }
            chain.side_blocks.remove(&hash);
            chain.snapshot.blocks.remove(&hash);
            chain.snapshot.states.remove(&hash);
        }
        let mut above = number.saturating_add(1);
        while !chain.snapshot.at_height(above).is_empty() {
            chain.snapshot.hashes_by_height.remove(&above);
            above = above.saturating_add(1);
        }
        chain.block_states.retain(|after| chain.snapshot.blocks.get(&after.block).is_some());
        chain.snapshot.headers = chain.headers.snapshot();
        Some(chain)
    }

    /// Inserts a block that passed every check: updates the header chain, the snapshot and the indexes. Adds no events, because
    /// restored blocks cause none. The caller then calls [`Self::drop_beyond_limits`].
    fn insert_checked(
        &mut self,
        checked: CheckedHeader,
        transactions: Vec<Transaction>,
        receipts: Vec<Receipt>,
        senders: Vec<Address>,
        state: Option<Trie>,
        unsimulated: Vec<(usize, Unsimulated)>,
    ) -> Imported {
        let inserted = self.headers.accept(checked);
        self.snapshot.headers = self.headers.snapshot();
        self.store(&inserted.header, transactions, receipts, senders, state);
        match &inserted.change {
            HeadChange::Extended => self.index(&inserted.header.hash()),
            HeadChange::Reorganised(change) => {
                change.removed.iter().for_each(|header| self.unindex(header));
                change.added.iter().for_each(|header| self.index(&header.hash()));
            }
            HeadChange::Side => self.add_side_block(&inserted.header),
            HeadChange::Known => {}
        }
        Imported { header: inserted.header, change: inserted.change, unsimulated }
    }

    /// Drops blocks and states beyond the limits.
    fn drop_beyond_limits(&mut self) {
        self.drop_excess_side_blocks();
        self.drop_old_states();
    }

    /// Adds a block to the snapshot, canonical or not.
    fn store(
        &mut self,
        header: &VerifiedHeader,
        transactions: Vec<Transaction>,
        receipts: Vec<Receipt>,
        senders: Vec<Address>,
        state: Option<Trie>,
    ) {
        let hash = header.hash();
        let body = Arc::new(VerifiedBody::executed(header, transactions));
        let receipts = Arc::new(VerifiedReceipts::executed(header, receipts));
        self.snapshot.blocks.insert(hash, Arc::new(StoredBlock { body, receipts, senders }));
        if let Some(state) = state {
            self.snapshot.states.insert(hash, state);
        }
        let mut hashes = self.snapshot.hashes_by_height.get(&header.number).cloned().unwrap_or_default();
        Arc::make_mut(&mut hashes).push(hash);
        self.snapshot.hashes_by_height.insert(header.number, hashes);
    }

    /// Counts a block outside the canonical chain towards the limits.
    fn add_side_block(&mut self, header: &VerifiedHeader) {
        let hash = header.hash();
        let size = self.snapshot.blocks.get(&hash).map_or(0, |stored| stored.size());
        self.side_blocks.insert(hash, header.number, size);
    }

    /// Adds a block that became canonical, and its transactions, to the indexes.
    fn index(&mut self, block: &B256) {
        self.side_blocks.remove(block);
        let Some(stored) = self.snapshot.blocks.get(block).cloned() else { return };
        for (position, transaction) in stored.body.hashes().iter().enumerate() {
            self.snapshot.transactions.insert(*transaction, (*block, position));
        }
        if let (Some(index), Some(header)) = (&self.snapshot.index, self.headers.by_hash(block)) {
            index.add(header.number, &stored);
        }
    }

    /// Removes the transactions of a block that left the canonical chain. The host's index keeps its entries, see
    /// [`BlockIndex`].
    fn unindex(&mut self, header: &VerifiedHeader) {
        self.add_side_block(header);
        let Some(stored) = self.snapshot.blocks.get(&header.hash()).cloned() else { return };
        for transaction in stored.body.hashes() {
            self.snapshot.transactions.remove(transaction);
        }
    }

    /// Drops the side block with the least work and the blocks above it, again and again, while side blocks exceed [`MAX_SIDE_BLOCKS`] or
    /// [`MAX_SIDE_BYTES`].
    fn drop_excess_side_blocks(&mut self) {
        while self.side_blocks.blocks.len() > MAX_SIDE_BLOCKS || self.side_blocks.bytes > MAX_SIDE_BYTES {
            let dropped = self.headers.drop_lightest_branch();
            if dropped.is_empty() {
                return;
            }
            dropped.iter().for_each(|hash| self.drop_side_block(hash));
            self.snapshot.headers = self.headers.snapshot();
        }
    }

    /// Drops a block outside the canonical chain, with its state.
    fn drop_side_block(&mut self, hash: &B256) {
        let Some((number, _)) = self.side_blocks.remove(hash) else { return };
        self.snapshot.blocks.remove(hash);
        self.snapshot.states.remove(hash);
        if let Some(mut hashes) = self.snapshot.hashes_by_height.get(&number).cloned() {
            Arc::make_mut(&mut hashes).retain(|other| other != hash);
            self.snapshot.hashes_by_height.insert(number, hashes);
        }
    }

    /// Drops the states of blocks more than `history` below the head.
    fn drop_old_states(&mut self) {
        let Some(history) = self.history else { return };
        let head = self.headers.head();
        let lowest = head.number.saturating_sub(history);
        while self.lowest_state < lowest {
            for hash in self.snapshot.at_height(self.lowest_state).to_vec() {
                self.snapshot.states.remove(&hash);
            }
            self.lowest_state = self.lowest_state.saturating_add(1);
        }
    }

    /// Replaces the state after the head, for development tools that change accounts directly. Later blocks start
    /// from the new state, and reads at the head see it. The head's header keeps the old state root.
    pub fn set_head_state(&mut self, state: Trie) {
        let head = self.headers.head().hash();
        self.snapshot.states.insert(head, state);
    }
}

/// The senders of a stored block's transactions: as a mark names them ([`marked_sender`]), else from their signatures.
///
/// # Errors
/// The first transaction whose signature gives no sender, by its index.
fn stored_senders(transactions: &[Transaction], chain_id: u64) -> Result<Vec<Address>, (usize, SenderError)> {
    let sender = |(index, tx): (usize, &Transaction)| match marked_sender(tx) {
        Some(sender) => Ok(sender),
        None => tx.recover_sender(chain_id).map_err(|error| (index, error)),
    };
    transactions.iter().enumerate().map(sender).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_transaction_without_sender_is_an_error() {
        let mut unsigned = Transaction::remasc(1);
        unsigned.gas_limit = 21_000_u64.into();
        let stored = [Transaction::remasc(1), unsigned];
        assert_eq!(stored_senders(&stored[..1], 33), Ok(alloc::vec![Address::ZERO]));
        assert_eq!(stored_senders(&stored, 33), Err((1, SenderError::V(0))));
    }
}
