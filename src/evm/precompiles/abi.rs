//! ABI encoding of the arguments and results of native contracts, with the leniency of the reference node. Arguments consist of words of
//! 32 bytes, the heads, in the order of the signature. The head of an argument of variable length is the offset of its tail: a length and
//! the content.
//!
//! The decoder of the reference node takes lengths and offsets modulo 2^32 as signed numbers, requires no
//! padding and accepts bytes after the arguments. The offset of an argument of variable length may be cut off
//! by the end of the data, and the missing bytes are zero; no other word may be cut off. This determines
//! whether a call is priced as valid, so it is reproduced here.

use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};

use super::padded;

/// Length of a word in bytes.
const WORD: usize = 32;

/// Type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgKind {
    /// A number of any width, a bool, an address: one word.
    Word,
    /// `bytes32`: one word, which unlike [`Self::Word`] must be present in empty data.
    Fixed,
    /// `bytes` or `string`.
    Bytes,
    /// `bytes[]`.
    BytesList,
    /// `bytes32[]`.
    FixedList,
}

/// A decoded argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arg<'a> {
    /// A number, a bool or an address.
    Word(U256),
    /// The content of `bytes32`, `bytes` or `string`.
    Bytes(&'a [u8]),
    /// The elements of `bytes[]` or `bytes32[]`.
    List(Vec<&'a [u8]>),
}

impl<'a> Arg<'a> {
    /// The word; zero for other kinds.
    pub(super) fn word(&self) -> U256 {
        match self {
            Self::Word(word) => *word,
            _ => U256::ZERO,
        }
    }

    /// The word as a signed number; `None` if it does not fit.
    pub(super) fn signed(&self) -> Option<i64> {
        signed(&self.word())
    }

    /// The low 32 bits of the word as a signed number.
    pub(super) fn int(&self) -> i32 {
        self.word().as_limbs().first().map_or(0, |limb| *limb as i32)
    }

    /// The bytes; empty for other kinds.
    pub(super) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The list; empty for other kinds.
    pub(super) fn list(&self) -> &[&'a [u8]] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }
}

/// Whether a word is negative in two's complement.
pub(super) fn is_negative(word: &U256) -> bool {
    word.bit(255)
}

/// A word in two's complement as a 64-bit number; `None` if it does not fit.
pub(super) fn signed(word: &U256) -> Option<i64> {
    if is_negative(word) {
        let magnitude = u64::try_from(word.wrapping_neg()).ok()?;
        return 0i64.checked_sub_unsigned(magnitude);
    }
    i64::try_from(*word).ok()
}

/// Decodes the arguments, which follow the selector; `None` if the data are not valid for these kinds.
pub(super) fn decode<'a>(data: &'a [u8], kinds: &[ArgKind]) -> Option<Vec<Arg<'a>>> {
    let mut args = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let head = index.checked_mul(WORD)?;
        args.push(match kind {
            ArgKind::Word => Arg::Word(word(data, head)?),
            ArgKind::Fixed => Arg::Bytes(slice(data, head, WORD)?),
            ArgKind::Bytes => Arg::Bytes(tail(data, offset(data, head)?)?),
            ArgKind::BytesList | ArgKind::FixedList => Arg::List(list(data, head, *kind)?),
        });
    }
    Some(args)
}

/// The bytes of a range; `None` if the data end before its end.
fn slice(data: &[u8], from: usize, len: usize) -> Option<&[u8]> {
    data.get(from..from.checked_add(len)?)
}

/// Reads a word. Empty data read as zero.
fn word(data: &[u8], from: usize) -> Option<U256> {
    if data.is_empty() {
        return Some(U256::ZERO);
    }
    Some(U256::from_be_slice(slice(data, from, WORD)?))
}

/// Reads a length or offset: the low 32 bits of a word, signed.
fn signed_offset(data: &[u8], from: usize) -> Option<isize> {
    let low = word(data, from)?.as_limbs().first().map_or(0, |limb| *limb as u32);
    isize::try_from(low as i32).ok()
}

/// Reads a length or offset that must not be negative.
fn length_or_offset(data: &[u8], from: usize) -> Option<usize> {
    usize::try_from(signed_offset(data, from)?).ok()
}

/// Reads the offset of an argument, as [`length_or_offset`], but bytes beyond the end of the data are zero. The word
/// must start at the end of the data or before.
fn offset(data: &[u8], head: usize) -> Option<usize> {
    if head > data.len() {
        return None;
    }
    let [.., a, b, c, d] = padded::<WORD>(data, head);
    usize::try_from(i32::from_be_bytes([a, b, c, d])).ok()
}

/// The content of a tail: the length at `at`, then that many bytes.
fn tail(data: &[u8], at: usize) -> Option<&[u8]> {
    slice(data, at.checked_add(WORD)?, length_or_offset(data, at)?)
}

/// The elements of the list whose offset is at `head`.
fn list(data: &[u8], head: usize, kind: ArgKind) -> Option<Vec<&[u8]>> {
    let at = offset(data, head)?;
    if data.is_empty() {
        return Some(Vec::new());
    }
    let len = length_or_offset(data, at)?;
    let first = at.checked_add(WORD)?;
    // Each element takes at least a byte, so this check refuses a list that is too long before memory is allocated.
    slice(data, first, len)?;
    let mut items = Vec::new();
    for index in 0..len {
        let element_head = first.checked_add(index.checked_mul(WORD)?)?;
        items.push(match kind {
            ArgKind::FixedList => slice(data, element_head, WORD)?,
            // The offset of an element counts from the first element's head, and may be negative.
            _ => tail(data, first.checked_add_signed(signed_offset(data, element_head)?)?)?,
        });
    }
    Some(items)
}

/// A `bytes` or `string` result. As in the reference node, an empty result is padded to a whole word.
pub(super) fn bytes_result(bytes: &[u8]) -> Bytes {
    let mut out = U256::from(WORD).to_be_bytes::<WORD>().to_vec();
    out.extend_from_slice(&bytes_tail(bytes));
    out.into()
}

/// The tail of a byte string: its length, its bytes, and padding to whole words, at least one.
pub(super) fn bytes_tail(bytes: &[u8]) -> Vec<u8> {
    let mut out = U256::from(bytes.len()).to_be_bytes::<WORD>().to_vec();
    out.extend_from_slice(bytes);
    let end = bytes.len().max(1).next_multiple_of(WORD).saturating_add(WORD);
    out.resize(end, 0);
    out
}

/// A result of one word.
pub(super) fn word_result(word: U256) -> Bytes {
    word.to_be_bytes::<WORD>().into()
}

/// A signed number as a word.
pub(super) fn int_result(number: i64) -> Bytes {
    let word = U256::from(number.unsigned_abs());
    word_result(if number < 0 { word.wrapping_neg() } else { word })
}

/// Encodes log data or results of several values. A `None` in `words` is a value of variable length: the next element of `tails`.
pub(super) fn encode(words: &[Option<U256>], tails: &[&[u8]]) -> Vec<u8> {
    let mut heads = Vec::new();
    let mut encoded_tails = Vec::new();
    let mut tails = tails.iter();
    for word in words {
        let word = word.unwrap_or_else(|| {
            let at = words.len().saturating_mul(WORD).saturating_add(encoded_tails.len());
            encoded_tails.extend(bytes_tail(tails.next().copied().unwrap_or_default()));
            U256::from(at)
        });
        heads.extend_from_slice(&word.to_be_bytes::<WORD>());
    }
    heads.extend(encoded_tails);
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect()
    }

    #[test]
    fn arguments_are_decoded_as_leniently_as_by_the_reference_node() {
        let mut data = words(&[64, 7, 3]);
        data.extend_from_slice(b"abc");
        let args = decode(&data, &[ArgKind::Bytes, ArgKind::Word]).unwrap();
        assert_eq!((args[0].bytes(), args[1].word()), (&b"abc"[..], U256::from(7)));
        assert_eq!(decode(&data[..data.len() - 1], &[ArgKind::Bytes]), None, "one byte is missing");
        assert_eq!(decode(&[], &[ArgKind::BytesList]).unwrap()[0], Arg::List(Vec::new()));
        assert_eq!(decode(&[], &[ArgKind::Bytes]), None);
        assert_eq!(decode(&[], &[ArgKind::Fixed]), None);
        let wide = (U256::from(1) << 32u32 | U256::from(32)).to_be_bytes::<32>();
        let data = [&wide[..], &words(&[0])].concat();
        assert_eq!(decode(&data, &[ArgKind::Bytes]).unwrap()[0].bytes(), b"", "only 32 bits count");
    }

    #[test]
    fn offsets_may_be_cut_off_by_the_end_of_the_data() {
        let signature = [ArgKind::Bytes, ArgKind::BytesList, ArgKind::Bytes];
        for len in [64, 65, 70, 95, 96] {
            let data = alloc::vec![0; len];
            assert!(decode(&data, &signature).is_some(), "{len} bytes");
        }
        assert_eq!(decode(&[0; 63], &signature), None, "the third offset starts after the end");
        assert_eq!(decode(&[0; 32], &[ArgKind::Bytes, ArgKind::Word]), None, "other words are whole");
        assert_eq!(decode(&[], &[ArgKind::Word, ArgKind::BytesList]), None);
        // The missing bytes are the low ones: with 31 bytes, the low byte is zero.
        let mut data = alloc::vec![0; 64 + 31];
        *data.last_mut().unwrap() = 1;
        assert_eq!(decode(&data, &signature), None, "offset 256");
    }

    #[test]
    fn list_elements_are_read_at_their_offsets() {
        let data = words(&[32, 2, 64, 64, 0]);
        assert_eq!(decode(&data, &[ArgKind::BytesList]).unwrap()[0].list(), [&b""[..], b""]);
        let data = words(&[32, 2, 5, 6]);
        assert_eq!(decode(&data, &[ArgKind::FixedList]).unwrap()[0].list()[1][31], 6);
        assert_eq!(decode(&words(&[32, u64::from(u32::MAX)]), &[ArgKind::FixedList]), None);
        let back = u64::from(u32::MAX - 31);
        assert_eq!(decode(&words(&[32, 1, back]), &[ArgKind::BytesList]).unwrap()[0].list()[0].len(), 1);
    }

    #[test]
    fn an_empty_result_has_three_words() {
        assert_eq!(bytes_result(&[]).len(), 96);
        assert_eq!(bytes_result(&[1; 33]).len(), 128);
        assert_eq!(int_result(-1), Bytes::from([0xff; 32]));
        assert_eq!(encode(&[Some(U256::from(1)), None], &[b"x"])[63], 64);
    }

    #[test]
    fn words_are_converted_to_signed_numbers() {
        assert_eq!(signed(&U256::MAX), Some(-1));
        assert_eq!(signed(&(U256::MAX - U256::from(i64::MAX as u64))), Some(i64::MIN));
        assert_eq!(signed(&U256::from(1u64 << 63)), None);
    }
}
