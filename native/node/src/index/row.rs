//! Keys and values of the index's rows.

use alloy_primitives::keccak256;
use roaring::RoaringBitmap;
use rootlight::local::Term;

/// Number of blocks of a row: as many as one container of a roaring bitmap holds, at most 8 KiB.
pub(super) const ROW_BLOCKS: u64 = 1 << 16;

/// Bytes of the checksum before a stored bitmap.
const CHECKSUM: usize = 4;

/// The first 16 bytes of the hash of a term and its role. Two terms with the same key would only name each other's
/// blocks as candidates.
pub(crate) type TermKey = [u8; 16];

/// A term's key, then the number of the row, big-endian.
pub(crate) type RowKey = [u8; 24];

/// The key of a term. The first hashed byte is the role: 1 to 3 for addresses, 4 and more for the topics of a log.
pub(super) fn term_key(term: &Term) -> TermKey {
    let mut bytes = [0; 33];
    let (role, value) = match term {
        Term::Sender(address) => (1, address.as_slice()),
        Term::Recipient(address) => (2, address.as_slice()),
        Term::Contract(address) => (3, address.as_slice()),
        // A log has at most four topics, so the conversion does not fail.
        Term::Topic(at, topic) => (u8::try_from(*at).unwrap_or(u8::MAX).saturating_add(4), topic.as_slice()),
    };
    bytes[0] = role;
    bytes[1..=value.len()].copy_from_slice(value);
    let mut key = [0; 16];
    key.copy_from_slice(&keccak256(&bytes[..=value.len()])[..16]);
    key
}

/// The key of a term's row with this number.
pub(crate) fn row_key(term: &TermKey, row: u64) -> RowKey {
    let mut key = [0; 24];
    key[..16].copy_from_slice(term);
    key[16..].copy_from_slice(&row.to_be_bytes());
    key
}

/// Returns the number of the row that has a block, and the block's position in the row.
pub(super) const fn position(number: u64) -> (u64, u16) {
    (number / ROW_BLOCKS, (number % ROW_BLOCKS) as u16)
}

fn checksum(key: &[u8], bitmap: &[u8]) -> [u8; CHECKSUM] {
    let mut sum = flate2::Crc::new();
    sum.update(key);
    sum.update(bitmap);
    sum.sum().to_be_bytes()
}

/// Encodes a row: the CRC-32 of key and bitmap, then the bitmap in the portable roaring format.
#[must_use]
pub fn encode_row(key: &[u8], bitmap: &RoaringBitmap) -> Vec<u8> {
    let mut bytes = vec![0; CHECKSUM];
    // Writing to a vector does not fail.
    let _ = bitmap.serialize_into(&mut bytes);
    let sum = checksum(key, &bytes[CHECKSUM..]);
    bytes[..CHECKSUM].copy_from_slice(&sum);
    bytes
}

/// Decodes a row that is stored under a key. Returns `None` if the checksum is wrong, or if the bytes are not exactly
/// one bitmap of positions in a row.
#[must_use]
pub fn decode_row(key: &[u8], bytes: &[u8]) -> Option<RoaringBitmap> {
    let (sum, mut bitmap) = bytes.split_at_checked(CHECKSUM)?;
    if sum != checksum(key, bitmap) {
        return None;
    }
    let row = RoaringBitmap::deserialize_from(&mut bitmap).ok()?;
    let in_row = row.max().is_none_or(|most| u64::from(most) < ROW_BLOCKS);
    (in_row && bitmap.is_empty()).then_some(row)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_of_different_roles_have_different_keys() {
        let (address, topic) = (Address::repeat_byte(7), B256::repeat_byte(7));
        let mut keys: Vec<TermKey> = (0..6).map(|at| term_key(&Term::Topic(at, topic))).collect();
        keys.extend(
            [Term::Contract(address), Term::Sender(address), Term::Recipient(address)].map(|t| term_key(&t)),
        );
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 9);
    }

    proptest! {
        /// A changed byte, a cut row and a row under another key are refused; nothing panics.
        #[test]
        fn damaged_rows_are_refused(positions in proptest::collection::btree_set(any::<u16>(), 1..300), at: prop::sample::Index, bit in 0..8_u8, cut: prop::sample::Index) {
            let mut row: RoaringBitmap = positions.iter().map(|position| u32::from(*position)).collect();
            row.optimize();
            let key = row_key(&[3; 16], 9);
            let bytes = encode_row(&key, &row);
            prop_assert_eq!(decode_row(&key, &bytes), Some(row));
            prop_assert_eq!(decode_row(&row_key(&[3; 16], 8), &bytes), None);
            prop_assert_eq!(decode_row(&key, &bytes[..cut.index(bytes.len())]), None);
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= 1 << bit;
            prop_assert_eq!(decode_row(&key, &changed), None);
            prop_assert_eq!(decode_row(&key, &[&bytes[..], &[0]].concat()), None);
        }

        /// With a correct checksum, any bytes give a bitmap of the row or nothing.
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let key = row_key(&[3; 16], 9);
            let sealed = [&checksum(&key, &bytes)[..], &bytes].concat();
            if let Some(row) = decode_row(&key, &sealed) {
                prop_assert!(row.max().is_none_or(|most| most <= u32::from(u16::MAX)));
            }
        }
    }
}
