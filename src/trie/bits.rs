//! Runs of bits, most significant bit first: keys of a trie, and the paths of its nodes.

use alloc::vec::Vec;

/// A borrowed run of bits inside a byte string.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    start: usize,
    len: usize,
}

impl<'a> Bits<'a> {
    /// All bits of a key.
    pub fn of_key(key: &'a [u8]) -> Self {
        Self { bytes: key, start: 0, len: key.len().saturating_mul(8) }
    }

    /// The first `len` bits of `bytes`, or all of them if there are fewer.
    pub fn first(bytes: &'a [u8], len: usize) -> Self {
        Self { bytes, start: 0, len: len.min(bytes.len().saturating_mul(8)) }
    }

    /// Number of bits.
    pub fn len(self) -> usize {
        self.len
    }

    /// True when there is no bit.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Bit number `at`, or `None` past the end.
    pub fn get(self, at: usize) -> Option<bool> {
        (at < self.len).then(|| self.window(at) >> 63 != 0)
    }

    /// The bits after the first `count`.
    pub fn skip(self, count: usize) -> Self {
        let count = count.min(self.len);
        Self {
            bytes: self.bytes,
            start: self.start.saturating_add(count),
            len: self.len.saturating_sub(count),
        }
    }

    /// The first `count` bits.
    pub fn take(self, count: usize) -> Self {
        Self { len: self.len.min(count), ..self }
    }

    /// The first bit and the rest, or `None` if empty.
    pub fn split_first(self) -> Option<(bool, Self)> {
        Some((self.get(0)?, self.skip(1)))
    }

    /// Number of leading bits that both runs share.
    pub fn common_prefix(self, other: Self) -> usize {
        let most = self.len.min(other.len);
        let mut at = 0usize;
        while at < most {
            let differing = self.window(at) ^ other.window(at);
            if differing != 0 {
                return at.saturating_add(differing.leading_zeros() as usize).min(most);
            }
            at = at.saturating_add(64);
        }
        most
    }

    /// The bits packed into bytes, unused low bits of the last byte zero.
    pub fn write_packed(self, out: &mut Vec<u8>) {
        let mut at = 0usize;
        while at < self.len {
            let left = self.len.saturating_sub(at).min(64);
            let (packed, unused) = (self.window(at), 64usize.saturating_sub(left));
            let packed = packed >> unused << unused;
            out.extend(packed.to_be_bytes().into_iter().take(left.div_ceil(8)));
            at = at.saturating_add(64);
        }
    }

    /// Returns 64 bits starting at bit `at`. Bits past the end of the bytes are zero; bits past the end of the run are
    /// arbitrary, and callers mask them.
    fn window(self, at: usize) -> u64 {
        let at = self.start.saturating_add(at);
        let (bytes, shift) = (self.bytes.get(at / 8..).unwrap_or_default(), at % 8);
        let mut nine = [0; 9];
        match bytes.first_chunk() {
            Some(whole) => nine = *whole,
            None => nine.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
        }
        let [high @ .., low] = nine;
        // The shift is less than eight.
        u64::from_be_bytes(high) << shift | u64::from(low) >> 8usize.saturating_sub(shift)
    }
}

impl PartialEq for Bits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.common_prefix(*other) == self.len
    }
}

impl Eq for Bits<'_> {}

/// An owned run of bits, packed from the first byte on; the last byte is padded with zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitPath {
    bytes: Vec<u8>,
    len: usize,
}

impl BitPath {
    /// A copy of `bits`.
    pub(crate) fn of(bits: Bits<'_>) -> Self {
        let mut bytes = Vec::with_capacity(bits.len().div_ceil(8));
        bits.write_packed(&mut bytes);
        Self { bytes, len: bits.len() }
    }

    /// `first`, then `bit`, then `last`: the path of a node merged with its only child.
    pub(crate) fn join(first: Bits<'_>, bit: bool, last: Bits<'_>) -> Self {
        let mut path = Self::of(first);
        path.push(bit);
        path.extend(last);
        path
    }

    pub(crate) fn push(&mut self, bit: bool) {
        let used = self.len % 8;
        if used == 0 {
            self.bytes.push(0);
        }
        if let (true, Some(last)) = (bit, self.bytes.last_mut()) {
            *last |= 0x80 >> used;
        }
        self.len = self.len.saturating_add(1);
    }

    /// Appends all of `bits`.
    pub(crate) fn extend(&mut self, bits: Bits<'_>) {
        let mut rest = bits;
        while let Some((bit, after)) = rest.split_first() {
            self.push(bit);
            rest = after;
        }
    }

    /// Removes all bits after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            *self = Self::of(self.bits().take(len));
        }
    }

    /// The bits, borrowed.
    pub(crate) fn bits(&self) -> Bits<'_> {
        Bits::first(&self.bytes, self.len)
    }

    /// The packed bytes, or `None` if the number of bits is not a multiple of eight.
    pub(crate) fn whole_bytes(&self) -> Option<&[u8]> {
        self.len.is_multiple_of(8).then_some(self.bytes.as_slice())
    }
}
