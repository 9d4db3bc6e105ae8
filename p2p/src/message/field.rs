//! Reads and writes single fields of messages.

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::rlp::{self, RlpReader, put_str};
use rootlight::types::{BlockRef, FieldError, FieldRule, SignedUint, U256};

/// Reads an unsigned number of at most 64 bits without leading zeros.
pub(super) fn u64(reader: &mut RlpReader<'_>, field: &'static str) -> Result<u64, FieldError> {
    let value = rlp::uint(reader.next_str(field)?, field)?;
    u64::try_from(value).map_err(|_| FieldError::new(field, FieldRule::TooLarge(64)))
}

/// Reads a hash of 32 bytes.
pub(super) fn hash(reader: &mut RlpReader<'_>, field: &'static str) -> Result<B256, FieldError> {
    rlp::fixed::<32>(reader.next_str(field)?, field).map(B256::from)
}

/// Reads a truth value: the number 0 or 1.
pub(super) fn flag(reader: &mut RlpReader<'_>, field: &'static str) -> Result<bool, FieldError> {
    match u64(reader, field)? {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(FieldError::new(field, FieldRule::Choice { expected: [0, 1], found })),
    }
}

/// Reads a total difficulty: a number that is not negative, in the shortest two's complement, as Java's `BigInteger` writes it.
pub(super) fn difficulty(bytes: &[u8], field: &'static str) -> Result<U256, FieldError> {
    let number = SignedUint::from_be_slice(bytes, false, field)?;
    match number.is_absent() {
        true => Err(FieldError::new(field, FieldRule::Missing)),
        false => Ok(number.value()),
    }
}

/// Reads a string of at most `limit` bytes.
pub(super) fn limited<'a>(
    reader: &mut RlpReader<'a>,
    limit: usize,
    field: &'static str,
) -> Result<&'a [u8], FieldError> {
    let bytes = reader.next_str(field)?;
    match bytes.len() <= limit {
        true => Ok(bytes),
        false => Err(FieldError::new(field, FieldRule::TooLong { limit, found: bytes.len() })),
    }
}

/// Reads a pair of hash and number.
pub(super) fn block_ref(reader: &mut RlpReader<'_>, field: &'static str) -> Result<BlockRef, FieldError> {
    let mut pair = reader.next_list(field)?;
    let hash = hash(&mut pair, field)?;
    let number = u64(&mut pair, field)?;
    pair.finish(field)?;
    Ok(BlockRef { number, hash })
}

/// Appends a hash.
pub(super) fn put_hash(out: &mut Vec<u8>, hash: &B256) {
    put_str(out, hash.as_slice());
}

/// Appends the pairs of hash and number as one list.
pub(super) fn put_block_refs(out: &mut Vec<u8>, blocks: &[BlockRef]) {
    let mut list = Vec::new();
    for block in blocks {
        // A hash with its prefix, and a number of at most 9 bytes.
        let mut pair = Vec::with_capacity(42);
        put_hash(&mut pair, &block.hash);
        rlp::put_u64(&mut pair, block.number);
        rlp::put_list(&mut list, &pair);
    }
    rlp::put_list(out, &list);
}
