//! Compression in the format of gzip (RFC 1952), for dumps of the state.

use alloc::vec::Vec;

use alloy_primitives::Bytes;
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};

/// The first bytes of the format: two that identify it, and DEFLATE as the method.
const START: [u8; 3] = [0x1f, 0x8b, 8];
/// A header without optional parts: [`START`], no flags, no time (4 bytes), no hint about the compression, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Compression level, from 0 to 10: zlib's default.
const COMPRESSION_LEVEL: u8 = 6;
/// Position of the flags in the header.
const FLAGS: usize = 3;
/// Flag: the header has a checksum of 2 bytes, after the other optional parts.
const FLAG_CHECKSUM: u8 = 2;
/// Flag: the header has extra fields, preceded by their length in 2 bytes.
const FLAG_EXTRA: u8 = 4;
/// Flag: the header has a file name, which ends with a zero byte.
const FLAG_NAME: u8 = 8;
/// Flag: the header has a comment, which ends with a zero byte.
const FLAG_COMMENT: u8 = 16;

/// Whether the data begin with the first bytes of gzip.
pub(super) fn is_packed(data: &[u8]) -> bool {
    data.starts_with(&START)
}

/// The data in the format of gzip: header, compressed data, checksum and length.
pub(super) fn packed(data: &[u8]) -> Bytes {
    let mut packed = Vec::from(HEADER);
    packed.extend(compress_to_vec(data, COMPRESSION_LEVEL));
    packed.extend(checksum(data).to_le_bytes());
    // The length modulo 2^32.
    packed.extend((data.len() as u32).to_le_bytes());
    packed.into()
}

/// The data that were packed; `None` if `packed` is not in the format of gzip or damaged, or if the data have more bytes than
/// `most`.
pub(super) fn unpacked(packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let (rest, trailer) = packed.split_last_chunk::<8>()?;
    let data = decompress_to_vec_with_limit(rest.get(header_len(rest)?..)?, most).ok()?;
    let expected = [checksum(&data), data.len() as u32].map(u32::to_le_bytes);
    (trailer.as_slice() == expected.as_flattened()).then_some(data)
}

/// The length of the header with its optional parts, in the order in which they follow each other.
fn header_len(data: &[u8]) -> Option<usize> {
    let flags = *data.get(FLAGS).filter(|_| is_packed(data))?;
    let mut len = HEADER.len();
    if flags & FLAG_EXTRA != 0 {
        let [low, high] = [data.get(len)?, data.get(len.checked_add(1)?)?];
        len = len.checked_add(2)?.checked_add(usize::from(u16::from_le_bytes([*low, *high])))?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            len = len.checked_add(data.get(len..)?.iter().position(|byte| *byte == 0)?)?.checked_add(1)?;
        }
    }
    if flags & FLAG_CHECKSUM != 0 {
        len = len.checked_add(2)?;
    }
    Some(len)
}

/// CRC-32 with the reversed polynomial 0xedb88320, as RFC 1952 demands.
fn checksum(data: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ 0xedb8_8320_u32.wrapping_mul(crc & 1);
    !data.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use flate2::{Compression, GzBuilder, read::GzDecoder};

    use super::*;

    #[test]
    fn another_library_reads_what_is_packed_here_and_the_other_way_round() {
        for data in [Vec::new(), vec![7], (0..100_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()] {
            let mut read = Vec::new();
            GzDecoder::new(&packed(&data)[..]).read_to_end(&mut read).unwrap();
            assert_eq!(read, data);
            assert_eq!(unpacked(&packed(&data), data.len()), Some(data.clone()));
            let header = GzBuilder::new().filename("state").comment("of a chain").extra("more");
            let mut encoder = header.write(Vec::new(), Compression::best());
            encoder.write_all(&data).unwrap();
            assert_eq!(unpacked(&encoder.finish().unwrap(), data.len()), Some(data));
        }
    }

    #[test]
    fn damaged_cut_and_too_long_data_are_refused() {
        let data = vec![5; 1_000];
        let packed = packed(&data);
        assert_eq!(unpacked(&packed, 999), None);
        for cut in 0..packed.len() {
            assert_eq!(unpacked(&packed[..cut], 1_000), None, "{cut}");
        }
        for at in [0, 1, 2, packed.len() - 1, packed.len() - 5] {
            let mut damaged = packed.to_vec();
            damaged[at] ^= 1;
            assert_eq!(unpacked(&damaged, 1_000), None, "{at}");
        }
    }
}
