//! Consecutive Bitcoin headers packed for transport and storage, usually in 43 bytes each.
//!
//! The form is `0x01 | previous hash of the first header (32) | headers`; the byte `0x01` alone stands for no headers. A header is
//!
//! ```text
//! flags (1) | version (4, flag 1) | Merkle root (32) | time (2, or 4 with flag 2) | nBits (4, flag 4) | nonce (4)
//! ```
//!
//! The previous hash is computed from the header before. Version and nBits are written if they differ from those of the header before;
//! the first header is compared with zeros. A time of two bytes is the signed difference from the time of the header before. All
//! numbers are little-endian, as in headers. A reader accepts only the bytes that the writer would write.

use alloc::vec::Vec;

use thiserror::Error;

use super::chain::BitcoinChain;
use super::hash::HEADER_LEN;
use super::header::HashedHeader;
use crate::types::B256;

/// The first byte of the form that the head of this file describes.
const FORM: u8 = 1;
/// Flag of a header that states its version.
const VERSION: u8 = 1;
/// Flag of a header whose time has four bytes.
const WHOLE_TIME: u8 = 2;
/// Flag of a header that states its nBits.
const BITS: u8 = 4;
/// Most bytes of a packed header: with all flags set.
const LONGEST: usize = 49;
/// Bytes of the form byte and the previous hash before the first header.
const FRONT_LEN: usize = 33;

/// Why bytes are not packed headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PackedHeadersError {
    /// The form byte is missing, or this version does not know it.
    #[error("packed Bitcoin headers: form {0:?} is not known")]
    Form(Option<u8>),
    #[error("packed Bitcoin headers: header {index} is cut off")]
    Cut { index: usize },
    /// A flag is unknown, or the header could be packed in fewer bytes.
    #[error("packed Bitcoin headers: header {index}: flags {flags:#04x} are not those that a writer sets")]
    Flags { index: usize, flags: u8 },
    #[error("packed Bitcoin headers: more than {asked}")]
    TooMany { asked: usize },
}

/// The fields that are packed by comparison with those of the header before.
#[derive(Debug, Clone, Copy, Default)]
struct Shared {
    version: [u8; 4],
    time: [u8; 4],
    bits: [u8; 4],
}

/// The difference of two times, if it fits two bytes.
fn short_time(from: [u8; 4], to: [u8; 4]) -> Option<i16> {
    let seconds = |time| i64::from(u32::from_le_bytes(time));
    i16::try_from(seconds(to).saturating_sub(seconds(from))).ok()
}

/// Writes a part at the start of `bytes`, and returns the bytes behind it.
#[inline]
fn put<'a, const N: usize>(bytes: &'a mut [u8], part: &[u8; N]) -> &'a mut [u8] {
    let Some((to, behind)) = bytes.split_first_chunk_mut() else { return &mut [] };
    *to = *part;
    behind
}

/// A header in its parts.
struct Parts {
    shared: Shared,
    previous: [u8; 32],
    root: [u8; 32],
    nonce: [u8; 4],
}

impl Parts {
    /// `None` never happens: the parts have 80 bytes.
    fn of(header: &[u8; HEADER_LEN]) -> Option<Self> {
        let (version, rest) = header.split_first_chunk()?;
        let (previous, rest) = rest.split_first_chunk()?;
        let (root, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let shared = Shared { version: *version, time: *time, bits: *bits };
        Some(Self { shared, previous: *previous, root: *root, nonce: *rest.first_chunk()? })
    }

    fn header(&self) -> [u8; HEADER_LEN] {
        let Shared { version, time, bits } = &self.shared;
        let mut header = [0; HEADER_LEN];
        let rest = put(&mut header, version);
        let rest = put(put(rest, &self.previous), &self.root);
        put(put(put(rest, time), bits), &self.nonce);
        header
    }

    /// The flags with which a writer packs this header after one with the fields `before`.
    fn flags(&self, before: &Shared) -> u8 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(self.shared.version != before.version, VERSION)
            | flag(short_time(before.time, self.shared.time).is_none(), WHOLE_TIME)
            | flag(self.shared.bits != before.bits, BITS)
    }

    fn write(&self, before: &Shared, out: &mut Vec<u8>) {
        let flags = self.flags(before);
        out.push(flags);
        if flags & VERSION != 0 {
            out.extend_from_slice(&self.shared.version);
        }
        out.extend_from_slice(&self.root);
        match short_time(before.time, self.shared.time) {
            Some(seconds) => out.extend_from_slice(&seconds.to_le_bytes()),
            None => out.extend_from_slice(&self.shared.time),
        }
        if flags & BITS != 0 {
            out.extend_from_slice(&self.shared.bits);
        }
        out.extend_from_slice(&self.nonce);
    }
}

/// Packs headers, each of which is the parent of the next.
#[must_use]
pub fn pack_headers(headers: impl IntoIterator<Item = [u8; HEADER_LEN]>) -> Vec<u8> {
    let headers = headers.into_iter();
    let mut out = Vec::with_capacity(headers.size_hint().0.saturating_mul(LONGEST).saturating_add(FRONT_LEN));
    out.push(FORM);
    let mut before = Shared::default();
    for parts in headers.filter_map(|header| Parts::of(&header)) {
        // Only the form byte is written: this header is the first.
        if out.len() == 1 {
            out.extend_from_slice(&parts.previous);
        }
        parts.write(&before, &mut out);
        before = parts.shared;
    }
    out
}

/// Reads packed headers one by one, without allocation. The iterator ends after an error.
#[derive(Debug, Clone)]
pub struct PackedHeaders<'a> {
    rest: &'a [u8],
    previous: B256,
    /// Fields of the header before; zeros before the first.
    before: Shared,
    /// Number of headers that are read.
    index: usize,
    /// Most headers to read.
    most: usize,
}

impl<'a> PackedHeaders<'a> {
    /// Begins to read at most `most` headers.
    ///
    /// # Errors
    /// [`PackedHeadersError::Form`]; [`PackedHeadersError::Cut`] if the previous hash is cut off, or no header follows it.
    pub fn new(bytes: &'a [u8], most: usize) -> Result<Self, PackedHeadersError> {
        let (form, rest) = bytes.split_first().ok_or(PackedHeadersError::Form(None))?;
        if *form != FORM {
            return Err(PackedHeadersError::Form(Some(*form)));
        }
        let (previous, rest) = match rest.split_first_chunk() {
            Some((_, [])) => return Err(PackedHeadersError::Cut { index: 0 }),
            Some((previous, headers)) => (B256::from(*previous), headers),
            None if rest.is_empty() => (B256::ZERO, rest),
            None => return Err(PackedHeadersError::Cut { index: 0 }),
        };
        Ok(Self { rest, previous, before: Shared::default(), index: 0, most })
    }

    /// Hash of the block below the next header, in internal byte order: of the block below the first header at first, then of the last
    /// header that was read.
    pub const fn previous(&self) -> &B256 {
        &self.previous
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    /// Reads a header and its flags.
    fn read(&mut self) -> Option<(Parts, u8)> {
        let [flags] = self.take()?;
        let mut shared = self.before;
        if flags & VERSION != 0 {
            shared.version = self.take()?;
        }
        let root = self.take()?;
        if flags & WHOLE_TIME != 0 {
            shared.time = self.take()?;
        } else {
            let seconds = i32::from(i16::from_le_bytes(self.take()?));
            shared.time = u32::from_le_bytes(shared.time).wrapping_add_signed(seconds).to_le_bytes();
        }
        if flags & BITS != 0 {
            shared.bits = self.take()?;
        }
        Some((Parts { shared, previous: self.previous.0, root, nonce: self.take()? }, flags))
    }

    fn next_header(&mut self) -> Result<HashedHeader, PackedHeadersError> {
        let index = self.index;
        if index >= self.most {
            return Err(PackedHeadersError::TooMany { asked: self.most });
        }
        let (parts, flags) = self.read().ok_or(PackedHeadersError::Cut { index })?;
        // A field that is written though it did not change, or a flag without meaning.
        if flags != parts.flags(&self.before) {
            return Err(PackedHeadersError::Flags { index, flags });
        }
        let header = HashedHeader::new(parts.header());
        (self.previous, self.before) = (*header.hash(), parts.shared);
        self.index = index.saturating_add(1);
        Ok(header)
    }
}

impl Iterator for PackedHeaders<'_> {
    type Item = Result<HashedHeader, PackedHeadersError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.next_header();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

impl BitcoinChain {
    /// Packs at most `most` headers of the heaviest chain from the height `from` on. The result has no headers if the one at `from` is
    /// not kept.
    #[must_use]
    pub fn packed(&self, from: u32, most: u32) -> Vec<u8> {
        let heights = from..from.saturating_add(most).min(self.tip().height.saturating_add(1));
        pack_headers(heights.map_while(|height| self.header_at(height)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::bitcoin::testing::header_of;
    use proptest::prelude::*;

    fn linked(fields: &[(u32, u32, u32)]) -> Vec<[u8; HEADER_LEN]> {
        let mut previous = B256::repeat_byte(3);
        let header = |(version, time, bits): &(u32, u32, u32)| {
            let mut header = header_of(previous, B256::repeat_byte(*version as u8), *time, *bits, *time);
            header[..4].copy_from_slice(&version.to_le_bytes());
            previous = *HashedHeader::new(header).hash();
            header
        };
        fields.iter().map(header).collect()
    }

    fn read(bytes: &[u8], most: usize) -> Result<Vec<[u8; HEADER_LEN]>, PackedHeadersError> {
        PackedHeaders::new(bytes, most)?.map(|read| Ok(*read?.header())).collect()
    }

    #[test]
    fn a_header_takes_39_to_49_bytes() {
        let start = 1_700_000_000;
        let same = linked(&[(1, start, 9), (1, start + 600, 9), (1, start, 9)]);
        assert_eq!(pack_headers(same).len(), 33 + 49 + 2 * 39);
        let rolled = linked(&[(1, start, 9), (2, start + 32_767, 9), (3, start - 1, 9)]);
        assert_eq!(pack_headers(rolled).len(), 33 + 49 + 2 * 43);
        let all = linked(&[(1, start, 9), (2, start + 32_768, 8)]);
        assert_eq!(pack_headers(all).len(), 33 + 2 * 49);
        assert_eq!(read(&pack_headers([]), 0), Ok(Vec::new()));
    }

    #[test]
    fn more_headers_than_asked_for_are_refused() {
        let packed = pack_headers(linked(&[(1, 1, 1), (1, 2, 1)]));
        assert_eq!(read(&packed, 1), Err(PackedHeadersError::TooMany { asked: 1 }));
        assert_eq!(read(&packed, 2).unwrap().len(), 2);
    }

    #[test]
    fn headers_that_could_be_shorter_are_refused() {
        let packed = pack_headers(linked(&[(1, 100_000, 1), (1, 100_002, 1)]));
        let second = 33 + 49;
        for (flag, at, field) in [(VERSION, second + 1, 1u32), (BITS, second + 35, 1)] {
            let mut longer = packed.clone();
            longer[second] |= flag;
            longer.splice(at..at, field.to_le_bytes());
            let refused = PackedHeadersError::Flags { index: 1, flags: flag };
            assert_eq!(read(&longer, 9), Err(refused));
        }
        let mut longer = packed.clone();
        longer[second] |= WHOLE_TIME;
        longer.splice(second + 33..second + 35, 100_002u32.to_le_bytes());
        assert_eq!(read(&longer, 9), Err(PackedHeadersError::Flags { index: 1, flags: WHOLE_TIME }));
        let mut unknown = packed;
        unknown[second] |= 0x80;
        assert_eq!(read(&unknown, 9), Err(PackedHeadersError::Flags { index: 1, flags: 0x80 }));
    }

    #[test]
    fn cut_off_headers_and_unknown_forms_are_refused() {
        let packed = pack_headers(linked(&[(1, 1, 1), (1, 2, 1)]));
        let whole = [1, 33 + 47, packed.len()];
        for len in 1..packed.len() {
            assert_eq!(read(&packed[..len], 9).is_ok(), whole.contains(&len), "{len} bytes");
        }
        assert_eq!(read(&[], 9), Err(PackedHeadersError::Form(None)));
        assert_eq!(read(&[2], 9), Err(PackedHeadersError::Form(Some(2))));
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read(
            fields in proptest::collection::vec((0u32..3, any::<u32>(), 0u32..2), 0..20),
            near in proptest::collection::vec((any::<u32>(), 0u32..70_000, any::<u32>()), 0..20),
        ) {
            let headers = linked(&[fields, near].concat());
            prop_assert_eq!(read(&pack_headers(headers.iter().copied()), 40), Ok(headers));
        }

        #[test]
        fn any_bytes_are_refused_or_what_a_writer_writes(mut bytes in proptest::collection::vec(any::<u8>(), 1..300), small: bool) {
            bytes[0] = FORM;
            // Flags that occur.
            if small && bytes.len() > 33 {
                bytes[33] &= 7;
            }
            if let Ok(headers) = read(&bytes, 9) {
                prop_assert_eq!(pack_headers(headers), bytes);
            }
        }
    }
}
