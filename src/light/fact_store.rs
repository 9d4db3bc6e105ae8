//! Proven facts: those of the message that one session answers ([`FactStore`]), and the cache that keeps them for later messages
//! ([`FactCache`]). [`KnownFacts`] reads both.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use alloy_primitives::U256;
use alloy_primitives::{Address, B256, Bytes};

use super::call_cache::CallCache;
use super::upstream::UpstreamRequest;
use crate::consensus::VerifiedHeader;
use serde_json::value::RawValue;

use crate::{
    consensus::{VerifiedBody, VerifiedReceipts, VerifiedUncles},
    state::{Fact, Facts, StateKey},
    trie::{NodeSource, ProvenNodes},
    types::{Asker, BlockRef, SealedHeader, Transaction},
};

/// The location that an upstream states for a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this block. The location is not proven until the block's body shows the transaction.
    Mined(BlockRef),
    /// Not mined yet. The transaction has the requested hash.
    Pending(Arc<Transaction>),
    /// No upstream knows the transaction.
    Unknown,
}

/// Proven facts by subject. Values are behind an `Arc`, so moving them between sessions and the cache is cheap, and maps of
/// different facts use the same machine code, which keeps the browser module small.
#[derive(Debug, Clone, Default)]
pub struct FactStore {
    /// Headers off the pinned chain by hash; `None` if the upstreams do not know the block. They serve one message: the cache
    /// takes none ([`FactCache::absorb`]).
    pub(crate) headers: BTreeMap<B256, Option<Arc<SealedHeader>>>,
    /// Headers below the start by height, as the host's own node shows them.
    pub(crate) headers_at: BTreeMap<u64, VerifiedHeader>,
    /// Responses of the host's own node that cannot change any more, by method and parameters.
    pub(crate) own_node_responses: BTreeMap<UpstreamRequest, Arc<RawValue>>,
    /// Bodies by block hash.
    pub(crate) bodies: BTreeMap<B256, Arc<VerifiedBody>>,
    /// Uncles by block hash.
    pub(crate) uncles: BTreeMap<B256, Arc<VerifiedUncles>>,
    /// Receipts by block hash.
    pub(crate) receipts: BTreeMap<B256, Arc<VerifiedReceipts>>,
    /// Approximate memory that bodies, receipts and responses of the own node take, in bytes.
    pub(crate) block_bytes: usize,
    /// Locations of transactions by transaction hash.
    pub(crate) locations: BTreeMap<B256, Arc<Location>>,
    /// Trie nodes, long values and codes, each under its own hash.
    pub(crate) nodes: ProvenNodes,
    /// Values that calls have computed from the nodes.
    pub(crate) call_cache: CallCache,
    /// State keys that calls to contracts lacked in this message, oldest first. The cache remembers them as keys that these calls
    /// read.
    pub(crate) touched: Vec<TouchedKey>,
    /// Transactions that this client passed on to upstreams.
    pub(crate) sent: Vec<SentTransaction>,
    /// The asker whose message is being answered.
    pub(crate) asker: Asker,
    /// Facts that no upstream could prove for the message being answered.
    pub(crate) refused: Facts,
    /// Facts in `refused` for which an upstream lacks the RPC method.
    #[cfg(feature = "local")]
    pub(crate) unsupported: Facts,
    /// Blocks that were executed here for the message being answered.
    #[cfg(feature = "local")]
    pub(crate) executed: usize,
}

/// A state key that a call to a contract read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TouchedKey {
    /// The called contract.
    pub(crate) contract: Address,
    /// The key, of this contract or of another one that it calls.
    pub(crate) key: StateKey,
    /// Hash of the call data; `None` if calls with different data have read the key.
    pub(crate) data: Option<B256>,
}

/// A transaction that this client passed on to upstreams.
#[derive(Debug, Clone)]
pub(crate) struct SentTransaction {
    pub(crate) hash: B256,
    pub(crate) sender: Address,
    pub(crate) asker: Asker,
    pub(crate) transaction: Arc<Transaction>,
}

impl SentTransaction {
    /// The owner of the quota of remembered transactions that this one counts for: a caller, or all pages of other origins that call
    /// from the caller's address together, because one site may use many origins. The pair is the caller's number and whether
    /// such a page calls: `page` is 0 for programs, and for pages that may call every method.
    const fn quota_owner(&self) -> (u64, bool) {
        (self.asker.number, self.asker.page != 0)
    }
}

/// Most sent transactions that are remembered, each counted once for each of its askers. Callers pay nothing for a transaction that
/// is never mined, so without a limit they could fill the memory.
const MAX_SENT: usize = 256;

/// Most keys remembered for calls to one contract. They are requested together before the next call runs, which then takes one
/// round of requests on a new block.
const MAX_TOUCHED: usize = 24;

/// Most keys remembered for calls to all contracts together, about 110 bytes each.
const MAX_TOUCHED_TOGETHER: usize = 4_096;

/// Most entries of one kind in a generation of the cache ([`FactCache`]). Bodies and receipts are the largest, and [`GENERATION_BYTES`]
/// limits them too.
const GENERATION_ENTRIES: usize = 512;

/// Most headers below the start in a generation of the cache: about 1 kB each.
const GENERATION_HEADERS: usize = 4_096;

/// Most trie nodes in a generation of the cache: about 100 bytes each, codes up to 24 kB.
const GENERATION_NODES: usize = 100_000;

/// Approximate limit of a generation of the cache, in bytes, unless the host sets another one: about 200 blocks of the size
/// usual on the main network. Blocks can be ten times as large, so a limit on their number is not enough.
const GENERATION_BYTES: usize = 12 * 1024 * 1024;

/// Memory that a trie node or a response of the own node takes beside its own bytes, in bytes.
const NODE_BYTES: usize = 100;

/// Proven facts of earlier sessions, in two generations. When the young generation is full it replaces the old one,
/// whose facts are dropped. Absence is never cached, because an absent fact may appear later. The location of a
/// transaction is cached once the body of its block has shown the transaction.
///
/// A crate for LRU caches would not replace this: facts of several kinds share one limit of bytes.
#[derive(Debug, Clone)]
pub struct FactCache {
    /// Approximate limit of each generation in bytes.
    generation_bytes: usize,
    /// The generation that takes new facts.
    young: FactStore,
    /// The generation before.
    old: FactStore,
    call_cache: CallCache,
    /// State keys that calls to contracts have read, oldest first.
    touched: Vec<TouchedKey>,
    /// Transactions that this client passed on to upstreams, oldest first.
    sent: Vec<SentTransaction>,
}

impl Default for FactCache {
    fn default() -> Self {
        Self {
            generation_bytes: GENERATION_BYTES,
            young: FactStore::default(),
            old: FactStore::default(),
            call_cache: CallCache::default(),
            touched: Vec::new(),
            sent: Vec::new(),
        }
    }
}

impl FactStore {
    /// Takes over the facts of another store, not what is about its message only: asker, refused facts and executed blocks.
    pub fn merge(&mut self, other: Self) {
        self.headers.extend(other.headers);
        self.headers_at.extend(other.headers_at);
        self.own_node_responses.extend(other.own_node_responses);
        self.bodies.extend(other.bodies);
        self.uncles.extend(other.uncles);
        self.receipts.extend(other.receipts);
        self.block_bytes = self.block_bytes.saturating_add(other.block_bytes);
        self.locations.extend(other.locations);
        // Nodes beyond the limit become missing again: the memory limit takes precedence.
        self.nodes.merge(other.nodes).ok();
        self.call_cache.absorb(other.call_cache);
        self.touched.extend(other.touched);
        self.sent.extend(other.sent);
    }

    /// Adds the receipts of a block that was executed here.
    #[cfg(feature = "local")]
    pub(crate) fn keep_receipts(&mut self, receipts: Arc<VerifiedReceipts>) {
        self.executed = self.executed.saturating_add(1);
        self.block_bytes = self.block_bytes.saturating_add(receipts.bytes());
        self.receipts.insert(receipts.block(), receipts);
    }

    /// Adds a response of the host's own node that cannot change any more.
    pub(crate) fn keep_own_node_response(&mut self, request: UpstreamRequest, response: &RawValue) {
        let bytes = request.params.len().saturating_add(response.get().len()).saturating_add(NODE_BYTES);
        self.block_bytes = self.block_bytes.saturating_add(bytes);
        self.own_node_responses.insert(request, alloc::borrow::ToOwned::to_owned(response).into());
    }

    /// Whether an upstream says that a transaction is in a block.
    pub(crate) fn is_mined(&self, transaction: &B256) -> bool {
        self.locations.get(transaction).is_some_and(|location| matches!(**location, Location::Mined(_)))
    }

    /// Whether the store has nothing that a cache would keep.
    fn is_empty(&self) -> bool {
        let of_node = self.headers_at.is_empty() && self.own_node_responses.is_empty();
        let blocks = self.bodies.is_empty() && self.uncles.is_empty() && self.receipts.is_empty();
        let state = self.nodes.is_empty() && self.call_cache.is_empty() && self.touched.is_empty();
        of_node && blocks && state && self.locations.is_empty() && self.sent.is_empty()
    }

    /// Approximate memory that blocks and state take in the store, in bytes.
    pub fn bytes(&self) -> usize {
        let nodes = self.nodes.len().saturating_mul(NODE_BYTES).saturating_add(self.nodes.total_bytes());
        nodes.saturating_add(self.block_bytes)
    }

    /// Whether the number of entries exceeds a limit of a generation.
    fn is_full(&self) -> bool {
        let counts = [
            self.own_node_responses.len(),
            self.bodies.len(),
            self.uncles.len(),
            self.receipts.len(),
            self.locations.len(),
        ];
        counts.into_iter().any(|count| count > GENERATION_ENTRIES)
            || self.headers_at.len() > GENERATION_HEADERS
            || self.nodes.len() > GENERATION_NODES
    }
}

impl FactCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the blocks and the state that are kept, in bytes. Facts beyond the limit are dropped when new ones come.
    pub fn limit(&mut self, bytes: usize) {
        // There are two generations.
        self.generation_bytes = bytes / 2;
    }

    /// Keeps the facts that a session has proven, except headers off the chain, and transaction locations that no body shows.
    pub fn absorb(&mut self, mut learned: FactStore) {
        if learned.is_empty() {
            return;
        }
        self.call_cache.absorb(core::mem::take(&mut learned.call_cache));
        // Whether a header is off the chain depends on the head of the message, and a header that no upstream knew may appear.
        learned.headers.clear();
        let mut locations = core::mem::take(&mut learned.locations);
        locations.retain(|hash, location| {
            let Location::Mined(block) = &**location else { return false };
            let bodies = [&learned, &self.young, &self.old].map(|store| store.bodies.get(&block.hash));
            bodies.into_iter().flatten().any(|body| body.position(hash).is_some())
        });
        learned.locations = locations;
        learned.refused.clear();
        #[cfg(feature = "local")]
        learned.unsupported.clear();
        // Most of so much data of one message would not serve other callers, and would displace the facts of theirs.
        if learned.bytes() > self.generation_bytes {
            learned.bodies.clear();
            learned.own_node_responses.clear();
            learned.receipts.clear();
            learned.block_bytes = 0;
            learned.nodes = ProvenNodes::new();
        }
        newest_of_each_contract(core::mem::take(&mut learned.touched))
            .into_iter()
            .for_each(|touch| self.remember(touch));
        self.remember_sent(core::mem::take(&mut learned.sent));
        if self.young.bytes().saturating_add(learned.bytes()) > self.generation_bytes {
            self.old = core::mem::take(&mut self.young);
        }
        self.young.merge(learned);
        if self.young.is_full() {
            self.old = core::mem::take(&mut self.young);
        }
    }
}

impl FactCache {
    /// Remembers that calls to a contract read a key. Older keys of the same contract are dropped first, then keys of
    /// any contract.
    fn remember(&mut self, mut touch: TouchedKey) {
        let is_same = |known: &TouchedKey| (known.contract, known.key) == (touch.contract, touch.key);
        if let Some(index) = self.touched.iter().position(is_same) {
            let known = self.touched.remove(index);
            // A key that calls with different data have read counts for all call data.
            touch.data = touch.data.filter(|_| known.data == touch.data);
        }
        let own = |known: &TouchedKey| known.contract == touch.contract;
        let same = self.touched.iter().filter(|known| own(known)).count();
        let first = self.touched.iter().position(own);
        match first {
            Some(first) if same >= MAX_TOUCHED => drop(self.touched.remove(first)),
            _ if self.touched.len() >= MAX_TOUCHED_TOGETHER => drop(self.touched.remove(0)),
            _ => {}
        }
        self.touched.push(touch);
    }
}

/// The keys of one message that the cache can keep: the newest of each contract. A message may miss thousands of keys in
/// each of its calls.
fn newest_of_each_contract(mut touched: Vec<TouchedKey>) -> Vec<TouchedKey> {
    let mut newest: Vec<(Address, Vec<StateKey>)> = Vec::new();
    touched.reverse();
    touched.retain(|touch| {
        if newest.iter().all(|(contract, _)| *contract != touch.contract) {
            newest.push((touch.contract, Vec::new()));
        }
        let own = newest.iter_mut().find(|(contract, _)| *contract == touch.contract);
        own.is_some_and(|(_, keys)| {
            // Of a key that several calls have read, each entry stays, so that the cache sees that their data differ.
            let known = keys.contains(&touch.key);
            let fits = keys.len() < MAX_TOUCHED;
            if fits && !known {
                keys.push(touch.key);
            }
            fits || known
        })
    });
    touched.reverse();
    touched
}

impl FactCache {
    /// Remembers sent transactions; an asker that sends one again has it as its newest.
    fn remember_sent(&mut self, sent: Vec<SentTransaction>) {
        for sent in sent {
            self.sent.retain(|known| known.hash != sent.hash || known.asker != sent.asker);
            // All entries of the same transaction share one copy.
            let same = self.sent.iter_mut().filter(|known| known.hash == sent.hash);
            same.for_each(|known| known.transaction = sent.transaction.clone());
            self.sent.push(sent);
            if self.sent.len() > MAX_SENT {
                self.forget_sent();
            }
        }
    }

    /// Drops the oldest transaction of the quota owner with the most, so that one caller cannot displace the transactions of
    /// others.
    fn forget_sent(&mut self) {
        let mut counts = BTreeMap::<_, usize>::new();
        for sent in &self.sent {
            let count = counts.entry(sent.quota_owner()).or_default();
            *count = count.saturating_add(1);
        }
        let most = counts.values().max().copied();
        let oldest = self.sent.iter().position(|sent| counts.get(&sent.quota_owner()).copied() == most);
        drop(oldest.map(|index| self.sent.remove(index)));
    }

    /// Transactions that this client passed on to upstreams, each once with its hash, oldest first.
    pub(super) fn sent_by_hash(&self) -> impl Iterator<Item = (B256, &Arc<Transaction>)> {
        // Several askers may have sent the same one.
        let is_last = |(index, sent): &(usize, &SentTransaction)| {
            self.sent.iter().skip(index.saturating_add(1)).all(|later| later.hash != sent.hash)
        };
        self.sent.iter().enumerate().filter(is_last).map(|(_, sent)| (sent.hash, &sent.transaction))
    }
}

/// The facts that a session can read: its own first, then the cache.
#[derive(Debug, Clone, Copy)]
pub struct KnownFacts<'a> {
    own: &'a FactStore,
    cache: &'a FactCache,
}

impl<'a> KnownFacts<'a> {
    /// Facts of `own`, then of `cache`.
    pub fn new(own: &'a FactStore, cache: &'a FactCache) -> Self {
        Self { own, cache }
    }

    fn stores(&self) -> [&'a FactStore; 3] {
        [self.own, &self.cache.young, &self.cache.old]
    }

    /// Values that earlier calls have computed from proven nodes.
    pub(crate) fn call_cache(&self) -> [&'a CallCache; 2] {
        [&self.own.call_cache, &self.cache.call_cache]
    }

    /// A header off the chain by its hash; only the hash is proven. `Some(None)` means that the upstreams do not know the header.
    pub fn header(&self, hash: &B256) -> Option<&'a Option<Arc<SealedHeader>>> {
        self.stores().into_iter().find_map(|s| s.headers.get(hash))
    }

    /// A header below the start by its height, as the host's own node shows it.
    pub fn header_at(&self, number: u64) -> Option<&'a VerifiedHeader> {
        self.stores().into_iter().find_map(|s| s.headers_at.get(&number))
    }

    /// A response of the host's own node that cannot change any more.
    pub(crate) fn own_node_response(&self, request: &UpstreamRequest) -> Option<&'a RawValue> {
        self.stores().into_iter().find_map(|s| s.own_node_responses.get(request)).map(|response| &**response)
    }

    /// The body of a block.
    pub fn body(&self, block: &B256) -> Option<&'a Arc<VerifiedBody>> {
        self.stores().into_iter().find_map(|s| s.bodies.get(block))
    }

    /// The uncles of a block.
    pub fn uncles(&self, block: &B256) -> Option<&'a Arc<VerifiedUncles>> {
        self.stores().into_iter().find_map(|s| s.uncles.get(block))
    }

    /// The receipts of a block.
    pub fn receipts(&self, block: &B256) -> Option<&'a Arc<VerifiedReceipts>> {
        self.stores().into_iter().find_map(|s| s.receipts.get(block))
    }

    /// The keys that earlier calls to a contract have read: those of calls whose data has the hash `data`, and those that calls with
    /// different data have read.
    pub fn touched(&self, contract: Address, data: B256) -> impl Iterator<Item = StateKey> + 'a + use<'a> {
        let fits =
            move |touch: &&TouchedKey| touch.contract == contract && touch.data.is_none_or(|of| of == data);
        self.cache.touched.iter().filter(fits).map(|touch| touch.key)
    }

    /// Whether no upstream could prove a fact for the message that is being answered.
    pub(crate) fn is_refused(&self, fact: &Fact) -> bool {
        self.own.refused.contains(fact)
    }

    /// Whether a fact could not be proven for the message that is being answered, and an upstream has no method for it.
    #[cfg(feature = "local")]
    pub(crate) fn is_unsupported(&self, fact: &Fact) -> bool {
        self.own.unsupported.contains(fact)
    }

    /// Number of blocks that were executed here for the message that is being answered.
    #[cfg(feature = "local")]
    pub(crate) fn executed(&self) -> usize {
        self.own.executed
    }

    /// The transactions that this client passed on to upstreams for the present asker.
    fn own_sent(&self) -> impl Iterator<Item = &'a SentTransaction> + use<'a> {
        let asker = self.own.asker;
        self.own.sent.iter().chain(&self.cache.sent).filter(move |sent| sent.asker == asker)
    }

    /// A transaction that this client passed on to upstreams for the present asker.
    pub fn sent(&self, hash: &B256) -> Option<&'a Arc<Transaction>> {
        self.own_sent().find(|sent| sent.hash == *hash).map(|sent| &sent.transaction)
    }

    /// Whether only other askers have sent a transaction through this client, so that it is not shown until it is mined.
    pub(crate) fn is_from_others(&self, hash: &B256) -> bool {
        self.cache.sent.iter().any(|sent| sent.hash == *hash) && self.sent(hash).is_none()
    }

    /// The next nonce of an account: `first`, or the nonce after the present asker's transactions that use `first` and
    /// the nonces that follow without a gap.
    pub fn next_nonce(&self, sender: &Address, first: u64) -> u64 {
        let mut next = first;
        let used = |nonce: u64| {
            self.own_sent()
                .any(|sent| sent.sender == *sender && sent.transaction.nonce.value() == U256::from(nonce))
        };
        while used(next) {
            next = next.saturating_add(1);
        }
        next
    }

    /// The location of a transaction.
    pub fn location(&self, transaction: &B256) -> Option<&'a Location> {
        self.stores().into_iter().find_map(|s| s.locations.get(transaction)).map(|location| &**location)
    }
}

impl NodeSource for KnownFacts<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.stores().into_iter().find_map(|s| s.nodes.node(hash))
    }
}

#[cfg(test)]
#[path = "fact_store_test.rs"]
mod tests;
