//! The source from which the loader takes blocks: a trait, because a light client and its upstreams are in another crate
//! (`native/cluster/src/source.rs`).

use alloy_primitives::B256;
use futures::future::BoxFuture;

use crate::block::{MatchedBlock, Proof};
use crate::trace::BlockTraces;

/// A block of a source, with the evidence that it is on the chain.
#[derive(Debug, Clone)]
pub struct SourceBlock {
    /// The block.
    pub block: MatchedBlock,
    /// Whether it is proven to be on the chain.
    pub proof: Proof,
    /// The traces of the block; `None` if they were not asked for.
    pub traces: Option<BlockTraces>,
}

/// Why a source gave no blocks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The source may give the blocks later.
    #[error("{0}")]
    Transient(String),
    /// The source will never give the blocks.
    #[error("{0}")]
    Permanent(String),
}

/// A source of blocks. The chain of a source may be reorganised at any time; blocks of one answer follow each other.
pub trait BlockSource: Send + Sync + 'static {
    /// The height up to which blocks are loaded.
    fn head(&self) -> BoxFuture<'_, Result<u64, SourceError>>;

    /// The hash of the block at a height; `None` if the source would have to make a request for it.
    fn hash(&self, number: u64) -> Option<B256>;

    /// The blocks from one height to another, both included. The source may give only the first of them, and at least one.
    fn blocks(&self, first: u64, last: u64) -> BoxFuture<'_, Result<Vec<SourceBlock>, SourceError>>;
}
