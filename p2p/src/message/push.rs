//! Messages without an id: announcements, and an older form of request and response (`GetBlock` and `Block`).

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::rlp::{RlpReader, put_list, put_str, put_u64};
use rootlight::types::{BlockRef, SignedUint, U256};

use super::error::MessageError;
use super::field::{self, put_block_refs, put_hash};
use super::items::Items;
use super::limits::{MAX_ANNOUNCED, MAX_TRANSACTIONS};

// Type bytes.
pub(super) const STATUS: u8 = 1;
pub(super) const BLOCK: u8 = 2;
pub(super) const GET_BLOCK: u8 = 3;
pub(super) const NEW_BLOCK_HASHES: u8 = 6;
pub(super) const TRANSACTIONS: u8 = 7;
pub(super) const NEW_BLOCK_HASH: u8 = 17;

/// The best block of a peer, as the peer states it; not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The best block.
    pub best: BlockRef,
    /// Absent in the short form of the message.
    pub parent: Option<Parent>,
}

/// The second half of a [`Status`]: the parent's hash and the total difficulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// Hash of the best block's parent; zeros for genesis.
    pub hash: B256,
    /// Total difficulty of the best block.
    pub total_difficulty: U256,
}

/// A message without an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push<'a> {
    /// The best block of the sender. The reference announces new blocks to peers that have sent this message.
    Status(Status),
    /// A block in RLP: a new one, or the answer to `GetBlock`.
    Block(&'a [u8]),
    /// Asks for a block by hash.
    GetBlock(B256),
    /// New blocks by hash and number.
    NewBlockHashes(Vec<BlockRef>),
    /// New transactions in RLP.
    Transactions(Items<'a>),
    /// A new block by hash.
    NewBlockHash(B256),
}

impl<'a> Push<'a> {
    /// The type byte.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Status(_) => STATUS,
            Self::Block(_) => BLOCK,
            Self::GetBlock(_) => GET_BLOCK,
            Self::NewBlockHashes(_) => NEW_BLOCK_HASHES,
            Self::Transactions(_) => TRANSACTIONS,
            Self::NewBlockHash(_) => NEW_BLOCK_HASH,
        }
    }

    /// Reads the fields of the message with this type byte. `None` if no message without an id has it.
    pub(super) fn decode(kind: u8, mut fields: RlpReader<'a>) -> Result<Option<Self>, MessageError> {
        let reader = &mut fields;
        let push = match kind {
            STATUS => Self::Status(status(reader)?),
            BLOCK => Self::Block(reader.next_str("block")?),
            GET_BLOCK => Self::GetBlock(field::hash(reader, "get block.hash")?),
            NEW_BLOCK_HASHES => Self::NewBlockHashes(announced(reader)?),
            // The transactions are the fields themselves, so nothing may follow them.
            TRANSACTIONS => {
                let items = Items::any(reader.rest(), MAX_TRANSACTIONS, "transactions")?;
                return Ok(Some(Self::Transactions(items)));
            }
            NEW_BLOCK_HASH => Self::NewBlockHash(field::hash(reader, "new block.hash")?),
            _ => return Ok(None),
        };
        fields.finish("message")?;
        Ok(Some(push))
    }

    /// The RLP list of the message.
    pub(super) fn body(&self) -> Vec<u8> {
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        match self {
            Self::Status(status) => put_status(&mut payload, status),
            Self::Block(block) => put_str(&mut payload, block),
            Self::GetBlock(hash) | Self::NewBlockHash(hash) => put_hash(&mut payload, hash),
            // The list of blocks is the body itself.
            Self::NewBlockHashes(blocks) => {
                put_block_refs(&mut out, blocks);
                return out;
            }
            Self::Transactions(items) => payload.extend_from_slice(items.payload()),
        }
        put_list(&mut out, &payload);
        out
    }
}

/// Reads the fields of a status.
fn status(reader: &mut RlpReader<'_>) -> Result<Status, MessageError> {
    let number = field::u64(reader, "status.number")?;
    let best = BlockRef { number, hash: field::hash(reader, "status.hash")? };
    if reader.is_empty() {
        return Ok(Status { best, parent: None });
    }
    let hash = field::hash(reader, "status.parent")?;
    let name = "status.totalDifficulty";
    let total_difficulty = field::difficulty(reader.next_str(name)?, name)?;
    Ok(Status { best, parent: Some(Parent { hash, total_difficulty }) })
}

/// Writes the fields of a status.
fn put_status(out: &mut Vec<u8>, status: &Status) {
    put_u64(out, status.best.number);
    put_hash(out, &status.best.hash);
    if let Some(parent) = status.parent {
        put_hash(out, &parent.hash);
        SignedUint::new(parent.total_difficulty).put(out);
    }
}

/// Reads the announced blocks.
fn announced(reader: &mut RlpReader<'_>) -> Result<Vec<BlockRef>, MessageError> {
    let list = "new block hashes";
    let mut blocks = Vec::new();
    while !reader.is_empty() {
        if blocks.len() >= MAX_ANNOUNCED {
            return Err(MessageError::TooMany { list, most: MAX_ANNOUNCED });
        }
        blocks.push(field::block_ref(reader, list)?);
    }
    Ok(blocks)
}
