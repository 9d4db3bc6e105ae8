//! 0x05 (MODEXP, EIP-198), the native contract for modular exponentiation, with its price from before EIP-2565.

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::padded;

/// Length of the three length words in bytes.
const HEADER: usize = 96;
/// Divisor of the price (EIP-198's GQUADDIVISOR).
const DIVISOR: u128 = 20;
/// Greatest length in the reference node, far above what any gas limit pays for.
const MAX_LENGTH: u64 = i32::MAX as u64;

/// Lengths in bytes of base, exponent and modulus.
struct Lengths {
    base: u64,
    exponent: u64,
    modulus: u64,
}

impl Lengths {
    /// Reads the three length words, each capped at [`MAX_LENGTH`].
    fn read(input: &[u8]) -> Self {
        let length = |offset| {
            let word = U256::from_be_bytes(padded::<32>(input, offset));
            u64::try_from(word).unwrap_or(MAX_LENGTH).min(MAX_LENGTH)
        };
        Self { base: length(0), exponent: length(32), modulus: length(64) }
    }
}

/// Price, computed from the operand lengths and the exponent's leading bits. Saturates.
pub(super) fn price(input: &[u8]) -> u64 {
    let lengths = Lengths::read(input);
    let complexity = complexity(u128::from(lengths.base.max(lengths.modulus)));
    let rounds = u128::from(exponent_bits(input, &lengths)).max(1);
    u64::try_from(complexity.saturating_mul(rounds) / DIVISOR).unwrap_or(u64::MAX)
}

/// EIP-198's `mult_complexity`.
fn complexity(len: u128) -> u128 {
    let square = len.saturating_mul(len);
    if len <= 64 {
        square
    } else if len <= 1_024 {
        (square / 4).saturating_add(len.saturating_mul(96)).saturating_sub(3_072)
    } else {
        (square / 16).saturating_add(len.saturating_mul(480)).saturating_sub(199_680)
    }
}

/// EIP-198's adjusted exponent length: bits of the first word, plus eight for each byte after it.
fn exponent_bits(input: &[u8], lengths: &Lengths) -> u64 {
    let offset = usize::try_from(lengths.base).unwrap_or(usize::MAX).saturating_add(HEADER);
    let mut head: [u8; 32] = padded(input, offset);
    let head_len = usize::try_from(lengths.exponent.min(32)).unwrap_or(32);
    // A short exponent is right-aligned in the word, without the bytes of the modulus after it.
    head.rotate_right(32_usize.saturating_sub(head_len));
    head.iter_mut().take(32_usize.saturating_sub(head_len)).for_each(|byte| *byte = 0);
    let bits = (U256::from_be_bytes(head).bit_len() as u64).saturating_sub(1);
    lengths.exponent.saturating_sub(32).saturating_mul(8).saturating_add(bits)
}

/// Computes base^exponent mod modulus, with the length of the modulus. Called only after the price is paid, which bounds the lengths of
/// base and modulus; `operands` bounds that of the exponent.
pub(super) fn run(input: &[u8]) -> Vec<u8> {
    let lengths = Lengths::read(input);
    let mut output = alloc::vec![0; size(lengths.modulus)];
    if let Some([base, exponent, modulus]) = operands(input, &lengths) {
        let power = aurora_engine_modexp::modexp(&base, &exponent, &modulus);
        output.iter_mut().rev().zip(power.iter().rev()).for_each(|(to, from)| *to = *from);
    }
    output
}

/// A length as `usize`, which [`MAX_LENGTH`] fits on targets of 32 and 64 bits.
fn size(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Base, exponent and modulus; `None` if the modulus, and so the result, is 0.
///
/// The modulus is the last operand. If it is not 0, the input extends into it, so the other operands are no
/// longer than the input. This order of checks avoids the allocation of megabytes for an exponent that the input does not contain;
/// with a short modulus they would cost little gas.
fn operands(input: &[u8], lengths: &Lengths) -> Option<[Vec<u8>; 3]> {
    let exponent_at = HEADER.saturating_add(size(lengths.base));
    let modulus_at = exponent_at.saturating_add(size(lengths.exponent));
    let modulus = operand(input, modulus_at, size(lengths.modulus));
    if modulus.iter().all(|byte| *byte == 0) {
        return None;
    }
    let base = operand(input, HEADER, size(lengths.base));
    Some([base, operand(input, exponent_at, size(lengths.exponent)), modulus])
}

/// Reads `len` bytes of input from an offset, padded with zeros at the end.
fn operand(input: &[u8], offset: usize, len: usize) -> Vec<u8> {
    let rest = input.get(offset..).unwrap_or_default();
    let mut operand: Vec<u8> = rest.iter().take(len).copied().collect();
    operand.resize(len, 0);
    operand
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
        let mut input = Vec::new();
        for part in [base, exponent, modulus] {
            input.extend_from_slice(&U256::from(part.len()).to_be_bytes::<32>());
        }
        [&input, base, exponent, modulus].concat()
    }

    #[test]
    fn powers_of_small_numbers() {
        assert_eq!(run(&call(&[3], &[4], &[100])), [81]);
        assert_eq!(run(&call(&[3], &[4], &[0, 7])), [0, 4]);
        assert_eq!(run(&call(&[3], &[4], &[0])), [0], "modulus zero");
        assert!(run(&call(&[3], &[4], &[])).is_empty(), "no modulus");
        assert!(run(&[]).is_empty());
    }

    #[test]
    fn price_of_the_example_in_eip_198() {
        let field = hex::decode("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e").unwrap();
        let modulus =
            hex::decode("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f").unwrap();
        assert_eq!(price(&call(&[3], &field, &modulus)), 13_056);
        assert_eq!(price(&call(&[], &field, &modulus)), 13_056);
    }

    #[test]
    fn operands_beyond_the_input_are_not_allocated() {
        let mut input = call(&[2], &[], &[5]);
        // An exponent of 4 MiB at 0.4 gas per byte.
        input[61] = 0x44;
        assert!(price(&input) < 2_000_000);
        assert!(operands(&input, &Lengths::read(&input)).is_none());
        assert_eq!(run(&input), [0]);
    }

    #[test]
    fn huge_lengths_cost_more_than_any_gas_limit() {
        assert!(price(&[0xff; 96]) > 1 << 40);
    }
}
