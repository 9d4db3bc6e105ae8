//! A cursor over the untrusted bytes of a trie node. Every read is checked, no bytes are copied.

/// Reads from the front of a byte string.
pub(super) struct NodeReader<'a> {
    rest: &'a [u8],
}

impl<'a> NodeReader<'a> {
    /// Creates a cursor at the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(taken)
    }

    /// All bytes not read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// A Bitcoin variable-length integer: its value, and whether it has the shortest form.
    pub(super) fn varint(&mut self) -> Option<(u64, bool)> {
        Some(match self.byte()? {
            0xfd => {
                let value = u64::from(u16::from_le_bytes(*self.array()?));
                (value, value >= 0xfd)
            }
            0xfe => {
                let value = u64::from(u32::from_le_bytes(*self.array()?));
                (value, value > u64::from(u16::MAX))
            }
            0xff => {
                let value = u64::from_le_bytes(*self.array()?);
                (value, value > u64::from(u32::MAX))
            }
            small => (u64::from(small), true),
        })
    }
}

/// Number of bytes of `value` as a Bitcoin variable-length integer.
pub(super) fn varint_len(value: u64) -> usize {
    match value {
        0..=0xfc => 1,
        0xfd..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Appends `value` as a Bitcoin variable-length integer in its shortest form.
pub(super) fn write_varint(value: u64, out: &mut alloc::vec::Vec<u8>) {
    let bytes = value.to_le_bytes();
    // The first byte states the length of the number that follows, unless it is the number itself.
    let (mark, len) = match varint_len(value) {
        1 => (None, 1),
        3 => (Some(0xfd), 2),
        5 => (Some(0xfe), 4),
        _ => (Some(0xff), 8),
    };
    out.extend(mark);
    out.extend(bytes.iter().take(len));
}
