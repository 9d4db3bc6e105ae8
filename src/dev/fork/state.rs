//! The fetched data of the block on which a fork begins, and of its ancestors. The chain reads them through [`ForkBase`] and
//! [`TrieBase`]; a read of data that is not fetched returns none and is noted ([`MissingNotes`]).

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes, keccak256};
use spin::{Mutex, MutexGuard};

use super::error::ForkError;
use super::growing_map::GrowingMap;
use super::missing::{MOST_CONTENTS, Missing, MissingNotes, OtherStart};
use crate::consensus::{Network, Rule, VerifiedHeader, VerifiedUncles};
use crate::local::{ForkBase, ForkBody, StoredBlock};
use crate::state::Account;
use crate::state::keys::REMASC_SENDER_KEY;
use crate::trie::{NodeSource, TrieBase, WalkError, lookup_value};
use crate::types::SealedHeader;

/// Number of stored values from which absences that proven nodes show are no longer stored. Code can read any number of absent slots,
/// and each can be proven again from the nodes.
const MOST_ABSENT: usize = 250_000;

/// Most results of look-ups by hash that are stored, of each kind; all are dropped when there are more.
const MOST_LOOKUPS: usize = 100_000;

/// The block on which a fork begins, with its state and ancestors as far as they are fetched.
pub struct ForkState {
    pub(super) block: VerifiedHeader,
    pub(super) network: Arc<Network>,
    /// See [`ForkBase::first_rewarded_block`].
    pub(super) first_rewarded_block: u64,
    /// Values by trie key; `None` is a key that has no value.
    pub(super) values: GrowingMap<Option<Bytes>>,
    parts: Mutex<Parts>,
    notes: Arc<dyn MissingNotes>,
}

/// The fetched data besides values. All maps by number have the heights of blocks as keys.
#[derive(Default)]
pub(super) struct Parts {
    /// Proven trie nodes and long values of the block's state.
    pub(super) nodes: Nodes,
    /// The block and its ancestors, without gaps down to the lowest.
    pub(super) headers: BTreeMap<u64, VerifiedHeader>,
    /// The heights of `headers` by hash.
    pub(super) numbers: B256Map<u64>,
    /// Hashes that no ancestor has, as the upstreams state without proof.
    unknown_hashes: BTreeSet<B256>,
    pub(super) bodies: BTreeMap<u64, Arc<ForkBody>>,
    pub(super) contents: BTreeMap<u64, Arc<StoredBlock>>,
    pub(super) uncles: BTreeMap<u64, Arc<VerifiedUncles>>,
    /// Block hash and index of transactions; `None` for a transaction in no block, as the upstreams state without proof.
    locations: B256Map<Option<(B256, usize)>>,
    /// Other blocks on which the fork can begin, as methods have named them.
    others: Vec<(OtherStart, Arc<ForkState>)>,
}

/// Nodes by their keccak-256.
#[derive(Debug, Default)]
pub(super) struct Nodes(pub(super) B256Map<Bytes>);

impl NodeSource for Nodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.0.get(hash).cloned()
    }
}

impl core::fmt::Debug for ForkState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ForkState").field("block", &self.block.hash()).finish_non_exhaustive()
    }
}

impl ForkState {
    /// A block of which nothing but the header is fetched. Data that runs find missing is noted in `notes`.
    ///
    /// # Errors
    /// [`ForkError::TooOld`] if the block's state is no Unitrie (RSKIP-126).
    pub fn new(
        network: Arc<Network>,
        block: VerifiedHeader,
        notes: Arc<dyn MissingNotes>,
    ) -> Result<Self, ForkError> {
        if !network.active(Rule::Rskip126, block.number) {
            return Err(ForkError::TooOld { number: block.number });
        }
        let first_rewarded_block = block.number.saturating_add(1);
        let (values, parts) = (GrowingMap::default(), Mutex::default());
        let state = Self { block, network, first_rewarded_block, values, parts, notes };
        state.add_header(state.block.clone());
        // Each block since block 1 ends with a transaction of REMASC, whose sender's nonce therefore equals the block's number.
        let counter = Account { nonce: state.block.number, ..Account::default() };
        state.values.insert(&REMASC_SENDER_KEY, Some(counter.encode().into()));
        Ok(state)
    }

    /// Locks the fetched data besides values.
    pub(super) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock()
    }

    /// The network of the block.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Adds an ancestor.
    pub fn add_header(&self, header: VerifiedHeader) {
        self.parts().add_header(header);
    }

    /// The lowest linked ancestor, or the block itself.
    pub fn lowest(&self) -> VerifiedHeader {
        self.parts().lowest().unwrap_or_else(|| self.block.clone())
    }

    /// The linked ancestors at heights in a range, in ascending order.
    pub fn headers(&self, heights: Range<u64>) -> Vec<VerifiedHeader> {
        self.parts().headers.range(heights).map(|(_, header)| header.clone()).collect()
    }

    /// Adds a trie node or a long value of the state, by its hash. Reads follow hashes from the state root, so a node of another state
    /// is never read.
    pub fn add_node(&self, bytes: Bytes) {
        self.parts().nodes.0.insert(keccak256(&bytes), bytes);
    }

    /// Adds a value that upstreams state without proof; `None` says that the key has no value.
    pub fn add_value(&self, key: &[u8], value: Option<Bytes>) {
        self.values.insert(key, value);
    }

    /// Adds another block on which the fork can begin, under the URL and height that a method has named.
    pub fn add_other(&self, wanted: OtherStart, state: Arc<Self>) {
        self.parts().others.push((wanted, state));
    }

    /// Drops the other blocks, so that a later reset to the head finds the head at that time.
    pub fn forget_others(&self) {
        self.parts().others.clear();
    }

    /// Adds the transactions of an ancestor. If too many are stored, those of blocks that are not in `in_use` are dropped first.
    pub(super) fn add_body(&self, in_use: &BTreeSet<u64>, header: &VerifiedHeader, body: ForkBody) {
        let mut parts = self.parts();
        drop_unused_blocks(&mut parts.bodies, in_use);
        for (index, hash) in body.body.hashes().iter().enumerate() {
            parts.add_location(*hash, Some((header.hash(), index)));
        }
        parts.bodies.insert(header.number, Arc::new(body));
    }

    /// As [`Self::add_body`], with the receipts.
    pub(super) fn add_contents(&self, in_use: &BTreeSet<u64>, number: u64, block: Arc<StoredBlock>) {
        let mut parts = self.parts();
        drop_unused_blocks(&mut parts.contents, in_use);
        parts.contents.insert(number, block);
    }

    /// Returns a part of the block, and notes it as missing if it is `None`.
    fn known<T>(&self, part: Option<T>, missing: Missing) -> Option<T> {
        if part.is_none() {
            self.note(missing);
        }
        part
    }

    /// Notes missing data of the present run.
    fn note(&self, missing: Missing) {
        self.notes.note(missing);
    }

    /// The value under a key, from proven nodes; `None` if they prove that there is none. An error if a node on the way is missing.
    pub(super) fn proven(&self, key: &[u8]) -> Result<Option<Bytes>, WalkError> {
        lookup_value(&self.parts().nodes, self.block.state_root, key)
    }

    /// Sets the oldest ancestor whose fees REMASC distributes: the lowest of the linked ones that has no uncles and above which no block
    /// has any. REMASC pays the miners of uncles too, and uncles are not fetched for it.
    pub(super) fn set_first_rewarded(&mut self) {
        let parts = self.parts.get_mut();
        let plain = parts.headers.iter().rev().take_while(|(_, header)| header.uncle_count == 0);
        let lowest = plain.last().map_or(u64::MAX, |(number, _)| *number);
        self.first_rewarded_block = lowest.clamp(1, self.block.number.saturating_add(1));
    }
}

impl Parts {
    /// Adds a linked header.
    pub(super) fn add_header(&mut self, header: VerifiedHeader) {
        self.numbers.insert(header.hash(), header.number);
        self.headers.insert(header.number, header);
    }

    /// Adds the location of a transaction; `None` if it is in no block, as the upstreams state without proof.
    pub(super) fn add_location(&mut self, transaction: B256, location: Option<(B256, usize)>) {
        if self.locations.len() >= MOST_LOOKUPS {
            self.locations.clear();
        }
        self.locations.insert(transaction, location);
    }

    /// Adds a hash that no ancestor has, as the upstreams state without proof.
    pub(super) fn add_unknown(&mut self, hash: B256) {
        if self.unknown_hashes.len() >= MOST_LOOKUPS {
            self.unknown_hashes.clear();
        }
        self.unknown_hashes.insert(hash);
    }

    /// The linked headers at those of these heights for which `is_open` returns true.
    pub(super) fn linked(
        &self,
        heights: &BTreeSet<u64>,
        is_open: impl Fn(&Self, &u64) -> bool,
    ) -> Vec<VerifiedHeader> {
        let open = heights.iter().filter(|number| is_open(self, number));
        open.filter_map(|number| self.headers.get(number).cloned()).collect()
    }

    /// The lowest linked ancestor.
    pub(super) fn lowest(&self) -> Option<VerifiedHeader> {
        self.headers.first_key_value().map(|(_, header)| header.clone())
    }
}

/// If a map has as many blocks as it may store, drops those that are not in `in_use`.
fn drop_unused_blocks<T>(of_blocks: &mut BTreeMap<u64, T>, in_use: &BTreeSet<u64>) {
    if of_blocks.len() >= MOST_CONTENTS {
        of_blocks.retain(|number, _| in_use.contains(number));
    }
}

impl TrieBase for ForkState {
    fn value(&self, key: &[u8]) -> Option<&Bytes> {
        if let Some(known) = self.values.get(key) {
            return known.as_ref();
        }
        match self.proven(key) {
            Ok(None) if self.values.len() >= MOST_ABSENT => None,
            // Values are stored because this method returns references, which the nodes, behind a lock, cannot give.
            Ok(value) => self.values.insert(key, value)?.as_ref(),
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
        // Heights above the block are those of the development chain, which no upstream has.
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

    fn body(&self, header: &SealedHeader) -> Option<Arc<ForkBody>> {
        let known = self.parts().bodies.get(&header.number).cloned();
        self.known(known, Missing::Body(header.number))
    }

    fn contents(&self, header: &SealedHeader) -> Option<Arc<StoredBlock>> {
        let known = self.parts().contents.get(&header.number).cloned();
        self.known(known, Missing::Contents(header.number))
    }

    fn uncles(&self, header: &SealedHeader) -> Option<Arc<VerifiedUncles>> {
        let known = self.parts().uncles.get(&header.number).cloned();
        self.known(known, Missing::Uncles(header.number))
    }

    fn locate(&self, transaction: &B256) -> Option<(B256, usize)> {
        let parts = self.parts();
        match parts.locations.get(transaction) {
            Some(location) => *location,
            None => {
                self.note(Missing::Location(*transaction));
                None
            }
        }
    }

    fn other_start(&self, url: Option<&str>, number: Option<u64>) -> Option<Arc<dyn ForkBase>> {
        let wanted = (url.map(str::to_owned), number);
        let parts = self.parts();
        if let Some((_, known)) = parts.others.iter().find(|(known, _)| *known == wanted) {
            return Some(known.clone());
        }
        self.note(Missing::Other(wanted));
        None
    }

    fn first_rewarded_block(&self) -> u64 {
        self.first_rewarded_block
    }
}

#[cfg(test)]
mod tests {
    use super::super::missing::SharedNotes;
    use super::*;
    use crate::consensus::{Checkpoint, HeaderChain, testing};
    use crate::trie::EMPTY_ROOT;
    use crate::types::Header;

    #[test]
    fn values_that_are_absent_are_kept_up_to_a_limit() {
        let network = Arc::new(Network::regtest());
        let header = Header { state_root: EMPTY_ROOT, ..testing::header(&network, 7) }.seal();
        let at = Checkpoint { number: 7, hash: header.hash(), total_difficulty: None };
        let chain = HeaderChain::from_checkpoint(network.clone(), &at, header).unwrap();
        let notes = Arc::new(SharedNotes::default());
        let state = ForkState::new(network, chain.head().clone(), notes.clone()).unwrap();
        for number in 0..MOST_ABSENT + 20 {
            assert!(state.value(&number.to_be_bytes()).is_none());
        }
        assert_eq!(state.values.len(), MOST_ABSENT);
        assert!(notes.take().is_empty());
        assert!(state.value(&REMASC_SENDER_KEY).is_some());
    }
}
