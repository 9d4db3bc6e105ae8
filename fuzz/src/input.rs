//! Choices drawn from the fuzzer's bytes.

/// Reads choices from the front; an exhausted input gives zeros, so every input means something.
#[derive(Clone)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Starts at the first byte.
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Two bytes, little-endian.
    pub fn short(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// A number below `count`, 0 for none.
    pub fn below(&mut self, count: usize) -> usize {
        match count {
            0 | 1 => 0,
            2..=256 => usize::from(self.byte()) % count,
            _ => self.short() % count,
        }
    }

    /// At most `len` bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Exactly `N` bytes, zeros where the input ends.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.take(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// The bytes that have not been read.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One change of `bytes`, chosen by the input; may leave them as they are.
pub fn change(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    let kind = input.byte() % 6;
    let at = input.below(bytes.len());
    let byte = input.byte();
    match kind {
        0 if at < bytes.len() => bytes[at] ^= byte,
        1 if at < bytes.len() => bytes[at] = byte,
        2 => bytes.insert(at, byte),
        3 if at < bytes.len() => {
            bytes.remove(at);
        }
        4 => bytes.truncate(at),
        _ => bytes.push(byte),
    }
}
