//! Call data and return data of native contracts, as the reference reads and writes them.
//!
//! Its decoder takes lengths and offsets modulo 2^32 as signed numbers, asks for no padding and
//! accepts bytes behind the arguments. The offset of an argument of variable length may be cut off by
//! the end of the data, what is missing being zero; no other word may. All this decides prices, so it
//! is followed here.

use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};

use super::padded;

/// Bytes of a word.
const WORD: usize = 32;

/// Type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number of any width, a bool, an address: one word.
    Word,
    /// `bytes32`: one word that must be there.
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
    /// A word, big endian.
    Word(U256),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Several of them.
    List(Vec<&'a [u8]>),
}

impl<'a> Arg<'a> {
    /// The word; zero for anything else.
    pub(super) fn word(&self) -> U256 {
        match self {
            Self::Word(word) => *word,
            _ => U256::ZERO,
        }
    }

    /// The word as a signed number, if it fits.
    pub(super) fn signed(&self) -> Option<i64> {
        signed(&self.word())
    }

    /// The word's low 32 bits, signed.
    pub(super) fn int(&self) -> i32 {
        self.word().as_limbs().first().map_or(0, |limb| *limb as i32)
    }

    /// The bytes; none for anything else.
    pub(super) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The list; empty for anything else.
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

/// A word in two's complement, if it fits 64 bits.
pub(super) fn signed(word: &U256) -> Option<i64> {
    if is_negative(word) {
        let magnitude = u64::try_from(word.wrapping_neg()).ok()?;
        return 0i64.checked_sub_unsigned(magnitude);
    }
    i64::try_from(*word).ok()
}

/// Arguments behind a selector.
pub(super) fn decode<'a>(data: &'a [u8], kinds: &[Kind]) -> Option<Vec<Arg<'a>>> {
    let mut args = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let head = index.checked_mul(WORD)?;
        args.push(match kind {
            Kind::Word => Arg::Word(word(data, head)?),
            Kind::Fixed => Arg::Bytes(slice(data, head, WORD)?),
            Kind::Bytes => Arg::Bytes(tail(data, offset(data, head)?)?),
            Kind::BytesList | Kind::FixedList => Arg::List(list(data, head, *kind)?),
        });
    }
    Some(args)
}

fn slice(data: &[u8], from: usize, len: usize) -> Option<&[u8]> {
    data.get(from..from.checked_add(len)?)
}

/// A word; no data at all reads as zero.
fn word(data: &[u8], from: usize) -> Option<U256> {
    if data.is_empty() {
        return Some(U256::ZERO);
    }
    Some(U256::from_be_slice(slice(data, from, WORD)?))
}

/// A length or offset: the low 32 bits, signed.
fn signed_place(data: &[u8], from: usize) -> Option<isize> {
    let low = word(data, from)?.as_limbs().first().map_or(0, |limb| *limb as u32);
    isize::try_from(low as i32).ok()
}

/// A length or offset that must not be negative.
fn place(data: &[u8], from: usize) -> Option<usize> {
    usize::try_from(signed_place(data, from)?).ok()
}

/// The offset of an argument: as [`place`], but bytes behind the end of the data are zero. Its word
/// starts at the end of the data at the latest.
fn offset(data: &[u8], head: usize) -> Option<usize> {
    if head > data.len() {
        return None;
    }
    let [.., a, b, c, d] = padded::<WORD>(data, head);
    usize::try_from(i32::from_be_bytes([a, b, c, d])).ok()
}

fn tail(data: &[u8], at: usize) -> Option<&[u8]> {
    slice(data, at.checked_add(WORD)?, place(data, at)?)
}

fn list(data: &[u8], head: usize, kind: Kind) -> Option<Vec<&[u8]>> {
    let at = offset(data, head)?;
    if data.is_empty() {
        return Some(Vec::new());
    }
    let len = place(data, at)?;
    let first = at.checked_add(WORD)?;
    // No element takes less than a byte, so a longer list is refused before any memory is taken.
    slice(data, first, len)?;
    let mut items = Vec::new();
    for index in 0..len {
        let here = first.checked_add(index.checked_mul(WORD)?)?;
        items.push(match kind {
            Kind::FixedList => slice(data, here, WORD)?,
            _ => tail(data, first.checked_add_signed(signed_place(data, here)?)?)?,
        });
    }
    Some(items)
}

/// A `bytes` or `string` result. Empty ones are padded to a whole word, as the reference does.
pub(super) fn bytes_result(bytes: &[u8]) -> Bytes {
    let mut out = U256::from(WORD).to_be_bytes::<WORD>().to_vec();
    out.extend_from_slice(&bytes_tail(bytes));
    out.into()
}

/// Length, bytes, padding.
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

/// Log data or results of several values, `None` in `words` standing for the next of `tails`.
#[cfg(any(feature = "bridge-write", test))]
pub(super) fn encode(words: &[Option<U256>], tails: &[&[u8]]) -> Vec<u8> {
    let mut heads = Vec::new();
    let mut behind = Vec::new();
    let mut tails = tails.iter();
    for word in words {
        let word = word.unwrap_or_else(|| {
            let at = words.len().saturating_mul(WORD).saturating_add(behind.len());
            behind.extend(bytes_tail(tails.next().copied().unwrap_or_default()));
            U256::from(at)
        });
        heads.extend_from_slice(&word.to_be_bytes::<WORD>());
    }
    heads.extend(behind);
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect()
    }

    #[test]
    fn arguments_are_read_leniently() {
        let mut data = words(&[64, 7, 3]);
        data.extend_from_slice(b"abc");
        let args = decode(&data, &[Kind::Bytes, Kind::Word]).unwrap();
        assert_eq!((args[0].bytes(), args[1].word()), (&b"abc"[..], U256::from(7)));
        assert_eq!(decode(&data[..data.len() - 1], &[Kind::Bytes]), None, "a byte is missing");
        assert_eq!(decode(&[], &[Kind::BytesList]).unwrap()[0], Arg::List(Vec::new()));
        assert_eq!(decode(&[], &[Kind::Bytes]), None);
        assert_eq!(decode(&[], &[Kind::Fixed]), None);
        let wide = (U256::from(1) << 32u32 | U256::from(32)).to_be_bytes::<32>();
        let data = [&wide[..], &words(&[0])].concat();
        assert_eq!(decode(&data, &[Kind::Bytes]).unwrap()[0].bytes(), b"", "only 32 bits count");
    }

    #[test]
    fn offsets_may_be_cut_off_by_the_end_of_the_data() {
        let signature = [Kind::Bytes, Kind::BytesList, Kind::Bytes];
        for len in [64, 65, 70, 95, 96] {
            let data = alloc::vec![0; len];
            assert!(decode(&data, &signature).is_some(), "{len} bytes");
        }
        assert_eq!(decode(&[0; 63], &signature), None, "the third offset starts behind the end");
        assert_eq!(decode(&[0; 32], &[Kind::Bytes, Kind::Word]), None, "other words are whole");
        assert_eq!(decode(&[], &[Kind::Word, Kind::BytesList]), None);
        // The bytes that are there are the high ones: 31 of them leave the low one zero.
        let mut data = alloc::vec![0; 64 + 31];
        *data.last_mut().unwrap() = 1;
        assert_eq!(decode(&data, &signature), None, "offset 256");
    }

    #[test]
    fn lists_hold_bytes_at_their_offsets() {
        let data = words(&[32, 2, 64, 64, 0]);
        assert_eq!(decode(&data, &[Kind::BytesList]).unwrap()[0].list(), [&b""[..], b""]);
        let data = words(&[32, 2, 5, 6]);
        assert_eq!(decode(&data, &[Kind::FixedList]).unwrap()[0].list()[1][31], 6);
        assert_eq!(decode(&words(&[32, u64::from(u32::MAX)]), &[Kind::FixedList]), None);
        let back = u64::from(u32::MAX - 31);
        assert_eq!(decode(&words(&[32, 1, back]), &[Kind::BytesList]).unwrap()[0].list()[0].len(), 1);
    }

    #[test]
    fn an_empty_result_has_three_words() {
        assert_eq!(bytes_result(&[]).len(), 96);
        assert_eq!(bytes_result(&[1; 33]).len(), 128);
        assert_eq!(int_result(-1), Bytes::from([0xff; 32]));
        assert_eq!(encode(&[Some(U256::from(1)), None], &[b"x"])[63], 64);
    }

    #[test]
    fn signs_are_kept() {
        assert_eq!(signed(&U256::MAX), Some(-1));
        assert_eq!(signed(&(U256::MAX - U256::from(i64::MAX as u64))), Some(i64::MIN));
        assert_eq!(signed(&U256::from(1u64 << 63)), None);
    }
}
