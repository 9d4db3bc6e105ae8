//! Splits blocks, bodies and header extensions of messages into their parts, without decoding these.

use alloc::vec::Vec;

use alloy_primitives::Bloom;
use rootlight::types::rlp::{self, RlpReader, put_list, put_str};
use rootlight::types::{FieldError, FieldRule, HeaderVersion};

use super::error::MessageError;
use super::field;
use super::items::Items;
use super::limits::{MAX_EXTENSION_BYTES, MAX_TRANSACTIONS, MAX_UNCLES};

/// The parts of a block's RLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockParts<'a> {
    /// The header in the full form.
    pub header: &'a [u8],
    /// The transactions in RLP.
    pub transactions: Items<'a>,
    /// The uncles in the full form.
    pub uncles: Items<'a>,
}

impl<'a> BlockParts<'a> {
    /// Splits a block: the RLP list of the header, the transactions and the uncles.
    ///
    /// # Errors
    /// The bytes are not a list of these three, or one of the lists in it is longer than allowed.
    pub fn split(block: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = RlpReader::list(block, "block")?;
        let header = reader.next_raw("block.header")?;
        let transactions = reader.next_list("block.transactions")?.rest();
        let uncles = reader.next_list("block.uncles")?.rest();
        reader.finish("block")?;
        Ok(Self {
            header,
            transactions: Items::lists(transactions, MAX_TRANSACTIONS, "block.transactions")?,
            uncles: Items::lists(uncles, MAX_UNCLES, "block.uncles")?,
        })
    }
}

/// The parts of a block besides its compressed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'a> {
    /// The transactions in RLP.
    pub transactions: Items<'a>,
    /// The uncles in the full form.
    pub uncles: Items<'a>,
    /// The part of a header of version 1 or 2 that its compressed form lacks.
    pub extension: Option<Extension<'a>>,
}

/// The part of a header of version 1 or 2 that its compressed form has only as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Version of the header, as the sender states it.
    pub version: HeaderVersion,
    /// The fields as an RLP list.
    pub fields: &'a [u8],
}

/// The fields of an [`Extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionFields<'a> {
    /// Bloom of all logs of the block.
    pub bloom: Bloom,
    /// Bridge event of the block; `None` in version 1.
    pub base_event: Option<&'a [u8]>,
    /// Ends of the block's sublists of transactions that can run in parallel (RSKIP-144), as little-endian 16-bit numbers; `None` if the
    /// header has no such field.
    pub edges: Option<&'a [u8]>,
}

impl<'a> Body<'a> {
    /// Reads the fields of a body response.
    pub(super) fn read(reader: &mut RlpReader<'a>) -> Result<Self, MessageError> {
        let transactions = reader.next_list("body.transactions")?.rest();
        let uncles = reader.next_list("body.uncles")?.rest();
        let extension = match reader.is_empty() {
            true => None,
            false => Some(Extension::read(reader.next_list("body.extension")?)?),
        };
        Ok(Self {
            transactions: Items::lists(transactions, MAX_TRANSACTIONS, "body.transactions")?,
            uncles: Items::lists(uncles, MAX_UNCLES, "body.uncles")?,
            extension,
        })
    }

    /// Writes the fields of a body response.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_list(out, self.transactions.payload());
        put_list(out, self.uncles.payload());
        if let Some(extension) = self.extension {
            let mut pair = Vec::with_capacity(extension.fields.len().saturating_add(4));
            put_str(&mut pair, &[extension.version.byte()]);
            put_str(&mut pair, extension.fields);
            put_list(out, &pair);
        }
    }
}

impl<'a> Extension<'a> {
    /// Reads the pair of version and fields.
    fn read(mut pair: RlpReader<'a>) -> Result<Self, MessageError> {
        let name = "extension.version";
        let version = match field::u64(&mut pair, name)? {
            1 => HeaderVersion::V1,
            2 => HeaderVersion::V2,
            found => return Err(FieldError::new(name, FieldRule::Choice { expected: [1, 2], found }).into()),
        };
        let fields = field::limited(&mut pair, MAX_EXTENSION_BYTES, "extension")?;
        pair.finish("extension")?;
        Ok(Self { version, fields })
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// The fields are not those of this version.
    pub fn read_fields(&self) -> Result<ExtensionFields<'a>, MessageError> {
        let mut reader = RlpReader::list(self.fields, "extension")?;
        let name = "extension.bloom";
        let bloom = rlp::fixed::<256>(reader.next_str(name)?, name)?.into();
        let base_event = match self.version {
            HeaderVersion::V2 => Some(reader.next_str("extension.baseEvent")?),
            // Version 1 has no event, and version 0 no extension.
            _ => None,
        };
        let edges = match reader.is_empty() {
            true => None,
            false => Some(reader.next_str("extension.edges")?),
        };
        reader.finish("extension")?;
        Ok(ExtensionFields { bloom, base_event, edges })
    }
}
