//! What is known of a block of a network, and of the blocks below it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::{B256, Bytes};
use rootlight::consensus::{Network, VerifiedHeader, VerifiedUncles};
use rootlight::local::{ForkBase, StoredBlock};
use rootlight::state::Account;
use rootlight::state::keys::REMASC_SENDER_KEY;
use rootlight::trie::{NodeSource, TrieBase, WalkError, lookup_value};
use rootlight::types::SealedHeader;

use super::growing_map::GrowingMap;

/// Most things that one run may miss.
pub(super) const MOST_MISSING: usize = 100_000;

/// Values that are kept at which no more of those are kept that nodes prove to be absent: code can read any number of them.
const MOST_ABSENT: usize = 250_000;

thread_local! {
    /// How many reads of the present thread have found something missing.
    static MISSED: Cell<u64> = const { Cell::new(0) };
    /// What they have found missing, by the address of their block. What one message cannot have is no fault of others.
    static MISSING: RefCell<BTreeMap<usize, BTreeSet<Missing>>> = const { RefCell::new(BTreeMap::new()) };
}

/// How many reads of the present thread have found something missing so far.
pub(super) fn missed() -> u64 {
    MISSED.get()
}

/// Forgets what earlier runs of the present thread have found missing.
pub(super) fn forget_missing() {
    MISSING.with_borrow_mut(BTreeMap::clear);
}

/// Something that was read and is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Missing {
    /// The value under a key of the state.
    Value(Vec<u8>),
    /// The header of an ancestor, by its height.
    Header(u64),
    /// The header with this hash, if it is an ancestor's.
    HeaderOf(B256),
    /// Body and receipts of a block.
    Contents(u64),
    /// The uncles of a block.
    Uncles(u64),
    /// The place of a transaction.
    Place(B256),
    /// Another block to begin on: of the chain of a URL, and its height.
    Other(OtherStart),
}

/// The URL and the height of another block to begin on.
pub(super) type OtherStart = (Option<String>, Option<u64>);

/// A block of a network with what was read below it.
pub(super) struct ForkState {
    pub(super) block: VerifiedHeader,
    pub(super) network: Arc<Network>,
    pub(super) first_rewarded: u64,
    /// Values by trie key; `None` is known to be absent.
    pub(super) values: GrowingMap<Option<Bytes>>,
    pub(super) parts: Mutex<Parts>,
}

/// What is known besides values.
#[derive(Default)]
pub(super) struct Parts {
    /// Proven trie nodes and long values of the block's state.
    pub(super) nodes: Nodes,
    /// Ancestors, without gaps down to the lowest.
    pub(super) headers: BTreeMap<u64, VerifiedHeader>,
    pub(super) numbers: HashMap<B256, u64>,
    /// Hashes that no ancestor has, as far as the upstream says.
    pub(super) unknown_hashes: BTreeSet<B256>,
    pub(super) contents: HashMap<u64, Arc<StoredBlock>>,
    pub(super) uncles: HashMap<u64, Arc<VerifiedUncles>>,
    pub(super) places: HashMap<B256, Option<(B256, usize)>>,
    pub(super) others: BTreeMap<OtherStart, Arc<ForkState>>,
}

/// Nodes by their keccak-256.
#[derive(Debug, Default)]
pub(super) struct Nodes(pub(super) HashMap<B256, Bytes>);

impl NodeSource for Nodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.0.get(hash).cloned()
    }
}

impl std::fmt::Debug for ForkState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForkState").field("block", &self.block.hash()).finish_non_exhaustive()
    }
}

impl ForkState {
    pub(super) fn new(network: Arc<Network>, block: VerifiedHeader) -> Self {
        let first_rewarded = block.number.saturating_add(1);
        let state =
            Self { block, network, first_rewarded, values: GrowingMap::default(), parts: Mutex::default() };
        let header = state.block.clone();
        state.parts().add_header(header);
        // The REMASC transaction of each block since block 1 has counted the nonce up.
        let counter = Account { nonce: state.block.number, ..Account::default() };
        state.values.insert(&REMASC_SENDER_KEY, Some(counter.encode().into()));
        state
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn note(&self, missing: Missing) {
        MISSING.with_borrow_mut(|all| {
            let of_block = all.entry(self.address()).or_default();
            // One more shows that there are too many.
            if of_block.len() <= MOST_MISSING {
                of_block.insert(missing);
            }
        });
        MISSED.set(MISSED.get().wrapping_add(1));
    }

    /// Takes what reads of the present thread have found missing since the last call.
    pub(super) fn take_missing(&self) -> BTreeSet<Missing> {
        MISSING.with_borrow_mut(|all| all.remove(&self.address())).unwrap_or_default()
    }

    /// The value under a key as far as proven nodes tell.
    pub(super) fn proven(&self, key: &[u8]) -> Result<Option<Bytes>, WalkError> {
        lookup_value(&self.parts().nodes, self.block.state_root, key)
    }

    /// The height at which REMASC pays first, given the known ancestors: from the oldest whose uncles, and those of the blocks
    /// above it, are known to be none.
    pub(super) fn set_first_rewarded(&mut self) {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        let plain = parts.headers.iter().rev().take_while(|(_, header)| header.uncle_count == 0);
        let lowest = plain.last().map_or(u64::MAX, |(number, _)| *number);
        self.first_rewarded = lowest.clamp(1, self.block.number.saturating_add(1));
    }
}

impl Parts {
    pub(super) fn add_header(&mut self, header: VerifiedHeader) {
        self.numbers.insert(header.hash(), header.number);
        self.headers.insert(header.number, header);
    }

    /// The lowest known ancestor.
    pub(super) fn lowest(&self) -> Option<VerifiedHeader> {
        self.headers.first_key_value().map(|(_, header)| header.clone())
    }
}

impl TrieBase for ForkState {
    fn value(&self, key: &[u8]) -> Option<&Bytes> {
        if let Some(known) = self.values.get(key) {
            return known.as_ref();
        }
        match self.proven(key) {
            Ok(None) if self.values.len() >= MOST_ABSENT => None,
            Ok(value) => self.values.insert(key, value).as_ref(),
            Err(_) => {
                self.note(Missing::Value(key.to_vec()));
                None
            }
        }
    }

    fn root(&self) -> B256 {
        self.block.state_root
    }
}

impl ForkBase for ForkState {
    fn block(&self) -> &VerifiedHeader {
        &self.block
    }

    fn header(&self, number: u64) -> Option<VerifiedHeader> {
        let parts = self.parts();
        let known = parts.headers.get(&number).cloned();
        if known.is_none() && number < self.block.number {
            self.note(Missing::Header(number));
        }
        known
    }

    fn header_by_hash(&self, hash: &B256) -> Option<VerifiedHeader> {
        let parts = self.parts();
        if let Some(number) = parts.numbers.get(hash) {
            return parts.headers.get(number).cloned();
        }
        if !parts.unknown_hashes.contains(hash) {
            self.note(Missing::HeaderOf(*hash));
        }
        None
    }

    fn contents(&self, header: &SealedHeader) -> Option<Arc<StoredBlock>> {
        let parts = self.parts();
        let known = parts.contents.get(&header.number).cloned();
        if known.is_none() {
            self.note(Missing::Contents(header.number));
        }
        known
    }

    fn uncles(&self, header: &SealedHeader) -> Option<Arc<VerifiedUncles>> {
        let parts = self.parts();
        let known = parts.uncles.get(&header.number).cloned();
        if known.is_none() {
            self.note(Missing::Uncles(header.number));
        }
        known
    }

    fn locate(&self, transaction: &B256) -> Option<(B256, usize)> {
        let parts = self.parts();
        match parts.places.get(transaction) {
            Some(place) => *place,
            None => {
                self.note(Missing::Place(*transaction));
                None
            }
        }
    }

    fn other(&self, url: Option<&str>, number: Option<u64>) -> Option<Arc<dyn ForkBase>> {
        let wanted = (url.map(str::to_owned), number);
        let parts = self.parts();
        if let Some(known) = parts.others.get(&wanted) {
            return Some(known.clone());
        }
        self.note(Missing::Other(wanted));
        None
    }

    fn first_rewarded(&self) -> u64 {
        self.first_rewarded
    }
}

#[cfg(test)]
mod tests {
    use rootlight::consensus::{Checkpoint, HeaderChain, testing};
    use rootlight::trie::EMPTY_ROOT;
    use rootlight::types::Header;

    use super::*;

    /// A block without any account.
    fn empty() -> ForkState {
        let network = Arc::new(Network::regtest());
        let header = Header { state_root: EMPTY_ROOT, ..testing::header(&network, 7) }.seal();
        let at = Checkpoint { number: 7, hash: header.hash(), total_difficulty: None };
        let chain = HeaderChain::from_checkpoint(network.clone(), &at, header).unwrap();
        ForkState::new(network, chain.head().clone())
    }

    #[test]
    fn what_one_run_misses_has_a_limit() {
        let (state, before) = (empty(), missed());
        let runs = MOST_MISSING + 20;
        for number in 0..runs {
            assert!(state.locate(&B256::left_padding_from(&number.to_be_bytes())).is_none());
        }
        assert_eq!(missed() - before, runs as u64);
        assert_eq!(state.take_missing().len(), MOST_MISSING + 1);
    }

    #[test]
    fn what_other_threads_miss_is_not_taken() {
        let (one, other) = (empty(), empty());
        std::thread::scope(|scope| scope.spawn(|| assert!(one.header(3).is_none())).join().unwrap());
        assert!(one.header(5).is_none() && other.header(2).is_none());
        assert_eq!(one.take_missing(), BTreeSet::from([Missing::Header(5)]));
        forget_missing();
        assert!(other.take_missing().is_empty());
    }

    #[test]
    fn values_that_are_absent_are_kept_up_to_a_limit() {
        let state = empty();
        for number in 0..MOST_ABSENT + 20 {
            assert!(state.value(&number.to_be_bytes()).is_none());
        }
        assert_eq!((state.values.len(), state.take_missing().len()), (MOST_ABSENT, 0));
        assert!(state.value(&REMASC_SENDER_KEY).is_some());
    }
}
