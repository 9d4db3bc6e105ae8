//! Requests: each has an id, and at most one response with the same id.

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::rlp::{RlpReader, put_u64};

use super::error::MessageError;
use super::field::{self, put_hash};

// Type bytes.
pub(super) const BLOCK_HASH: u8 = 8;
pub(super) const HEADERS: u8 = 9;
pub(super) const BLOCK: u8 = 11;
pub(super) const BODY: u8 = 14;
pub(super) const SKELETON: u8 = 16;
pub(super) const CHUNK: u8 = 20;
pub(super) const SNAP_STATUS: u8 = 22;
pub(super) const SNAP_BLOCKS: u8 = 24;

/// A request. A peer that lacks the data, or refuses, does not respond at all; responses come in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// The hash of the canonical block at a height, from 1 to the peer's head.
    BlockHash {
        /// The height.
        height: u64,
    },
    /// The header with this hash and its ancestors, descending.
    Headers {
        /// Hash of the first header.
        hash: B256,
        /// Number of headers, 1 to [`super::limits::MAX_HEADERS`]. The response is shorter only at genesis.
        count: u64,
    },
    /// The block with this hash.
    Block(B256),
    /// The transactions, uncles and header extension of the block with this hash.
    Body(B256),
    /// A skeleton: hashes of canonical blocks in steps of [`super::limits::SKELETON_STEP`].
    Skeleton {
        /// The first entry is at this height, rounded down to a multiple of the step.
        start: u64,
    },
    /// A range of a block's state. Only snapshot servers respond.
    Chunk(ChunkRequest),
    /// The checkpoint of a snapshot server (the block whose state it serves): 401 blocks that end in the checkpoint, and the size of its
    /// state.
    SnapStatus,
    /// The blocks before this number: at most 400. Only snapshot servers respond.
    SnapBlocks {
        /// Number of the block after the last one.
        before: u64,
    },
}

/// The range of a block's state that a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRequest {
    /// Number of the canonical block with that state.
    pub block: u64,
    /// Offset of the range's first byte, in the order of [`crate::chunk`]: at most the size of the trie. From 2^63 on the reference
    /// node reads the number as negative.
    pub from: u64,
    /// Size of the range in units of 1,024 bytes. The reference node ignores it and uses 50.
    pub chunk_size: u64,
}

impl ChunkRequest {
    /// The range from this offset on, with the size that the reference node's own client states.
    pub const fn new(block: u64, from: u64) -> Self {
        Self { block, from, chunk_size: 50 }
    }
}

impl Request {
    /// The type byte.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::BlockHash { .. } => BLOCK_HASH,
            Self::Headers { .. } => HEADERS,
            Self::Block(_) => BLOCK,
            Self::Body(_) => BODY,
            Self::Skeleton { .. } => SKELETON,
            Self::Chunk(_) => CHUNK,
            Self::SnapStatus => SNAP_STATUS,
            Self::SnapBlocks { .. } => SNAP_BLOCKS,
        }
    }

    /// Reads the fields of the request with this type byte. `None` if no request has it.
    pub(super) fn decode(kind: u8, mut fields: RlpReader<'_>) -> Result<Option<Self>, MessageError> {
        let reader = &mut fields;
        let request = match kind {
            BLOCK_HASH => Self::BlockHash { height: field::u64(reader, "block hash request.height")? },
            HEADERS => Self::Headers {
                hash: field::hash(reader, "headers request.hash")?,
                count: field::u64(reader, "headers request.count")?,
            },
            BLOCK => Self::Block(field::hash(reader, "block request.hash")?),
            BODY => Self::Body(field::hash(reader, "body request.hash")?),
            SKELETON => Self::Skeleton { start: field::u64(reader, "skeleton request.start")? },
            CHUNK => Self::Chunk(ChunkRequest {
                block: field::u64(reader, "chunk request.block")?,
                from: field::u64(reader, "chunk request.from")?,
                chunk_size: field::u64(reader, "chunk request.chunkSize")?,
            }),
            SNAP_STATUS => Self::SnapStatus,
            SNAP_BLOCKS => Self::SnapBlocks { before: field::u64(reader, "snap blocks request.number")? },
            _ => return Ok(None),
        };
        fields.finish("request")?;
        Ok(Some(request))
    }

    /// Writes the fields.
    pub(super) fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::BlockHash { height: number }
            | Self::Skeleton { start: number }
            | Self::SnapBlocks { before: number } => put_u64(out, *number),
            Self::Headers { hash, count } => {
                put_hash(out, hash);
                put_u64(out, *count);
            }
            Self::Block(hash) | Self::Body(hash) => put_hash(out, hash),
            Self::Chunk(ChunkRequest { block, from, chunk_size }) => {
                [block, from, chunk_size].into_iter().for_each(|number| put_u64(out, *number));
            }
            Self::SnapStatus => {}
        }
    }
}
