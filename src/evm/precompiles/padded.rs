//! Reads the input of a native contract, which may end before the bytes that the contract reads.

/// `N` bytes of input from an offset; missing bytes read as zero.
pub(super) fn padded<const N: usize>(input: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    let rest = input.get(offset..).unwrap_or_default();
    out.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    out
}
