//! The chain of verified headers: insertion, fork choice, reorganisations.
//!
//! The writer is a [`HeaderChain`]; readers take a [`ChainView`] from it, which never changes.

mod branch;
mod entry;
mod heights;
mod insert;
mod restore;
mod side;
mod uncles;
mod unproven;
mod view;

use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;

use self::entry::{Entry, skip_height};
use self::side::SideHeaders;
pub use self::view::{Base, ChainView};
use super::checkpoint::Checkpoint;
use super::fork_detection::ForkDetection;
use super::network::Network;
use super::persistent::Map;
use super::rules::RuleError;
use super::uncles::UncleError;
use super::verified::{Origin, VerifiedHeader};
use crate::types::{B256, SealedHeader, U256};

/// Canonical headers kept by default: enough for REMASC's maturity (4,000 blocks) and fork detection data, at about
/// 2 KB each. Hashes of older ones stay.
pub const KEPT_HEADERS: u64 = 8_192;
/// Headers kept off the canonical chain; past it the branch with the least work is dropped. Real forks are a few blocks
/// long, so only a flood of cheap headers (test networks) reaches it.
pub const MAX_SIDE_HEADERS: usize = 4_096;

/// Why the chain did not take something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The header starts a chain that the checkpoint does not name.
    #[error("checkpoint: block {number} {hash}, found block {found_number} {found_hash}")]
    Checkpoint {
        /// Number of the checkpoint.
        number: u64,
        /// Hash of the checkpoint.
        hash: B256,
        /// Number of the header.
        found_number: u64,
        /// Hash of the header.
        found_hash: B256,
    },
    /// Beyond the rules that this software knows; nobody's fault.
    #[error("block {number} is beyond block {known_until}, up to which the rules are known: update needed")]
    UpdateNeeded {
        /// Number of the header.
        number: u64,
        /// Last number with known rules.
        known_until: u64,
    },
    /// The header's parent is not among the kept headers.
    #[error("block {number}: parent {parent} is not known")]
    UnknownParent {
        /// Number of the header.
        number: u64,
        /// Hash of its parent.
        parent: B256,
    },
    /// The header would start a branch below the chain's base.
    #[error("block {number} branches off below the base {base}")]
    BelowBase {
        /// Number of the header.
        number: u64,
        /// Number of the base.
        base: u64,
    },
    /// A block that was named is not among the kept headers.
    #[error("block {0} is not known")]
    UnknownBlock(B256),
    /// The header breaks a rule.
    #[error("block {number} {hash}: {rule}")]
    Rule {
        /// Number of the header.
        number: u64,
        /// Hash of the header.
        hash: B256,
        /// The rule.
        rule: RuleError,
    },
    /// The uncles cannot be attached.
    #[error("uncles of block {number}: {error}")]
    Uncles {
        /// Number of the block.
        number: u64,
        /// What is wrong or missing.
        error: UncleError,
    },
    /// The header does not precede the lowest one.
    #[error("header {found} does not precede block {number}, whose parent is {expected}")]
    NotTheParent {
        /// Lowest number of the chain.
        number: u64,
        /// Hash that its parent must have.
        expected: B256,
        /// Hash of the header.
        found: B256,
    },
}

impl ChainError {
    /// Whether whoever sent this broke a rule, rather than being early, unconnected or beyond our rules.
    #[must_use]
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

    /// Whether the same header may be good a little later.
    #[must_use]
    pub const fn is_early(&self) -> bool {
        matches!(self, Self::Rule { rule: RuleError::Future { .. }, .. })
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

/// What an insertion did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The header was there already.
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
    /// The header as it is believed now.
    pub header: VerifiedHeader,
    /// What happened to the chain.
    pub change: Change,
}

/// A header with its uncles, checked but not taken in; see [`HeaderChain::check_block`].
#[derive(Debug, Clone)]
pub struct CheckedBlock(Entry);

impl CheckedBlock {
    /// The header.
    #[must_use]
    pub const fn header(&self) -> &VerifiedHeader {
        &self.0.header
    }
}

/// The writer's side of the chain. A clone shares nearly everything and costs little.
#[derive(Debug, Clone)]
pub struct HeaderChain {
    view: ChainView,
    /// Children of each kept header.
    children: Map<B256, Arc<Vec<B256>>>,
    /// Headers off the canonical chain, by work and hash.
    side: SideHeaders,
    window: u64,
    side_limit: usize,
    /// Ancestors were added below headers whose fork contexts do not know them yet.
    stale_contexts: bool,
}

impl HeaderChain {
    /// Starts at a checkpoint; `header` must be the block it names.
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

    /// Starts at genesis.
    pub fn from_genesis(network: Arc<Network>, header: SealedHeader) -> Result<Self, ChainError> {
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        Self::from_checkpoint(network, &checkpoint, header)
    }

    fn start(
        network: Arc<Network>,
        header: SealedHeader,
        origin: Origin,
        total_difficulty: Option<U256>,
    ) -> Self {
        let (number, hash) = (header.number, header.hash());
        let header = VerifiedHeader::new(header, origin, ForkDetection::NotRequired);
        let entry = Arc::new(Entry::unchecked(header));
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
        let (children, side) = (Map::default(), SideHeaders::default());
        Self {
            view,
            children,
            side,
            window: KEPT_HEADERS,
            side_limit: MAX_SIDE_HEADERS,
            stale_contexts: false,
        }
    }

    /// Keeps another number of canonical headers than [`KEPT_HEADERS`].
    #[must_use]
    pub fn with_window(mut self, headers: u64) -> Self {
        self.window = headers.max(1);
        self
    }

    /// Keeps another number of headers off the canonical chain than [`MAX_SIDE_HEADERS`].
    #[must_use]
    pub fn with_side_limit(mut self, headers: usize) -> Self {
        self.side_limit = headers;
        self
    }

    /// The current state; clone it to keep it.
    #[must_use]
    pub const fn view(&self) -> &ChainView {
        &self.view
    }

    /// A state for a reader.
    #[must_use]
    pub fn snapshot(&self) -> ChainView {
        self.view.clone()
    }

    /// Head of the heaviest chain.
    #[must_use]
    pub fn head(&self) -> &VerifiedHeader {
        self.view.head()
    }

    /// See [`ChainView::by_number`].
    #[must_use]
    pub fn by_number(&self, number: u64) -> Option<&VerifiedHeader> {
        self.view.by_number(number)
    }

    /// See [`ChainView::by_hash`].
    #[must_use]
    pub fn by_hash(&self, hash: &B256) -> Option<&VerifiedHeader> {
        self.view.by_hash(hash)
    }

    /// See [`ChainView::total_difficulty`].
    #[must_use]
    pub fn total_difficulty(&self, hash: &B256) -> Option<U256> {
        self.view.total_difficulty(hash)
    }

    /// Adds the parent of the lowest header, which that one's hash commits to; neither work nor rules are checked.
    /// The 449 headers below a checkpoint let fork detection data be compared completely from its first child on; for
    /// headers already inserted call [`Self::recheck_fork_detection`].
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
        self.view.entries.insert(hash, Arc::new(Entry::unchecked(verified.clone())));
        self.view.canonical.insert(number, hash);
        self.view.lowest = number;
        self.add_child(&hash, child);
        self.stale_contexts = true;
        Ok(verified)
    }

    fn entry(&self, hash: &B256) -> Result<&Arc<Entry>, ChainError> {
        self.view.entries.get(hash).ok_or(ChainError::UnknownBlock(*hash))
    }

    /// The headers above one.
    fn children_of(&self, hash: &B256) -> &[B256] {
        self.children.get(hash).map_or(&[], |children| children.as_slice())
    }

    fn add_child(&mut self, parent: &B256, child: B256) {
        let mut children = self.children.get(parent).cloned().unwrap_or_default();
        Arc::make_mut(&mut children).push(child);
        self.children.insert(*parent, children);
    }

    /// The headers above one, which forgets them.
    fn take_children(&mut self, hash: &B256) -> Vec<B256> {
        let children = self.children_of(hash).to_vec();
        self.children.remove(hash);
        children
    }

    /// Puts a changed entry in the place of the old one.
    fn replace(&mut self, entry: Entry) {
        let (hash, entry) = (entry.hash(), Arc::new(entry));
        if self.view.head.hash() == hash {
            self.view.head = entry.clone();
        }
        self.view.entries.insert(hash, entry);
    }

    /// Hash that a child of `parent` keeps as its skip link.
    fn skip_link(&self, parent: &Arc<Entry>) -> B256 {
        let height = skip_height(parent.number().saturating_add(1));
        let target = Some(height).filter(|height| *height >= self.view.base.number);
        let found = target.and_then(|height| self.view.ancestor_entry(parent, height));
        found.map_or(parent.hash(), |entry| entry.hash())
    }
}
