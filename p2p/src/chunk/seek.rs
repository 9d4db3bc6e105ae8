//! Searches keys of one state by requesting chunks around the offsets at which the keys probably are: keys are hashes, so they are
//! spread evenly, and each received node narrows the range of offsets down.

use alloc::vec::Vec;

use alloy_primitives::{B256, Bytes};
use rootlight::trie::limits::MAX_KEY_BYTES;
use rootlight::trie::{Bits, EMPTY_ROOT, NodeSource};
use thiserror::Error;

use super::limits::{MAX_IN_FLIGHT, MAX_KEYS, MAX_PROBES, SPAN};
use super::plan::{Wish, windows};
use super::walk::{OffsetRange, WalkPosition, WalkResult, follow};

/// Number of bits with which all keys of the state trie begin, so that they do not tell keys apart.
const COMMON_BITS: usize = 8;

/// The answer about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyAnswer {
    /// The key has this value. All nodes on its path are in the caller's store.
    Present(Bytes),
    /// The key has no value.
    Absent,
    /// [`MAX_PROBES`] chunks were requested for the key and none shows it, or a node on its path is invalid.
    Unreachable,
}

/// The keys of a search exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SeekError {
    #[error("{0} keys, at most {MAX_KEYS}")]
    TooManyKeys(usize),
    #[error("a key of {0} bytes, at most {MAX_KEY_BYTES}")]
    KeyTooLong(usize),
}

/// A search for keys in one state. The caller owns the store of proven nodes, which many searches share:
///
/// 1. [`Self::next`] returns the offsets at which to request chunks now;
/// 2. for each, the caller adds what [`super::prove`] returns to the store and calls [`Self::received`], or calls
///    [`Self::failed`] if no chunk comes or it proves nothing;
/// 3. the caller repeats both steps until [`Self::is_finished`].
///
/// Nodes that are in the store already are not requested again: with the nodes of an older state, a search requests only
/// what has changed on the paths of its keys.
#[derive(Debug, Clone)]
pub struct Seek {
    root: B256,
    /// Size of the trie as the caller states it, for use until the root node is in the store; may be wrong.
    size: Option<u64>,
    /// The root of an earlier state, whose nodes in the store give first guesses.
    earlier: Option<B256>,
    keys: Vec<SoughtKey>,
    /// Offsets of requested chunks that have not come.
    in_flight: Vec<u64>,
}

/// A key that is searched.
#[derive(Debug, Clone)]
struct SoughtKey {
    bytes: Vec<u8>,
    /// The last node on its path that was in the store.
    last_node: Option<WalkPosition>,
    /// Number of chunks that were requested for it.
    probes: u8,
    answer: Option<KeyAnswer>,
}

impl Seek {
    /// Searches these keys in the state with this root. The size of its trie saves one request; it need not be proven.
    ///
    /// # Errors
    /// There are too many keys, or one is too long.
    pub fn new(
        root: B256,
        trie_size: Option<u64>,
        keys: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Self, SeekError> {
        let answer = (root == EMPTY_ROOT).then_some(KeyAnswer::Absent);
        let key = |bytes| SoughtKey { bytes, last_node: None, probes: 0, answer: answer.clone() };
        let keys: Vec<SoughtKey> = keys.into_iter().take(MAX_KEYS.saturating_add(1)).map(key).collect();
        if keys.len() > MAX_KEYS {
            return Err(SeekError::TooManyKeys(keys.len()));
        }
        if let Some(long) = keys.iter().find(|key| key.bytes.len() > MAX_KEY_BYTES) {
            return Err(SeekError::KeyTooLong(long.bytes.len()));
        }
        Ok(Self { root, size: trie_size, earlier: None, keys, in_flight: Vec::new() })
    }

    /// Guesses the offsets of keys from their offsets in an earlier state, of which nodes are in the store.
    #[must_use]
    pub fn near(self, earlier_root: B256) -> Self {
        Self { earlier: Some(earlier_root), ..self }
    }

    /// The root of the state.
    pub const fn root(&self) -> B256 {
        self.root
    }

    /// Looks up all keys without an answer in the store, and returns the offsets at which to request chunks now. At most
    /// [`MAX_IN_FLIGHT`] requests wait for a chunk at a time; an empty list means that all keys wait for such chunks.
    pub fn next(&mut self, store: &dyn NodeSource) -> Vec<u64> {
        let root = WalkPosition::root(store, self.root);
        let earlier = self.earlier.and_then(|earlier| WalkPosition::root(store, earlier));
        let (size, in_flight) = (self.size, &self.in_flight);
        let mut open: Vec<(Wish, usize)> = Vec::new();
        for (index, key) in self.keys.iter_mut().enumerate() {
            let Some(wish) = key.look_up(store, root, earlier, size) else { continue };
            if !in_flight.iter().any(|from| wish.is_covered(*from)) {
                open.push((wish, index));
            }
        }
        let mut wishes: Vec<Wish> = open.iter().map(|(wish, _)| *wish).collect();
        let free = MAX_IN_FLIGHT.saturating_sub(self.in_flight.len());
        let chosen: Vec<u64> =
            windows(&mut wishes).into_iter().map(|window| window.from).take(free).collect();
        let covered = |wish: &Wish| chosen.iter().any(|from| wish.is_covered(*from));
        for (_, index) in open.iter().filter(|(wish, _)| covered(wish)) {
            if let Some(key) = self.keys.get_mut(*index) {
                key.probes = key.probes.saturating_add(1);
            }
        }
        self.in_flight.extend_from_slice(&chosen);
        chosen
    }

    /// Notes that the chunk from this offset on was proven, and that its nodes are in the store.
    pub fn received(&mut self, from: u64) {
        self.in_flight.retain(|other| *other != from);
    }

    /// Notes that no chunk from this offset on came, or that it proves nothing. The chunk is requested again, unless only guesses led to
    /// the offset ([`Self::is_guess`]): then the search starts at the beginning of the trie.
    pub fn failed(&mut self, from: u64) {
        self.received(from);
        if self.keys.iter().all(|key| key.last_node.is_none()) {
            (self.size, self.earlier) = (None, None);
        }
    }

    /// Whether the requested offsets come only from unproven numbers: the stated size of the trie, or the offsets of keys in an
    /// earlier state. Then an offset may be beyond the end of the trie, and no chunk comes.
    pub fn is_guess(&self) -> bool {
        (self.size.is_some() || self.earlier.is_some()) && self.keys.iter().all(|key| key.last_node.is_none())
    }

    /// Whether every key has an answer.
    pub fn is_finished(&self) -> bool {
        self.keys.iter().all(|key| key.answer.is_some())
    }

    /// The keys in the order of [`Self::new`], each with its answer as of the last [`Self::next`].
    pub fn answers(&self) -> impl Iterator<Item = (&[u8], Option<&KeyAnswer>)> {
        self.keys.iter().map(|key| (key.bytes.as_slice(), key.answer.as_ref()))
    }
}

impl SoughtKey {
    /// Follows the key through the nodes in the store. Sets the answer, or returns the offsets that a chunk should cover for the key.
    fn look_up(
        &mut self,
        store: &dyn NodeSource,
        root: Option<WalkPosition>,
        earlier: Option<WalkPosition>,
        size: Option<u64>,
    ) -> Option<Wish> {
        if self.answer.is_some() {
            return None;
        }
        // The caller may have removed the last node from the store.
        let at = self.last_node.filter(|at| store.node(&at.hash).is_some()).or(root);
        let reached = at.map(|at| follow(store, &self.bytes, at));
        let (last_node, range, bits) = match reached {
            Some(Ok((WalkResult::Value(value), _))) => return self.settle(KeyAnswer::Present(value)),
            Some(Ok((WalkResult::Nothing, _))) => return self.settle(KeyAnswer::Absent),
            Some(Err(_)) => return self.settle(KeyAnswer::Unreachable),
            Some(Ok((WalkResult::Gap { at, range, bits }, _))) => (Some(at), range, bits),
            // The root is not in the store. Without a size the first chunk is that from offset 0, which shows the root.
            None => (None, OffsetRange { low: 0, high: size.unwrap_or(0) }, COMMON_BITS),
        };
        if self.probes >= MAX_PROBES {
            return self.settle(KeyAnswer::Unreachable);
        }
        self.last_node = last_node;
        // The first guess is the offset in the earlier state; once a chunk was received, its nodes give a better one.
        if let Some((point, known)) =
            earlier.filter(|_| self.probes == 0).and_then(|at| self.earlier_offset(store, at))
        {
            let range = if self.last_node.is_none() { known } else { range };
            if (range.low..=range.high).contains(&point) {
                return Some(Wish::near(point, range));
            }
        }
        Some(Wish::interpolated(Bits::of_key(&self.bytes).skip(bits), range))
    }

    /// The offset of the key in another state, and that state's range of offsets.
    fn earlier_offset(&self, store: &dyn NodeSource, root: WalkPosition) -> Option<(u64, OffsetRange)> {
        let (reached, own) = follow(store, &self.bytes, root).ok()?;
        let OffsetRange { low, high } = match reached {
            WalkResult::Gap { range, .. } if range.len() > SPAN => return None,
            WalkResult::Gap { range, .. } => range,
            _ => own,
        };
        Some((low.midpoint(high), root.subtree))
    }

    /// Sets the answer; no offsets are wanted then.
    fn settle(&mut self, answer: KeyAnswer) -> Option<Wish> {
        self.answer = Some(answer);
        None
    }
}
