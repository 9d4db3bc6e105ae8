//! Responses: each has the id of its request.

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::rlp::{RlpReader, put_list, put_str, put_u64};
use rootlight::types::{BlockRef, U256};

use super::block::Body;
use super::error::MessageError;
use super::field::{self, put_block_refs, put_hash};
use super::items::Items;
use super::limits::{MAX_BLOCKS, MAX_CHUNK_BYTES, MAX_HEADERS, MAX_SKELETON};
use super::request::Request;

// Type bytes.
const HEADERS: u8 = 10;
const BLOCK: u8 = 12;
const SKELETON: u8 = 13;
const BODY: u8 = 15;
const BLOCK_HASH: u8 = 18;
const CHUNK: u8 = 21;
const SNAP_STATUS: u8 = 23;
const SNAP_BLOCKS: u8 = 25;

/// A response. Decoding does not prove anything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response<'a> {
    /// Hash of the canonical block at the height; not proven.
    BlockHash(B256),
    /// Headers in the compressed form, descending.
    Headers(Items<'a>),
    /// A block in RLP.
    Block(&'a [u8]),
    /// Transactions, uncles and header extension of a block.
    Body(Body<'a>),
    /// A skeleton: hashes of canonical blocks in equal steps, ascending; not proven.
    Skeleton(Vec<BlockRef>),
    /// A range of a state.
    Chunk(Chunk<'a>),
    /// The checkpoint of a snapshot server.
    SnapStatus(SnapStatus<'a>),
    /// Consecutive blocks, ascending.
    SnapBlocks(SnapBlocks<'a>),
}

/// A range of a block's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The list that [`crate::chunk`] proves.
    pub bytes: &'a [u8],
    /// Number of the block.
    pub block: u64,
    /// Offset of the range's first byte.
    pub from: u64,
    /// The offset after the range.
    pub to: u64,
    /// Whether the range reaches the end of the trie.
    pub complete: bool,
}

/// Blocks and their total difficulties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapBlocks<'a> {
    /// Consecutive blocks in RLP, ascending.
    pub blocks: Items<'a>,
    /// Total difficulty after each block, as many as blocks, in the signed form of Java's `BigInteger`.
    pub difficulties: Items<'a>,
}

/// The checkpoint of a snapshot server: the block whose state it serves, no trusted block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapStatus<'a> {
    /// The blocks that end in the checkpoint.
    pub blocks: SnapBlocks<'a>,
    /// Size of the checkpoint's state trie in bytes; not proven.
    pub trie_size: u64,
}

impl<'a> Response<'a> {
    /// The type byte.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::BlockHash(_) => BLOCK_HASH,
            Self::Headers(_) => HEADERS,
            Self::Block(_) => BLOCK,
            Self::Body(_) => BODY,
            Self::Skeleton(_) => SKELETON,
            Self::Chunk(_) => CHUNK,
            Self::SnapStatus(_) => SNAP_STATUS,
            Self::SnapBlocks(_) => SNAP_BLOCKS,
        }
    }

    /// Whether this is the type of response to the request. A chunk must also be of the requested block and offset.
    pub fn answers(&self, request: &Request) -> bool {
        match (request, self) {
            (Request::Chunk(wanted), Self::Chunk(chunk)) => {
                wanted.block == chunk.block && wanted.from == chunk.from
            }
            (Request::BlockHash { .. }, Self::BlockHash(_))
            | (Request::Headers { .. }, Self::Headers(_))
            | (Request::Block(_), Self::Block(_))
            | (Request::Body(_), Self::Body(_))
            | (Request::Skeleton { .. }, Self::Skeleton(_))
            | (Request::SnapStatus, Self::SnapStatus(_))
            | (Request::SnapBlocks { .. }, Self::SnapBlocks(_)) => true,
            _ => false,
        }
    }

    /// Reads the fields of the response with this type byte. `None` if no response has it.
    pub(super) fn decode(kind: u8, mut fields: RlpReader<'a>) -> Result<Option<Self>, MessageError> {
        let reader = &mut fields;
        let response = match kind {
            BLOCK_HASH => Self::BlockHash(field::hash(reader, "block hash")?),
            HEADERS => {
                let list = reader.next_list("headers")?;
                Self::Headers(Items::lists(list.rest(), MAX_HEADERS, "headers")?)
            }
            BLOCK => Self::Block(reader.next_str("block")?),
            BODY => Self::Body(Body::read(reader)?),
            SKELETON => Self::Skeleton(skeleton(reader)?),
            CHUNK => Self::Chunk(Chunk::read(reader)?),
            SNAP_STATUS => Self::SnapStatus(SnapStatus {
                blocks: SnapBlocks::read(reader)?,
                trie_size: field::u64(reader, "snap status.trieSize")?,
            }),
            SNAP_BLOCKS => Self::SnapBlocks(SnapBlocks::read(reader)?),
            _ => return Ok(None),
        };
        fields.finish("response")?;
        Ok(Some(response))
    }

    /// Writes the fields.
    pub(super) fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::BlockHash(hash) => put_hash(out, hash),
            Self::Headers(headers) => put_list(out, headers.payload()),
            Self::Block(block) => put_str(out, block),
            Self::Body(body) => body.put(out),
            Self::Skeleton(blocks) => put_block_refs(out, blocks),
            Self::Chunk(chunk) => {
                put_str(out, chunk.bytes);
                let complete = u64::from(chunk.complete);
                [chunk.block, chunk.from, chunk.to, complete].into_iter().for_each(|n| put_u64(out, n));
            }
            Self::SnapStatus(status) => {
                status.blocks.put(out);
                put_u64(out, status.trie_size);
            }
            Self::SnapBlocks(blocks) => blocks.put(out),
        }
    }
}

/// Reads a skeleton.
fn skeleton(reader: &mut RlpReader<'_>) -> Result<Vec<BlockRef>, MessageError> {
    let list = "skeleton";
    let mut entries = reader.next_list(list)?;
    let mut blocks = Vec::new();
    while !entries.is_empty() {
        if blocks.len() >= MAX_SKELETON {
            return Err(MessageError::TooMany { list, most: MAX_SKELETON });
        }
        blocks.push(field::block_ref(&mut entries, list)?);
    }
    Ok(blocks)
}

impl<'a> Chunk<'a> {
    fn read(reader: &mut RlpReader<'a>) -> Result<Self, MessageError> {
        Ok(Self {
            bytes: field::limited(reader, MAX_CHUNK_BYTES, "chunk")?,
            block: field::u64(reader, "chunk.block")?,
            from: field::u64(reader, "chunk.from")?,
            to: field::u64(reader, "chunk.to")?,
            complete: field::flag(reader, "chunk.complete")?,
        })
    }
}

impl<'a> SnapBlocks<'a> {
    fn read(reader: &mut RlpReader<'a>) -> Result<Self, MessageError> {
        let blocks = Items::strings(reader.next_list("snap blocks")?.rest(), MAX_BLOCKS, "snap blocks")?;
        let list = "total difficulties";
        let difficulties = Items::strings(reader.next_list(list)?.rest(), MAX_BLOCKS, list)?;
        if blocks.len() != difficulties.len() {
            let (blocks, difficulties) = (blocks.len(), difficulties.len());
            return Err(MessageError::Unequal { blocks, difficulties });
        }
        for bytes in difficulties.iter() {
            field::difficulty(bytes, list)?;
        }
        Ok(Self { blocks, difficulties })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_list(out, self.blocks.payload());
        put_list(out, self.difficulties.payload());
    }

    /// The blocks in RLP, each with its total difficulty.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], U256)> + use<'a> {
        let totals = self.difficulties.iter();
        // Reading succeeds: `read` has checked each difficulty.
        let totals = totals.map(|bytes| field::difficulty(bytes, "total difficulty").unwrap_or_default());
        self.blocks.iter().zip(totals)
    }
}
