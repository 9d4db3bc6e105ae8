//! The chain of verified headers: insertion, fork choice, reorganisations.
//!
//! The writer is a [`HeaderChain`]; readers take a [`ChainView`] from it, which never changes. "Kept" headers are those in memory;
//! canonical ones are on the heaviest chain. A chain starts at its base: a checkpoint, genesis, or a restored header.

mod branch;
mod canonical_hashes;
mod entry;
mod insert;
mod restore;
#[cfg(feature = "dev")]
mod rewind;
mod side;
mod uncles;
mod unproven_tip;
mod view;

use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;

use self::entry::{ChainEntry, skip_height};
use self::side::SideHeaders;
pub use self::view::{Base, ChainView};
use super::candidate::HeaderCandidate;
use super::checkpoint::Checkpoint;
use super::fork_detection::ForkDetection;
use super::network::Network;
use super::persistent_map::PersistentMap;
use super::rules::{RuleError, RuleInput};
use super::uncles::UncleError;
use super::verified::{Origin, VerifiedHeader};
use crate::types::{B256, SealedHeader, U256};

/// Canonical headers kept by default, at about 2 KB each: enough for fork detection data (449 headers) and for the 4,000 blocks after
/// which REMASC, the contract that pays miners, pays a block's fees. Hashes of older headers stay.
pub const KEPT_HEADERS: u64 = 8_192;
/// Most headers kept off the canonical chain; beyond it the branch with the least work is dropped. Real forks are a few
/// blocks long, so only a flood of headers of low difficulty (on test networks) reaches this limit.
pub const MAX_SIDE_HEADERS: usize = 4_096;

/// Why the chain refused a header or uncles.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum ChainError {
    /// The first header of the chain is not the block that the checkpoint names.
    #[error("checkpoint: block {number} {hash}, found block {found_number} {found_hash}")]
    Checkpoint { number: u64, hash: B256, found_number: u64, found_hash: B256 },
    /// The header is above the last block whose rules this version knows. No upstream is to blame.
    #[error("block {number} is beyond block {known_until}, up to which the rules are known: update needed")]
    UpdateNeeded { number: u64, known_until: u64 },
    /// The header's parent is not among the kept headers.
    #[error("block {number}: parent {parent} is not known")]
    UnknownParent { number: u64, parent: B256 },
    /// The header would start a branch below the chain's base.
    #[error("block {number} branches off below the base {base}")]
    BelowBase { number: u64, base: u64 },
    /// The named block is not among the kept headers.
    #[error("block {0} is not known")]
    UnknownBlock(B256),
    /// The header breaks a rule.
    #[error("block {number} {hash}: {rule}")]
    Rule { number: u64, hash: B256, rule: RuleError },
    /// The uncles cannot be attached.
    #[error("uncles of block {number}: {error}")]
    Uncles {
        number: u64,
        /// The rule that they break, or what is missing to check them.
        error: UncleError,
    },
    /// The header is not the parent of the lowest kept header.
    #[error("header {found} does not precede block {number}, whose parent is {expected}")]
    NotTheParent { number: u64, expected: B256, found: B256 },
}

impl ChainError {
    /// Whether the sender broke a rule, rather than being early, unconnected or beyond the rules that we know.
    pub const fn is_misbehaviour(&self) -> bool {
        match self {
            Self::Rule { rule, .. } => !matches!(rule, RuleError::Future { .. }),
            Self::Uncles { error, .. } => error.is_misbehaviour(),
            Self::Checkpoint { .. } | Self::NotTheParent { .. } => true,
            Self::UpdateNeeded { .. }
            | Self::UnknownParent { .. }
            | Self::BelowBase { .. }
            | Self::UnknownBlock(_) => false,
        }
    }

    /// Whether the same header, or the same uncles, may be valid a little later.
    pub const fn is_early(&self) -> bool {
        match self {
            Self::Rule { rule: RuleError::Future { .. }, .. } => true,
            Self::Uncles { error, .. } => error.is_early(),
            _ => false,
        }
    }
}

/// A switch of the head to another branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reorganisation {
    /// The last common block.
    pub ancestor: VerifiedHeader,
    /// Blocks that are no longer canonical, oldest first.
    pub removed: Vec<VerifiedHeader>,
    /// Blocks that are canonical now, oldest first.
    pub added: Vec<VerifiedHeader>,
}

/// The effect of an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadChange {
    /// The chain already had the header.
    Known,
    /// The new head follows the old one.
    Extended,
    /// The header is on a branch that is not the heaviest.
    Side,
    /// The head moved to another branch.
    Reorganised(Reorganisation),
}

/// An inserted header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserted {
    /// The header with the evidence for it.
    pub header: VerifiedHeader,
    /// The effect on the chain.
    pub change: HeadChange,
}

/// A header with its uncles, checked but not inserted; see [`HeaderChain::check_block`].
#[derive(Debug, Clone)]
pub struct CheckedHeader(ChainEntry);

impl CheckedHeader {
    /// The header.
    pub const fn header(&self) -> &VerifiedHeader {
        &self.0.header
    }
}

/// The chain for its writer. A clone shares nearly everything and is cheap.
#[derive(Debug, Clone)]
pub struct HeaderChain {
    view: ChainView,
    /// Children of each kept header.
    children: PersistentMap<B256, Arc<Vec<B256>>>,
    /// Headers off the canonical chain, by work and hash.
    side: SideHeaders,
    /// Number of canonical headers to keep.
    window: u64,
    /// Most headers off the canonical chain.
    side_limit: usize,
    /// Whether ancestors were added below headers whose fork contexts ([`ChainEntry::context`]) do not include them yet.
    stale_contexts: bool,
}

impl HeaderChain {
    /// Starts at a checkpoint.
    ///
    /// # Errors
    /// [`ChainError::Checkpoint`] if `header` is not the block that the checkpoint names.
    pub fn from_checkpoint(
        network: Arc<Network>,
        checkpoint: &Checkpoint,
        header: SealedHeader,
    ) -> Result<Self, ChainError> {
        if (header.number, header.hash()) != (checkpoint.number, checkpoint.hash) {
            return Err(ChainError::Checkpoint {
                number: checkpoint.number,
                hash: checkpoint.hash,
                found_number: header.number,
                found_hash: header.hash(),
            });
        }
        // Nothing is below genesis, so its total difficulty is its own difficulty.
        let genesis = (header.number == 0).then(|| header.difficulty.value());
        let total_difficulty = genesis.or(checkpoint.total_difficulty);
        Ok(Self::start(network, header, Origin::Trusted, total_difficulty))
    }

    /// Starts at genesis; `header` must be the network's genesis block.
    pub fn from_genesis(network: Arc<Network>, header: SealedHeader) -> Result<Self, ChainError> {
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        Self::from_checkpoint(network, &checkpoint, header)
    }

    /// A chain of one header, which is its base.
    fn start(
        network: Arc<Network>,
        header: SealedHeader,
        origin: Origin,
        total_difficulty: Option<U256>,
    ) -> Self {
        let (number, hash) = (header.number, header.hash());
        let header = VerifiedHeader::new(header, origin, ForkDetection::NotRequired);
        let entry = Arc::new(ChainEntry::unchecked(header));
        let mut view = ChainView {
            network,
            base: Base { number, hash, total_difficulty, work: Some(U256::ZERO) },
            head: entry.clone(),
            entries: Default::default(),
            canonical: Default::default(),
            lowest: number,
            unproven: None,
        };
        view.entries.insert(hash, entry);
        view.canonical.insert(number, hash);
        let (children, side) = (PersistentMap::default(), SideHeaders::default());
        Self {
            view,
            children,
            side,
            window: KEPT_HEADERS,
            side_limit: MAX_SIDE_HEADERS,
            stale_contexts: false,
        }
    }

    /// Sets the number of canonical headers that are kept, in place of [`KEPT_HEADERS`]; 0 counts as 1.
    #[must_use]
    pub fn with_window(mut self, headers: u64) -> Self {
        self.window = headers.max(1);
        self
    }

    /// Sets the number of headers that are kept off the canonical chain, in place of [`MAX_SIDE_HEADERS`].
    #[must_use]
    pub fn with_side_limit(mut self, headers: usize) -> Self {
        self.side_limit = headers;
        self
    }

    /// The current state of the chain.
    pub const fn view(&self) -> &ChainView {
        &self.view
    }

    /// The current state of the chain, fixed for a reader. Cheap.
    pub fn snapshot(&self) -> ChainView {
        self.view.clone()
    }

    /// Head of the heaviest chain.
    pub fn head(&self) -> &VerifiedHeader {
        self.view.head()
    }

    /// See [`ChainView::by_number`].
    pub fn by_number(&self, number: u64) -> Option<&VerifiedHeader> {
        self.view.by_number(number)
    }

    /// See [`ChainView::by_hash`].
    pub fn by_hash(&self, hash: &B256) -> Option<&VerifiedHeader> {
        self.view.by_hash(hash)
    }

    /// See [`ChainView::total_difficulty`].
    pub fn total_difficulty(&self, hash: &B256) -> Option<U256> {
        self.view.total_difficulty(hash)
    }

    /// Adds the parent of the lowest header, whose hash that header commits to; neither its work nor its rules are checked.
    /// If the lowest header is the base, the base is checked as a child of `header` by the rules that need no proof of work: a base that
    /// was elected from upstreams' proposals may break them. With the 449 headers below a checkpoint, fork detection data are compared
    /// completely from its first child on; for headers that were inserted before, call [`Self::recheck_fork_detection`].
    pub fn prepend(&mut self, header: SealedHeader) -> Result<VerifiedHeader, ChainError> {
        let lowest =
            self.view.by_number(self.view.lowest).ok_or(ChainError::UnknownBlock(self.view.base.hash))?;
        let not_the_parent = ChainError::NotTheParent {
            number: lowest.number,
            expected: lowest.parent_hash,
            found: header.hash(),
        };
        let verified = lowest.parent_from(header).ok_or(not_the_parent.clone())?;
        let (number, hash, child) = (verified.number, verified.hash(), lowest.hash());
        if number.checked_add(1) != Some(lowest.number) {
            return Err(not_the_parent);
        }
        if lowest.number == self.view.base.number {
            let base = HeaderCandidate::from(lowest.sealed().clone());
            let mut input = RuleInput::new(&base, &self.view.network, None);
            input.parent = Some((verified.header(), hash));
            let broken = |rule| ChainError::Rule { number: lowest.number, hash: child, rule };
            input.linked().map_err(broken)?;
        }
        self.view.entries.insert(hash, Arc::new(ChainEntry::unchecked(verified.clone())));
        self.view.canonical.insert(number, hash);
        self.view.lowest = number;
        self.add_child(&hash, child);
        self.stale_contexts = true;
        Ok(verified)
    }

    fn entry(&self, hash: &B256) -> Result<&Arc<ChainEntry>, ChainError> {
        self.view.entries.get(hash).ok_or(ChainError::UnknownBlock(*hash))
    }

    fn children_of(&self, hash: &B256) -> &[B256] {
        self.children.get(hash).map_or(&[], |children| children.as_slice())
    }

    fn add_child(&mut self, parent: &B256, child: B256) {
        let mut children = self.children.get(parent).cloned().unwrap_or_default();
        Arc::make_mut(&mut children).push(child);
        self.children.insert(*parent, children);
    }

    /// Removes the list of a header's children and returns it.
    fn take_children(&mut self, hash: &B256) -> Vec<B256> {
        let children = self.children_of(hash).to_vec();
        self.children.remove(hash);
        children
    }

    /// Puts a changed entry in place of the one with its hash, also as the head.
    fn replace(&mut self, entry: ChainEntry) {
        let (hash, entry) = (entry.hash(), Arc::new(entry));
        if self.view.head.hash() == hash {
            self.view.head = entry.clone();
        }
        self.view.entries.insert(hash, entry);
    }

    /// The skip link of a child of `parent`: the ancestor at the child's [`skip_height`], or `parent` if that ancestor is not kept.
    fn skip_link(&self, parent: &Arc<ChainEntry>) -> B256 {
        let height = skip_height(parent.number().saturating_add(1));
        let target = Some(height).filter(|height| *height >= self.view.base.number);
        let found = target.and_then(|height| self.view.ancestor_entry(parent, height));
        found.map_or(parent.hash(), |entry| entry.hash())
    }
}
