//! 0x09 (RSKIP-153): the compression function of BLAKE2b (EIP-152, RFC 7693).

use alloc::vec::Vec;

use super::{NativeFailure, padded};

/// The only valid input length: rounds, state, message, offset, final flag.
pub(super) const INPUT: usize = 213;

/// Number of rounds between two interrupt checks; this many take about a millisecond.
const PIECE: usize = 1 << 15;

/// Initial vector of BLAKE2b.
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// Order of the message words in ten rounds, which repeat.
const SIGMA: [[u8; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The indices of the columns, then of the diagonals, of the state of 4 by 4 words.
const MIX: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// One gas per round. Input of another length fails and costs nothing.
pub(super) fn price(input: &[u8]) -> u64 {
    match input {
        [a, b, c, d, ..] if input.len() == INPUT => u64::from(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => 0,
    }
}

/// Computes the new state, 64 bytes.
///
/// # Errors
/// [`NativeFailure::Failed`] for a wrong length or final flag, [`NativeFailure::Interrupted`] if `interrupted` returns
/// `true`.
pub(super) fn run(input: &[u8], interrupted: &dyn Fn() -> bool) -> Result<Vec<u8>, NativeFailure> {
    let last = match input.last() {
        _ if input.len() != INPUT => return Err(NativeFailure::Failed),
        Some(0) => false,
        Some(1) => true,
        _ => return Err(NativeFailure::Failed),
    };
    let rounds = u32::from_be_bytes(padded(input, 0));
    let mut state: [u64; 8] = words(input, 4);
    let message: [u64; 16] = words(input, 68);
    let offset: [u64; 2] = words(input, 196);
    if !compress(rounds, &mut state, &message, offset, last, interrupted) {
        return Err(NativeFailure::Interrupted);
    }
    Ok(state.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// Words in little endian from an offset on.
fn words<const N: usize>(input: &[u8], offset: usize) -> [u64; N] {
    core::array::from_fn(|i| u64::from_le_bytes(padded(input, offset.saturating_add(i.saturating_mul(8)))))
}

/// Updates the state by a number of rounds (function F of RFC 7693). `last` says that this is the final block. Returns `false` if
/// interrupted.
// Every index below is a constant under 16 or comes from the tables above.
#[allow(clippy::indexing_slicing)]
fn compress(
    rounds: u32,
    state: &mut [u64; 8],
    message: &[u64; 16],
    offset: [u64; 2],
    last: bool,
    interrupted: &dyn Fn() -> bool,
) -> bool {
    let mut v: [u64; 16] = core::array::from_fn(|i| if i < 8 { state[i] } else { IV[i & 7] });
    v[12] ^= offset[0];
    v[13] ^= offset[1];
    if last {
        v[14] = !v[14];
    }
    for (round, order) in SIGMA.iter().cycle().take(rounds as usize).enumerate() {
        if round % PIECE == PIECE - 1 && interrupted() {
            return false;
        }
        for (lane, pair) in MIX.iter().zip(order.chunks_exact(2)) {
            mix(&mut v, lane, message[usize::from(pair[0])], message[usize::from(pair[1])]);
        }
    }
    for (i, word) in state.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i | 8];
    }
    true
}

/// Mixes two words of the message into one column or diagonal (function G of RFC 7693).
#[allow(clippy::indexing_slicing)]
fn mix(v: &mut [u64; 16], lane: &[usize; 4], x: u64, y: u64) {
    let [a, b, c, d] = *lane;
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input of BLAKE2b-512 for the message "abc": the state after the parameter block, 3 bytes, final block.
    fn abc(rounds: u32) -> Vec<u8> {
        let mut state = IV;
        state[0] ^= 0x0101_0040;
        let mut input = rounds.to_be_bytes().to_vec();
        input.extend(state.iter().flat_map(|w| w.to_le_bytes()));
        input.extend_from_slice(b"abc");
        input.resize(196, 0);
        input.extend(3_u64.to_le_bytes());
        input.extend(0_u64.to_le_bytes());
        input.push(1);
        input
    }

    #[test]
    fn twelve_rounds_are_blake2b() {
        let digest = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
                      7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        assert_eq!(hex::encode(run(&abc(12), &|| true).unwrap()), digest);
        assert_eq!(price(&abc(12)), 12);
    }

    #[test]
    fn wrong_lengths_and_flags_fail() {
        let mut input = abc(12);
        input[212] = 2;
        assert_eq!(run(&input, &|| false), Err(NativeFailure::Failed));
        assert_eq!(run(&abc(12)[..212], &|| false), Err(NativeFailure::Failed));
        assert_eq!(price(&abc(12)[..212]), 0);
    }

    /// 2^32 - 1 rounds take minutes.
    #[test]
    fn long_runs_are_interrupted() {
        let asked = core::cell::Cell::new(0);
        let third = || asked.replace(asked.get() + 1) == 2;
        assert_eq!(run(&abc(u32::MAX), &third), Err(NativeFailure::Interrupted));
        assert_eq!(asked.get(), 3);
    }
}
