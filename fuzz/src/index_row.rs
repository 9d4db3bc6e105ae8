//! Rows of the index of logs: stored bytes under a key.

use roaring::RoaringBitmap;
use rootlight_node::index::{decode_row, encode_row};

use crate::limit::with_at_most;

/// A bitmap has at most one container of 8 KiB; decoding may take a buffer for each of the containers that the bytes
/// state.
const BASE: usize = 64 << 10;
/// Memory for each byte of a row.
const PER_BYTE: usize = 64;

/// Decodes any bytes, once as they are and once with a correct checksum.
pub fn check(data: &[u8]) {
    // A row's key has 24 bytes.
    let Some((key, bytes)) = data.split_at_checked(24) else { return };
    let allowed = BASE + bytes.len() * PER_BYTE;
    with_at_most(allowed, || decode_row(key, bytes));
    let mut sum = flate2::Crc::new();
    sum.update(key);
    sum.update(bytes);
    let sealed = [&sum.sum().to_be_bytes(), bytes].concat();
    let Some(row) = with_at_most(allowed, || decode_row(key, &sealed)) else { return };
    assert!(row.max().is_none_or(|most| most <= u32::from(u16::MAX)));
    let again = encode_row(key, &row);
    assert_eq!(decode_row(key, &again).as_ref(), Some(&row), "what is decoded encodes to the same row");
    let plain: RoaringBitmap = row.iter().collect();
    assert_eq!(plain, row, "the numbers are in order");
}
