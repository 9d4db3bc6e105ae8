//! Headers as peers send them. A header of version 1 or 2 comes in a compressed form, which has only the hash of some fields; with those
//! fields (the extension in the body) this module makes the full form.

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::FieldError;
use rootlight::types::rlp::{self, RlpReader, put_list, put_str};

use crate::message::{Extension, MessageError};

/// Position of the item that is the bloom in version 0, and the list of version and extension hash in later versions.
const BLOOM_ITEM: usize = 6;
/// Length of a logs bloom.
const BLOOM_BYTES: usize = 256;
/// Position of the item that is the block number.
const NUMBER_ITEM: usize = 8;
/// Number of mining fields at the end of a mined header.
const MINING_ITEMS: usize = 3;
/// Most items that are read; no form of a header has more.
const MAX_ITEMS: usize = 23;

/// A header as peers send it, split into its items. Nothing in it is verified.
#[derive(Debug, Clone)]
pub struct RawHeader<'a> {
    rlp: &'a [u8],
    /// The items with their RLP prefixes.
    items: Vec<&'a [u8]>,
    /// Whether the header is of version 1 or 2: its compressed form has no bloom.
    is_compressed: bool,
    parent_hash: B256,
    state_root: B256,
    uncles_hash: B256,
    number: u64,
}

impl<'a> RawHeader<'a> {
    /// Splits a header of a message into its items.
    ///
    /// # Errors
    /// [`FieldError`]: the bytes are not a list, or an item that this type reads is malformed.
    pub fn split(rlp: &'a [u8]) -> Result<Self, FieldError> {
        let mut reader = RlpReader::list(rlp, "header")?;
        let mut items = Vec::with_capacity(MAX_ITEMS);
        while !reader.is_empty() && items.len() < MAX_ITEMS {
            items.push(reader.next_raw("header.item")?);
        }
        reader.finish("header")?;
        // A missing item is read as no bytes, which is an error.
        let string = |index: usize, field: &'static str| {
            RlpReader::new(items.get(index).copied().unwrap_or_default()).next_str(field)
        };
        let hash = |index, field| rlp::fixed::<32>(string(index, field)?, field).map(B256::new);
        let is_compressed = string(BLOOM_ITEM, "header.logsBloom")?.len() != BLOOM_BYTES;
        Ok(Self {
            is_compressed,
            parent_hash: hash(0, "header.parentHash")?,
            uncles_hash: hash(1, "header.sha3Uncles")?,
            state_root: hash(3, "header.stateRoot")?,
            number: rlp::uint63(string(NUMBER_ITEM, "header.number")?, "header.number")?,
            rlp,
            items,
        })
    }

    /// The header's number.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Hash of the parent.
    pub const fn parent_hash(&self) -> B256 {
        self.parent_hash
    }

    /// Hash of the list of uncles.
    pub const fn uncles_hash(&self) -> B256 {
        self.uncles_hash
    }

    /// Root of the state trie after the block.
    pub const fn state_root(&self) -> B256 {
        self.state_root
    }

    /// Whether the full form needs the extension of the body.
    pub const fn needs_extension(&self) -> bool {
        self.is_compressed
    }

    /// The full form in RLP. A header of version 0 is in its full form already, and the extension is ignored. Versions 1 and 2 need the
    /// extension; whether it belongs to the header shows only in the block hash.
    ///
    /// # Errors
    /// [`MessageError`]: the extension is missing or malformed.
    pub fn full(&self, extension: Option<&Extension<'_>>) -> Result<Vec<u8>, MessageError> {
        if !self.is_compressed {
            return Ok(self.rlp.to_vec());
        }
        let extension = extension.ok_or(MessageError::NoExtension)?;
        let fields = extension.read_fields()?;
        // The extension's version, edges and event stand before the mining fields.
        let mining_start = self.items.len().saturating_sub(MINING_ITEMS);
        let mut payload = Vec::with_capacity(self.rlp.len().saturating_add(BLOOM_BYTES));
        for (index, item) in self.items.iter().enumerate() {
            if index == mining_start {
                put_str(&mut payload, &[extension.version.byte()]);
                for field in [fields.edges, fields.base_event].into_iter().flatten() {
                    put_str(&mut payload, field);
                }
            }
            match index {
                BLOOM_ITEM => put_str(&mut payload, fields.bloom.as_slice()),
                _ => payload.extend(*item),
            }
        }
        let mut list = Vec::with_capacity(payload.len().saturating_add(4));
        put_list(&mut list, &payload);
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_needed_only_without_a_bloom() {
        let items = |bloom: &[u8]| {
            let mut payload = Vec::new();
            for index in 0..19 {
                match index {
                    BLOOM_ITEM => put_str(&mut payload, bloom),
                    NUMBER_ITEM => put_str(&mut payload, &[7]),
                    _ => put_str(&mut payload, &[1; 32]),
                }
            }
            let mut list = Vec::new();
            put_list(&mut list, &payload);
            list
        };
        let whole = items(&[0; BLOOM_BYTES]);
        let header = RawHeader::split(&whole).unwrap();
        assert_eq!((header.number(), header.needs_extension()), (7, false));
        assert_eq!(header.full(None).unwrap(), whole);
        let compressed = items(&[0; 35]);
        let header = RawHeader::split(&compressed).unwrap();
        assert!(header.needs_extension());
        assert_eq!(header.full(None), Err(MessageError::NoExtension));
    }
}
