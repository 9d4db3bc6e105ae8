//! The view of a light client: the verified header chain and the facts proven so far. A look-up that needs more returns the missing
//! facts, which the host fetches before the handler runs again.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::cell::Cell;
#[cfg(feature = "local")]
use core::cell::RefCell;

use alloy_primitives::Address;
use alloy_primitives::{B256, Bytes, U256};

#[cfg(feature = "local")]
use super::light_fallback::{ExecutedBlocks, not_found, search};
#[cfg(feature = "local")]
use super::light_replay::executed_receipts;
use super::{
    BlockHeader, Chain, Policy, Pool, Refusal, State, Stop, SyncProgress, TransactionLocation, View,
    ViewResult, gate,
};
#[cfg(feature = "local")]
use crate::exec::BlockObserver;
use crate::{consensus::VerifiedHeader, trie::TrieStore};
use crate::{
    consensus::{ChainView, Rule, VerifiedBody, VerifiedReceipts, VerifiedUncles, bitcoin::ServedBitcoin},
    exec::CodeCache,
    light::{CallCache, KnownFacts, Location, MessageCallCache, PinnedHead, UpstreamState},
    state::{CachedState, Fact, StateError, StateReader, TrieState},
    trie::{self, NodeSource, WalkError},
    types::{BlockRef, Transaction},
};

/// Most blocks that one request for logs may cover: each that may have matching logs has to be fetched and proven.
const MAX_LIGHT_LOG_BLOCKS: u64 = 2_000;

/// Most blocks that one request for traces may cover: each needs its body and a witness.
const MAX_LIGHT_TRACED_BLOCKS: u64 = 128;

/// A light client's chain as of a pinned head.
pub struct LightView<'a> {
    pinned: &'a PinnedHead,
    known: KnownFacts<'a>,
    call_cache: MessageCallCache<'a>,
    policy: Policy<'a>,
    /// Whether the answer depends on an absence that cannot be proven.
    unproven: Cell<bool>,
    /// Whether the answer depends on a header that only the host's own node shows.
    of_own_node: Cell<bool>,
    /// Blocks that were executed again because no upstream has a method for their receipts.
    #[cfg(feature = "local")]
    executed: RefCell<ExecutedBlocks>,
}

impl<'a> LightView<'a> {
    /// A view of the pinned head with the known facts; `interrupt` tells when a run has used up its time.
    pub fn new(pinned: &'a PinnedHead, known: KnownFacts<'a>, interrupt: &'a dyn Fn() -> bool) -> Self {
        Self {
            pinned,
            known,
            call_cache: MessageCallCache::new(known),
            policy: Policy {
                version: &pinned.config.version,
                calls: pinned.config.policy,
                min_depth: pinned.min_depth(),
                max_log_blocks: MAX_LIGHT_LOG_BLOCKS,
                max_traced_blocks: MAX_LIGHT_TRACED_BLOCKS,
                interrupt,
                host: pinned.config.host.as_deref(),
                #[cfg(feature = "catalogue")]
                scripts: pinned.scripts.as_deref(),
                ..Policy::of(&pinned.network)
            },
            unproven: Cell::new(false),
            of_own_node: Cell::new(false),
            #[cfg(feature = "local")]
            executed: RefCell::default(),
        }
    }

    /// Takes the blocks that were executed for their receipts.
    #[cfg(feature = "local")]
    pub(crate) fn take_executed(&self) -> ExecutedBlocks {
        self.executed.take()
    }

    /// Whether data that was read since the last call depends on an absence that cannot be proven.
    pub fn take_unproven(&self) -> bool {
        self.unproven.take()
    }

    /// Values that the calls on this view have computed, for later ones.
    pub(crate) fn into_call_cache(self) -> CallCache {
        self.call_cache.into_new()
    }

    /// Whether data that was read since the last call depends on a header that only the host's own node shows.
    pub fn take_of_own_node(&self) -> bool {
        self.of_own_node.take()
    }

    /// The chain. Every header that this view returns is read from here.
    fn chain(&self) -> ViewResult<&'a ChainView> {
        gate::usable_chain(self.pinned).map_err(Stop::Refused)
    }

    /// Total difficulty of a side block that was requested by hash: its parent's total, its own difficulty, and the
    /// difficulties of its uncles. `None` if the uncles break a rule.
    fn total_off_chain(&self, hash: &B256) -> ViewResult<Option<U256>> {
        let chain = self.chain()?;
        let Some(header) = chain.by_hash(hash) else { return Ok(None) };
        let Some(parent_total) = chain.total_difficulty(&header.parent_hash) else { return Ok(None) };
        let uncles = chain.uncle_work(hash, &*self.uncles(&header.into())?, self.pinned.now);
        Ok(uncles.map(|uncles| parent_total.saturating_add(header.difficulty.value()).saturating_add(uncles)))
    }

    /// Whether the chain up to the head leaves a transaction's nonce unused, which proves that it is not mined;
    /// `None` if the sender's nonce cannot be proven.
    fn is_unused(&self, head: &BlockHeader, transaction: &Transaction) -> ViewResult<Option<bool>> {
        let may_prove = |state: &UpstreamState| state.resting.is_none() && state.can.proofs != Some(false);
        let sender = transaction.recover_sender(self.pinned.network().chain_id);
        let (Ok(sender), Ok(state)) = (sender, self.state(head)) else { return Ok(None) };
        // With a required depth the host does not accept the state at the head, and without an upstream that proves state the
        // request would fail.
        if self.policy.min_depth > 0 || !self.pinned.states().iter().any(may_prove) {
            return Ok(None);
        }
        match state.account(&sender) {
            Ok(account) => {
                let next = account.map_or(0, |account| account.nonce);
                Ok(Some(U256::from(next) <= transaction.nonce.value()))
            }
            Err(StateError::Missing(key)) => match Fact::State(block_ref(head), key) {
                fact if self.known.is_refused(&fact) => Ok(None),
                fact => Err(Stop::missing(fact)),
            },
            // The account cannot be read from the proven nodes, so its nonce proves nothing.
            Err(_) => Ok(None),
        }
    }

    /// The location of a transaction that no upstream shows in a block.
    fn waiting(&self, head: &BlockHeader, transaction: &Arc<Transaction>) -> ViewResult<TransactionLocation> {
        let unused = self.is_unused(head, transaction)?;
        // If the nonce is used, the transaction is mined or replaced, and which of the two cannot be proven.
        self.unproven.set(self.unproven.get() || unused != Some(true));
        Ok(match unused {
            Some(false) => TransactionLocation::Unknown,
            // Proven to be unused, or not provable.
            Some(true) | None => TransactionLocation::Pending(transaction.clone()),
        })
    }
}

/// Facts for which no upstream has a method. Finding them takes code of `local`, which the light client's browser module leaves out.
#[cfg(feature = "local")]
impl LightView<'_> {
    /// The receipts of a block, by executing it again.
    fn execute(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>> {
        if let Some(receipts) = self.executed.borrow().find(&header.hash()) {
            return Ok(receipts.clone());
        }
        self.executed.borrow_mut().begin(block_ref(header), self.known.executed())?;
        let receipts = executed_receipts(self, self.known, header);
        self.executed.borrow_mut().end(receipts)
    }

    /// The location of a transaction, by looking into the newest blocks.
    fn find(
        &self,
        chain: &ChainView,
        transaction: B256,
        given: Option<&Arc<Transaction>>,
    ) -> ViewResult<TransactionLocation> {
        if let Some((header, index)) = search(self, chain, transaction)? {
            let admitted = header.verified().map(|header| gate::admit(self.pinned, chain, header));
            // Headers of this chain are verified, so the gate is always asked.
            return Ok(TransactionLocation::Mined(admitted.unwrap_or(Ok(header))?, index));
        }
        let head = &BlockHeader::from(chain.head());
        match given {
            // The nonce cannot be proven, so the transaction counts as pending. A used nonce says that the transaction was mined
            // or replaced, perhaps in an older block.
            Some(waiting) if self.is_unused(head, waiting)?.is_none() => self.waiting(head, waiting),
            _ => Err(not_found()),
        }
    }
}

/// Blocks below the start, which the host's own node shows.
impl LightView<'_> {
    /// The header at a height below the start. Notes that the answer depends on the own node alone.
    fn own_node_header(&self, number: u64) -> ViewResult<&VerifiedHeader> {
        self.of_own_node.set(true);
        match self.known.header_at(number) {
            Some(header) => Ok(header),
            None => Err(Stop::missing(Fact::HeaderAt(number))),
        }
    }

    /// The ancestor at a height below the start, of a canonical block above or below the start.
    fn old_ancestor(&self, block: B256, number: u64) -> ViewResult<Option<BlockHeader>> {
        let Some(header) = self.header_by_hash(block)? else { return Ok(None) };
        let block = BlockRef { number: header.number, hash: block };
        if number > block.number {
            return Ok(None);
        }
        if self.pinned.trusts_below(block.number) && !self.is_canonical(block) {
            return Err(Stop::Refused(Refusal::OffChain { block, ancestor: number }));
        }
        self.own_node_header(number).map(|header| Some(header.clone().into()))
    }
}

/// Where a light client reads state: proven facts, then the store of the host's own node, if it has one.
#[derive(Debug, Clone, Copy)]
struct StateNodes<'a> {
    known: KnownFacts<'a>,
    store: Option<&'a dyn TrieStore>,
}

impl NodeSource for StateNodes<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.known.node(hash).or_else(|| self.store?.node(hash))
    }
}

impl<'a> LightView<'a> {
    fn nodes(&self) -> StateNodes<'a> {
        StateNodes { known: self.known, store: self.pinned.own_state() }
    }
}

/// The refusal for a missing ancestor of a block.
fn no_ancestor(chain: &ChainView, block: BlockRef, ancestor: u64) -> Stop {
    let lowest = chain.lowest();
    Stop::Refused(if ancestor < lowest {
        Refusal::TooOld { number: ancestor, lowest }
    } else {
        Refusal::OffChain { block, ancestor }
    })
}

fn block_ref(header: &BlockHeader) -> BlockRef {
    BlockRef { number: header.number, hash: header.hash() }
}

impl Chain for LightView<'_> {
    fn policy(&self) -> &Policy<'_> {
        &self.policy
    }

    fn head(&self) -> ViewResult<BlockHeader> {
        let chain = self.chain()?;
        gate::admit(self.pinned, chain, chain.head())
    }

    fn height(&self) -> ViewResult<u64> {
        Ok(self.chain()?.head().number)
    }

    fn header_by_number(&self, number: u64) -> ViewResult<Option<BlockHeader>> {
        let chain = self.chain()?;
        if let Some(header) = chain.by_number(number) {
            return gate::admit(self.pinned, chain, header).map(Some);
        }
        if self.pinned.trusts_below(number) {
            return self.own_node_header(number).map(|header| Some(header.clone().into()));
        }
        if number < chain.lowest() {
            return Err(Stop::Refused(Refusal::TooOld { number, lowest: chain.lowest() }));
        }
        Ok(None)
    }

    fn header_by_hash(&self, hash: B256) -> ViewResult<Option<BlockHeader>> {
        let chain = self.chain()?;
        if let Some(header) = chain.by_hash(&hash) {
            return gate::admit(self.pinned, chain, header).map(Some);
        }
        match self.known.header(&hash) {
            Some(None) => {
                self.unproven.set(true);
                Ok(None)
            }
            Some(Some(header)) if self.pinned.trusts_below(header.number) => {
                // `is_canonical` compares the block with the canonical one at this height, which is fetched first.
                self.own_node_header(header.number)?;
                Ok(Some(VerifiedHeader::of_own_node(header.clone()).into()))
            }
            // A header that is known but not connected to the chain yet is missing too.
            _ => Err(Stop::missing(Fact::Header(hash))),
        }
    }

    /// The depth of an ancestor is not checked: it is deeper than the block, whose depth was checked.
    fn ancestor(&self, block: B256, number: u64) -> ViewResult<Option<BlockHeader>> {
        let chain = self.chain()?;
        if let Some(header) = chain.ancestor(&block, number) {
            return Ok(Some(header.into()));
        }
        if self.pinned.trusts_below(number) {
            return self.old_ancestor(block, number);
        }
        // Callers pass blocks that this view has returned. For another block, 0 stands for its number, and it has no ancestor.
        let own_number = chain.by_hash(&block).map_or(0, |header| header.number);
        if number > own_number {
            return Ok(None);
        }
        Err(no_ancestor(chain, BlockRef { number: own_number, hash: block }, number))
    }

    fn is_canonical(&self, block: BlockRef) -> bool {
        if self.pinned.trusts_below(block.number) {
            return self.known.header_at(block.number).is_some_and(|header| header.hash() == block.hash);
        }
        self.pinned.chain.as_ref().is_some_and(|chain| chain.is_canonical(block.number, &block.hash))
    }

    /// The canonical block only: a list of all blocks at a height cannot be proven.
    fn blocks_at(&self, number: u64) -> Vec<B256> {
        self.pinned
            .chain
            .as_ref()
            .and_then(|chain| chain.by_number(number))
            .map(|h| h.hash())
            .into_iter()
            .collect()
    }

    fn shows_work(&self, header: &BlockHeader) -> bool {
        header.shows_work(&self.pinned.network)
    }

    fn total_difficulty(&self, hash: B256) -> ViewResult<Option<U256>> {
        match self.chain()?.total_difficulty(&hash) {
            // While uncles are being fetched, the total may still become known. A chain that started by work never has one,
            // because the total of its first block is not proven.
            None if !self.pinned.uncles_complete && !self.pinned.is_by_work() => {
                Err(Stop::Refused(gate::syncing(self.pinned)))
            }
            None => self.total_off_chain(&hash),
            total => Ok(total),
        }
    }

    fn body(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedBody>> {
        if let Some(body) = header.verified().and_then(VerifiedBody::if_empty) {
            return Ok(Arc::new(body));
        }
        match self.known.body(&header.hash()) {
            Some(body) => Ok(body.clone()),
            None => Err(Stop::missing(Fact::Body(block_ref(header)))),
        }
    }

    fn uncles(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedUncles>> {
        if let Some(uncles) = header.verified().and_then(VerifiedUncles::if_empty) {
            return Ok(Arc::new(uncles));
        }
        if let Some(uncles) = self.pinned.chain.as_ref().and_then(|c| c.uncles(&header.hash())) {
            return Ok(uncles.clone());
        }
        match self.known.uncles(&header.hash()) {
            Some(uncles) => Ok(uncles.clone()),
            None => Err(Stop::missing(Fact::Uncles(block_ref(header), header.uncle_count))),
        }
    }

    fn receipts(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>> {
        // Receipts are requested by transaction hash, so the body comes first.
        self.body(header)?;
        match self.known.receipts(&header.hash()) {
            Some(receipts) => Ok(receipts.clone()),
            #[cfg(feature = "local")]
            None if self.known.is_unsupported(&Fact::Receipts(block_ref(header))) => self.execute(header),
            None => Err(Stop::missing(Fact::Receipts(block_ref(header)))),
        }
    }

    fn locate(&self, transaction: B256, given: Option<&Arc<Transaction>>) -> ViewResult<TransactionLocation> {
        let chain = self.chain()?;
        let head = &BlockHeader::from(chain.head());
        let given = given.or_else(|| self.known.sent(&transaction));
        if let Some(given) = given {
            // The sender's nonce decides, and no upstream has to be asked for the location.
            if self.is_unused(head, given)? == Some(true) {
                return Ok(TransactionLocation::Pending(given.clone()));
            }
        }
        let block = match (self.known.location(&transaction), given) {
            #[cfg(feature = "local")]
            (None, _) if self.known.is_unsupported(&Fact::Location(transaction)) => {
                return self.find(chain, transaction, given);
            }
            (None, _) => return Err(Stop::missing(Fact::Location(transaction))),
            // A transaction that only other askers have sent through this client is not shown before it is mined.
            (Some(Location::Pending(_)), None) if self.known.is_from_others(&transaction) => {
                self.unproven.set(true);
                return Ok(TransactionLocation::Unknown);
            }
            (Some(Location::Pending(waiting)), _) | (Some(Location::Unknown), Some(waiting)) => {
                return self.waiting(head, waiting);
            }
            (Some(Location::Unknown), None) => {
                self.unproven.set(true);
                return Ok(TransactionLocation::Unknown);
            }
            (Some(Location::Mined(block)), _) => *block,
        };
        let (number, lowest) = (block.number, chain.lowest());
        let header = match chain.by_number(number) {
            Some(header) if header.hash() == block.hash => header,
            None if self.pinned.trusts_below(number) => self.own_node_header(number)?,
            None if number < lowest => {
                return Err(Stop::Refused(Refusal::TransactionTooOld { transaction, number, lowest }));
            }
            _ => return Err(Stop::Refused(Refusal::Abandoned { transaction, block })),
        };
        // A location may be false, which only the block's body shows. The depth of the block is checked after that,
        // unless the body cannot be fetched.
        let admitted = || gate::admit(self.pinned, chain, header);
        if self.known.is_refused(&Fact::Body(block)) {
            admitted()?;
        }
        match self.body(&header.into())?.position(&transaction) {
            Some(index) => Ok(TransactionLocation::Mined(admitted()?, index)),
            None => Err(Stop::Refused(Refusal::Misplaced { transaction, block })),
        }
    }
}

impl State for LightView<'_> {
    fn state<'b>(&'b self, header: &BlockHeader) -> ViewResult<Box<dyn StateReader + 'b>> {
        if !self.pinned.network.rules(header.number).has(Rule::Rskip126) {
            return Err(Stop::Refused(Refusal::NoStateProofs { number: header.number }));
        }
        Ok(Box::new(CachedState::new(TrieState::new(self.nodes(), header.state_root), &self.call_cache)))
    }

    fn prove(&self, header: &BlockHeader, key: &[u8]) -> Result<Vec<Bytes>, WalkError> {
        trie::prove(&self.nodes(), header.state_root, key)
    }

    fn node_hash(&self, header: &BlockHeader, key: &[u8]) -> Result<Option<B256>, WalkError> {
        Ok(trie::lookup_node(&self.nodes(), header.state_root, key)?.map(|node| node.hash))
    }

    fn codes(&self) -> Option<&dyn CodeCache> {
        Some(&self.call_cache)
    }

    #[cfg(feature = "local")]
    fn replay(&self, header: &BlockHeader, observer: &mut dyn BlockObserver) -> ViewResult<()> {
        super::light_replay::replay(self, self.known, header, observer)
    }
}

impl Pool for LightView<'_> {
    fn next_nonce(&self, sender: &Address, nonce: u64) -> u64 {
        self.known.next_nonce(sender, nonce)
    }
}

impl View for LightView<'_> {
    fn syncing(&self) -> Option<SyncProgress> {
        let current = self.pinned.chain.as_ref().map_or(self.pinned.start, |c| c.head().number);
        if self.pinned.synced && current >= self.pinned.announced && self.pinned.stale().is_none() {
            return None;
        }
        Some(SyncProgress {
            starting: self.pinned.start,
            current,
            highest: self.pinned.announced.max(current),
        })
    }

    fn upstreams(&self) -> Vec<String> {
        // Each of these numbers has a name in the configuration.
        let name = |upstream| self.pinned.upstream_name(upstream).unwrap_or_default().into();
        (0..self.pinned.config.upstreams.len()).map(name).collect()
    }

    fn light(&self) -> Option<&PinnedHead> {
        Some(self.pinned)
    }

    fn bitcoin(&self) -> Option<&dyn ServedBitcoin> {
        self.pinned.bitcoin().map(|follower| follower as &dyn ServedBitcoin)
    }
}
