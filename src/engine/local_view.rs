//! The view of a chain that is executed locally.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::{any::Any, cell::OnceCell};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::{
    BlockHeader, BlockNumbers, Chain, LogFilter, Miner, Policy, Pool, Refusal, State, Stop, SyncProgress,
    TransactionLocation, TransactionPool, View, ViewResult,
    node::Snapshot,
    pool::VisiblePool,
    producer::{BlockProducer, PendingBlock},
    state::next_environment,
};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts, VerifiedUncles, bitcoin::ServedBitcoin},
    exec::{BlockEnvironment, BlockObserver, CallPolicy, OnUnsimulated},
    local::{ChainSnapshot, Events, ForkBase, StoredBlock, Term},
    state::{Fact, KeyedTrie, LastKey, StateReader},
    trie::{Trie, WalkError},
    types::{Asker, BlockRef, Transaction},
};

/// An executed chain at one moment: it never changes, and the readers of many messages share it.
#[derive(Debug, Clone)]
pub struct LocalSnapshot {
    /// The chain.
    pub chain: ChainSnapshot,
    /// Name and version as `web3_clientVersion` returns them.
    pub version: Arc<str>,
    /// The limits and defaults of calls.
    pub policy: CallPolicy,
    /// The progress of a follower's import.
    pub syncing: Option<SyncProgress>,
    /// Names of the nodes that the chain follows.
    pub upstreams: Arc<Vec<String>>,
    /// Pool and miner; `None` on a chain that only follows another node.
    pub producer: Option<Arc<dyn BlockProducer>>,
    /// The host's data for its own rows of the method table.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
    /// The host's engine for tracers that are scripts ([`Policy::scripts`]).
    #[cfg(feature = "catalogue")]
    pub scripts: Option<Arc<dyn crate::exec::trace::ScriptEngine>>,
}

impl Snapshot for LocalSnapshot {
    fn view<'a>(&'a self, now: u64, interrupt: &'a dyn Fn() -> bool) -> Box<dyn View + 'a> {
        // The default asker is not isolated, so it sees the whole pool.
        self.view_of(Asker::default(), now, interrupt)
    }

    fn view_of<'a>(&'a self, asker: Asker, now: u64, interrupt: &'a dyn Fn() -> bool) -> Box<dyn View + 'a> {
        Box::new(LocalView::new(self, asker, now, interrupt))
    }

    fn inline_view<'a>(
        &'a self,
        asker: Asker,
        now: u64,
        interrupt: &'a dyn Fn() -> bool,
    ) -> Box<dyn View + 'a> {
        let mut view = LocalView::new(self, asker, now, interrupt);
        view.policy.is_inline = true;
        Box::new(view)
    }
}

/// An executed chain for one message.
pub struct LocalView<'a> {
    snapshot: &'a LocalSnapshot,
    policy: Policy<'a>,
    /// The host's clock, in seconds since 1970.
    now: u64,
    /// The pending block, built on first use; `None` inside if it cannot be built.
    pending: OnceCell<Option<PendingBlock>>,
    /// The trie key of the account that was read last.
    last_key: LastKey,
    /// The part of the pool that the asker sees, if the asker is isolated ([`Asker::is_isolated`]); other askers see the whole pool.
    visible_pool: Option<VisiblePool<'a>>,
}

impl<'a> LocalView<'a> {
    /// A view at a time in seconds since 1970, with the part of the pool that the asker may see; `interrupt` tells when a
    /// run has used up its time.
    fn new(snapshot: &'a LocalSnapshot, asker: Asker, now: u64, interrupt: &'a dyn Fn() -> bool) -> Self {
        let pool = snapshot.producer.as_deref().filter(|_| asker.is_isolated()).map(BlockProducer::pool);
        Self {
            snapshot,
            policy: Policy {
                version: &snapshot.version,
                calls: snapshot.policy,
                interrupt,
                now: Some(now),
                host: snapshot.host.as_deref(),
                #[cfg(feature = "catalogue")]
                scripts: snapshot.scripts.as_deref(),
                ..Policy::of(snapshot.chain.network())
            },
            now,
            pending: OnceCell::new(),
            last_key: LastKey::default(),
            visible_pool: pool.map(|pool| VisiblePool { pool, asker }),
        }
    }

    fn chain(&self) -> &'a ChainSnapshot {
        &self.snapshot.chain
    }

    fn producer(&self) -> Option<&'a dyn BlockProducer> {
        self.snapshot.producer.as_deref()
    }

    fn pending_block(&self) -> Option<&PendingBlock> {
        // The block has the transactions of other askers, which an isolated one must not see.
        if self.visible_pool.is_some() {
            return None;
        }
        let build = || self.producer()?.pending(self.chain(), self.now, self.policy.interrupt);
        self.pending.get_or_init(build).as_ref()
    }

    /// The pending block, if this is its header.
    fn if_pending(&self, header: &BlockHeader) -> Option<&PendingBlock> {
        let pending = self.pending.get().and_then(Option::as_ref)?;
        (header.is_pending() && pending.header.hash() == header.hash()).then_some(pending)
    }

    /// The state trie after a block; `None` if the chain does not keep it.
    fn trie(&self, header: &BlockHeader) -> Option<&Trie> {
        match self.if_pending(header) {
            Some(pending) => Some(&pending.executed.state),
            None => self.chain().state(&header.hash()),
        }
    }

    /// The state trie after a block, if it has every node. A trie of a chain that begins on another network has only those nodes of
    /// that network that were read.
    fn whole_trie(&self, header: &BlockHeader) -> Result<&Trie, WalkError> {
        let trie = self.trie(header).filter(|trie| !trie.is_above_base());
        trie.ok_or(WalkError::Missing(header.state_root))
    }

    /// The state trie after a block, or the refusal if the chain does not keep it.
    fn stored_trie(&self, header: &BlockHeader) -> ViewResult<&Trie> {
        self.trie(header).ok_or_else(|| self.no_state(header))
    }

    /// The numbers of the blocks of a range, both ends included, that the index finds for at least one term of each group; an
    /// empty group selects all blocks. Without an index these are all blocks.
    fn indexed<'b>(&'b self, groups: &[Vec<Term>], from: u64, to: u64) -> BlockNumbers<'b> {
        let Some(index) = self.chain().index() else { return Box::new(from..=to) };
        // The index has no block of the network on which the chain begins, so all of these count as found.
        let Some(fork_block) =
            self.chain().fork().map(|fork| fork.block().number).filter(|number| from <= *number)
        else {
            return index.blocks(groups, from, to, self.policy.interrupt);
        };
        let above = (fork_block < to)
            .then(|| index.blocks(groups, fork_block.saturating_add(1), to, self.policy.interrupt));
        Box::new((from..=to.min(fork_block)).chain(above.into_iter().flatten()))
    }

    /// A block with its body and receipts: executed here, or of the network on which the chain begins.
    fn stored(&self, header: &BlockHeader) -> ViewResult<Arc<StoredBlock>> {
        if let Some(block) = self.chain().block(&header.hash()) {
            return Ok(block.clone());
        }
        let fork = self.below(header).ok_or_else(|| self.no_state(header))?;
        let block = BlockRef { number: header.number, hash: header.hash() };
        fork.contents(header).ok_or_else(|| Stop::missing(Fact::Body(block)))
    }

    /// The refusal for a block whose state, body or receipts the chain does not have.
    fn no_state(&self, header: &BlockHeader) -> Stop {
        let (number, hash) = (header.number, header.hash());
        Stop::Refused(match self.below(header) {
            None => Refusal::StateNotKept { number, hash },
            Some(fork) => Refusal::BelowFork { number, hash, fork: fork.block().number },
        })
    }

    /// The base of the fork, if the block belongs to the network on which this chain begins.
    fn below(&self, header: &BlockHeader) -> Option<&'a dyn ForkBase> {
        self.chain().fork().filter(|fork| header.number <= fork.block().number)
    }
}

impl Chain for LocalView<'_> {
    fn policy(&self) -> &Policy<'_> {
        &self.policy
    }

    fn head(&self) -> ViewResult<BlockHeader> {
        Ok(self.chain().head().into())
    }

    fn header_by_number(&self, number: u64) -> ViewResult<Option<BlockHeader>> {
        let own = self.chain().headers().by_number(number).cloned();
        let below_fork = || self.chain().fork().filter(|fork| number < fork.block().number)?.header(number);
        Ok(own.or_else(below_fork).map(Into::into))
    }

    fn header_by_hash(&self, hash: B256) -> ViewResult<Option<BlockHeader>> {
        let own = self.chain().headers().by_hash(&hash).cloned();
        Ok(own.or_else(|| self.chain().fork()?.header_by_hash(&hash)).map(Into::into))
    }

    fn ancestor(&self, block: B256, number: u64) -> ViewResult<Option<BlockHeader>> {
        let own = self.chain().headers().ancestor(&block, number).cloned();
        let below_fork = || self.chain().fork().filter(|fork| number < fork.block().number)?.header(number);
        Ok(own.or_else(below_fork).map(Into::into))
    }

    fn is_canonical(&self, block: BlockRef) -> bool {
        match self.chain().fork().filter(|fork| block.number < fork.block().number) {
            None => self.chain().headers().is_canonical(block.number, &block.hash),
            Some(fork) => fork.header(block.number).is_some_and(|header| header.hash() == block.hash),
        }
    }

    fn blocks_at(&self, number: u64) -> Vec<B256> {
        match self.chain().fork().filter(|fork| number < fork.block().number) {
            None => self.chain().at_height(number).to_vec(),
            Some(fork) => fork.header(number).iter().map(|header| header.hash()).collect(),
        }
    }

    fn total_difficulty(&self, hash: B256) -> ViewResult<Option<U256>> {
        let headers = self.chain().headers();
        let Some(pending) = self.pending.get().and_then(Option::as_ref).filter(|p| p.header.hash() == hash)
        else {
            return Ok(headers.total_difficulty(&hash));
        };
        let work = pending.header.difficulty.value().saturating_add(pending.uncles.work());
        let parent = headers.total_difficulty(&pending.header.parent_hash);
        Ok(parent.map(|total| total.saturating_add(work)))
    }

    fn body(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedBody>> {
        match self.if_pending(header) {
            Some(pending) => Ok(pending.body.clone()),
            None => match (self.chain().block(&header.hash()), self.below(header)) {
                (None, Some(fork)) => {
                    // A fork may have the body and not yet the receipts, which `stored` needs too.
                    let block = BlockRef { number: header.number, hash: header.hash() };
                    let stored = fork.body(header).ok_or_else(|| Stop::missing(Fact::Body(block)))?;
                    Ok(stored.body.clone())
                }
                _ => Ok(self.stored(header)?.body.clone()),
            },
        }
    }

    fn uncles(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedUncles>> {
        match self.if_pending(header) {
            Some(pending) => Ok(pending.uncles.clone()),
            None => match self.below(header) {
                None => self.chain().uncles(&header.hash()).cloned().ok_or_else(|| self.no_state(header)),
                Some(fork) => fork.uncles(header).ok_or_else(|| self.no_state(header)),
            },
        }
    }

    fn receipts(&self, header: &BlockHeader) -> ViewResult<Arc<VerifiedReceipts>> {
        match self.if_pending(header) {
            Some(pending) => Ok(pending.receipts.clone()),
            None => Ok(self.stored(header)?.receipts.clone()),
        }
    }

    fn locate(&self, transaction: B256, _: Option<&Arc<Transaction>>) -> ViewResult<TransactionLocation> {
        if let Some((block, index)) = self.chain().locate(&transaction)
            && let Some(header) = self.chain().headers().by_hash(&block)
        {
            return Ok(TransactionLocation::Mined(header.into(), index));
        }
        if let Some(waiting) = self.pool().and_then(|pool| pool.get(&transaction)) {
            return Ok(TransactionLocation::Pending(Arc::new(waiting.transaction.clone())));
        }
        if let Some((block, index)) = self.chain().fork().and_then(|fork| fork.locate(&transaction))
            && let Some(header) = self.header_by_hash(block)?
        {
            return Ok(TransactionLocation::Mined(header, index));
        }
        Ok(TransactionLocation::Unknown)
    }

    fn sender(
        &self,
        block: &B256,
        index: usize,
        transaction: &Transaction,
    ) -> Result<Address, crate::types::SenderError> {
        let pending = self.pending.get().and_then(Option::as_ref).filter(|p| p.header.hash() == *block);
        let below_fork = || {
            let fork = self.chain().fork()?;
            fork.body(fork.header_by_hash(block)?.sealed())?.senders.get(index).copied()
        };
        let sender = match pending {
            Some(pending) => pending.executed.senders.get(index).copied(),
            None => {
                let own = self.chain().block(block);
                own.map_or_else(below_fork, |own| own.senders.get(index).copied())
            }
        };
        match sender {
            Some(sender) => Ok(sender),
            None => transaction.recover_sender(self.policy.network.chain_id),
        }
    }

    fn log_blocks<'b>(&'b self, filter: &LogFilter, from: u64, to: u64) -> BlockNumbers<'b> {
        let topics = (0..).zip(&filter.topics);
        let topics =
            topics.map(|(position, any)| any.iter().map(|topic| Term::Topic(position, *topic)).collect());
        let contracts = filter.addresses.iter().map(|address| Term::Contract(*address)).collect();
        self.indexed(&core::iter::once(contracts).chain(topics).collect::<Vec<_>>(), from, to)
    }

    fn transaction_blocks<'b>(
        &'b self,
        senders: &[Address],
        recipients: &[Address],
        from: u64,
        to: u64,
    ) -> BlockNumbers<'b> {
        let senders = senders.iter().map(|sender| Term::Sender(*sender)).collect();
        let recipients = recipients.iter().map(|recipient| Term::Recipient(*recipient)).collect();
        self.indexed(&[senders, recipients], from, to)
    }
}

impl State for LocalView<'_> {
    fn state<'b>(&'b self, header: &BlockHeader) -> ViewResult<Box<dyn StateReader + 'b>> {
        Ok(Box::new(KeyedTrie::new(self.stored_trie(header)?, &self.last_key)))
    }

    fn state_root(&self, header: &BlockHeader) -> B256 {
        self.trie(header).map_or(header.state_root, Trie::root)
    }

    fn state_trie(&self, header: &BlockHeader) -> Option<&Trie> {
        // On a development chain the state may have been changed directly; the trie then has another root than the header states.
        self.trie(header).filter(|trie| !trie.is_above_base() && trie.root() == header.state_root)
    }

    #[cfg(feature = "catalogue")]
    fn state_before(&self, header: &BlockHeader, index: usize) -> ViewResult<Trie> {
        let body = self.body(header)?;
        if header.number == 0 || index >= body.transactions().len() {
            return self.stored_trie(header).cloned();
        }
        let stored;
        let senders = match self.if_pending(header) {
            Some(pending) => &pending.executed.senders,
            None => {
                stored = self.stored(header)?;
                &stored.senders
            }
        };
        // As in `replay`, which says why.
        let unsimulated = self.producer().map_or(OnUnsimulated::Refuse, |_| OnUnsimulated::Fail);
        let transactions = (body.transactions(), senders.as_slice());
        match self.chain().state_before(header, transactions, index, unsimulated, self.policy.interrupt) {
            None => Err(self.no_state(header)),
            Some(Err(_)) if self.policy.interrupted() => Err(Stop::Refused(Refusal::Interrupted)),
            Some(Err(error)) => Err(Stop::Refused(Refusal::of_replay(header, error))),
            Some(Ok(state)) => Ok(state),
        }
    }

    fn provable(&self, header: &BlockHeader) -> ViewResult<()> {
        match self.chain().fork().filter(|_| self.stored_trie(header).is_ok_and(Trie::is_above_base)) {
            None => Ok(()),
            Some(fork) => Err(Stop::Refused(Refusal::ForkWithoutProofs { fork: fork.block().number })),
        }
    }

    fn prove(&self, header: &BlockHeader, key: &[u8]) -> Result<Vec<Bytes>, WalkError> {
        let trie = self.whole_trie(header)?;
        Ok(trie.proof(key))
    }

    fn node_hash(&self, header: &BlockHeader, key: &[u8]) -> Result<Option<B256>, WalkError> {
        let trie = self.whole_trie(header)?;
        Ok(trie.node_hash(key))
    }

    fn codes(&self) -> Option<&dyn crate::exec::CodeCache> {
        let codes = self.chain().codes()?;
        Some(&**codes)
    }

    fn next_environment(&self, header: &BlockHeader) -> BlockEnvironment {
        match self.producer() {
            Some(producer) => producer.environment(self.policy.network, header.sealed(), self.now),
            None => next_environment(header),
        }
    }

    fn replay(&self, header: &BlockHeader, observer: &mut dyn BlockObserver) -> ViewResult<()> {
        if header.number == 0 {
            return Ok(());
        }
        // A development chain made its blocks itself, and a call of a method that is not simulated failed there. A follower's
        // blocks were made elsewhere, where the call did not fail.
        let unsimulated = self.producer().map_or(OnUnsimulated::Refuse, |_| OnUnsimulated::Fail);
        let replayed = match self.if_pending(header) {
            None => self.chain().replay(header, observer, unsimulated, self.policy.interrupt),
            Some(pending) => {
                let transactions = (pending.body.transactions(), pending.executed.senders.as_slice());
                self.chain().replay_as(header, transactions, observer, unsimulated, self.policy.interrupt)
            }
        };
        let error = match replayed {
            None => return Err(self.no_state(header)),
            Some(Err(_)) if self.policy.interrupted() => Refusal::Interrupted,
            Some(Err(error)) => Refusal::of_replay(header, error),
            Some(Ok(executed)) => match executed.check_apart_from_state(header.header(), self.policy.network)
            {
                Ok(()) => return Ok(()),
                Err(error) => Refusal::Replay(error),
            },
        };
        Err(Stop::Refused(error))
    }
}

impl Pool for LocalView<'_> {
    fn pool(&self) -> Option<&dyn TransactionPool> {
        match &self.visible_pool {
            Some(visible) => Some(visible),
            None => Some(self.producer()?.pool()),
        }
    }

    fn pending(&self) -> ViewResult<Option<BlockHeader>> {
        // Building the block runs transactions. An inline run may end before all of them have run, and the block would lack some.
        if self.policy.is_inline {
            return Err(Stop::Refused(Refusal::Interrupted));
        }
        Ok(self.pending_block().map(|pending| BlockHeader::Pending(pending.header.clone())))
    }

    fn shows_pool_of(&self, asker: Option<Asker>) -> bool {
        self.visible_pool.as_ref().is_none_or(|visible| visible.shows(asker))
    }

    fn accounts(&self) -> Vec<Address> {
        self.producer().map(|producer| producer.accounts().to_vec()).unwrap_or_default()
    }

    fn miner(&self) -> Option<Miner> {
        Some(self.producer()?.miner(self.chain()))
    }
}

impl View for LocalView<'_> {
    fn syncing(&self) -> Option<SyncProgress> {
        self.snapshot.syncing
    }

    fn upstreams(&self) -> Vec<String> {
        self.snapshot.upstreams.to_vec()
    }

    fn bitcoin(&self) -> Option<&dyn ServedBitcoin> {
        self.producer()?.bitcoin()
    }

    fn events(&self) -> Option<&Events> {
        Some(self.chain().events())
    }
}
