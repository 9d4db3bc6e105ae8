//! Numbers whose byte form is hashed. The same value can have several byte forms.

use alloc::vec::Vec;
use core::fmt;

use alloy_primitives::U256;

use super::error::{FieldError, FieldRule};
use super::rlp;

/// Reads digits of a base, which is at most 36; an empty text is zero. `None` if a character is no digit of this base, or if the number
/// does not fit 256 bits.
pub(crate) fn from_digits(digits: &str, base: u32) -> Option<U256> {
    // Words of 32 bits: their products fit into the machine's own integers.
    let mut words = [0u32; 8];
    for digit in digits.chars() {
        let mut carry = u64::from(digit.to_digit(base)?);
        for word in &mut words {
            carry = u64::from(*word).wrapping_mul(u64::from(base)).wrapping_add(carry);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            return None;
        }
    }
    let [a, b, c, d, e, f, g, h] = words.map(u64::from);
    Some(U256::from_limbs([b << 32 | a, d << 32 | c, f << 32 | e, h << 32 | g]))
}

/// Divides by a number of 64 bits: quotient and remainder, both zero if the divisor is. The division of two numbers of 256 bits would
/// enlarge the browser's verification module, and no header rule needs it.
pub(crate) fn div_rem(value: U256, divisor: u64) -> (U256, u64) {
    let (mut limbs, mut rest) = (value.into_limbs(), 0u64);
    for limb in limbs.iter_mut().rev() {
        (*limb, rest) = divide(rest, *limb, divisor);
    }
    (U256::from_limbs(limbs), rest)
}

/// Divides `rest * 2^64 + low`, where the rest is below the divisor: quotient and remainder.
fn divide(mut rest: u64, low: u64, divisor: u64) -> (u64, u64) {
    if divisor <= u64::from(u32::MAX) {
        let step = |rest: u64, digit: u64| {
            let dividend = (rest << 32) | digit;
            (dividend.checked_div(divisor).unwrap_or(0), dividend.checked_rem(divisor).unwrap_or(0))
        };
        let (high, rest) = step(rest, low >> 32);
        let (low, rest) = step(rest, low & u64::from(u32::MAX));
        return ((high << 32) | low, rest);
    }
    // Bit by bit, which is slow; no public network has such a divisor.
    let mut quotient = 0;
    for bit in (0..64).rev() {
        let carry = rest >> 63;
        rest = (rest << 1) | ((low >> bit) & 1);
        if carry == 1 || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1 << bit;
        }
    }
    (quotient, rest)
}

/// Writes a number in decimal digits, as the number's own `Display` does, whose code would enlarge the browser's verification module.
pub(crate) struct Decimal<'a>(pub(crate) &'a U256);

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nine digits each, the last ones first. 81 digits are enough.
        let (mut parts, mut rest) = ([0; 9], *self.0);
        for part in &mut parts {
            (rest, *part) = div_rem(rest, 1_000_000_000);
        }
        let mut parts = parts.iter().rev().skip_while(|part| **part == 0);
        write!(f, "{}", parts.next().unwrap_or(&0))?;
        parts.try_for_each(|part| write!(f, "{part:09}"))
    }
}

/// An unsigned number that keeps the length of its byte form.
///
/// Gas limits of headers and transactions, and transaction nonces, are hashed as the bytes received, leading
/// zeros included. Length 0 is the empty string (value 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RawUint {
    value: U256,
    /// Length of the byte form, never shorter than the value needs.
    len: u32,
}

impl RawUint {
    /// The shortest form: no leading zeros, zero as the empty string.
    pub fn minimal(value: U256) -> Self {
        Self { value, len: byte_len(&value) }
    }

    /// The shortest two's-complement form, as Java's `BigInteger.toByteArray` writes it: one leading zero
    /// byte if the top bit is set, and the byte 00 for zero.
    pub fn signed_minimal(value: U256) -> Self {
        // A value of 8 bits takes 2 bytes, one of 7 bits takes 1, zero takes 1.
        let len = (value.bit_len() as u32 / 8).saturating_add(1);
        Self { value, len }
    }

    /// The value in `len` bytes, or in as many as it needs if that is more.
    pub fn padded(value: U256, len: u32) -> Self {
        Self { value, len: len.max(byte_len(&value)) }
    }

    /// Reads big-endian bytes. The byte form keeps its length, leading zeros included.
    pub fn from_be_slice(bytes: &[u8], field: &'static str) -> Result<Self, FieldError> {
        let too_large = FieldError::new(field, FieldRule::TooLarge(256));
        let len = u32::try_from(bytes.len()).map_err(|_| too_large.clone())?;
        let value = U256::try_from_be_slice(rlp::trim(bytes)).ok_or(too_large)?;
        Ok(Self { value, len })
    }

    /// The value.
    pub const fn value(&self) -> U256 {
        self.value
    }

    /// Length of the byte form.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the byte form is the empty string.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the number as an RLP string.
    pub fn put(&self, out: &mut Vec<u8>) {
        let bytes = self.value.to_be_bytes::<32>();
        let len = self.len as usize;
        match bytes.len().checked_sub(len).and_then(|start| bytes.get(start..)) {
            Some(tail) => rlp::put_str(out, tail),
            None => {
                // Longer than 32 bytes: pad with zeros. The input had `len` bytes, so the allocation is
                // bounded.
                let mut long = alloc::vec![0; len.saturating_sub(bytes.len())];
                long.extend_from_slice(&bytes);
                rlp::put_str(out, &long);
            }
        }
    }
}

/// Length of the value in bytes without leading zeros.
fn byte_len(value: &U256) -> u32 {
    value.byte_len() as u32
}

/// A non-negative number in two's complement (header difficulty and minimum gas price).
///
/// An absent number (the empty string, read as zero) is distinct from zero (the byte 00): the two hash
/// differently, and the header rules refuse an absent minimum gas price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SignedUint(RawUint);

impl SignedUint {
    /// The absent number: the empty string.
    pub const ABSENT: Self = Self(RawUint { value: U256::ZERO, len: 0 });

    /// The shortest form of a value.
    pub fn new(value: U256) -> Self {
        Self(RawUint::signed_minimal(value))
    }

    /// A form with more leading zero bytes than needed (only the genesis difficulty has one).
    pub fn padded(value: U256, len: u32) -> Self {
        Self(RawUint::padded(value, len.max(Self::new(value).0.len)))
    }

    /// Reads the two's-complement bytes; `padded` allows superfluous leading zeros.
    pub fn from_be_slice(bytes: &[u8], padded: bool, field: &'static str) -> Result<Self, FieldError> {
        match bytes {
            [] => return Ok(Self::ABSENT),
            [top, ..] if *top >= 0x80 => return Err(FieldError::new(field, FieldRule::Negative)),
            [0, next, ..] if *next < 0x80 && !padded => {
                return Err(FieldError::new(field, FieldRule::NotMinimal));
            }
            _ => {}
        }
        RawUint::from_be_slice(bytes, field).map(Self)
    }

    /// The value; absent counts as zero.
    pub const fn value(&self) -> U256 {
        self.0.value
    }

    /// Whether the field is the empty string.
    pub const fn is_absent(&self) -> bool {
        self.0.len == 0
    }

    /// Appends the number as an RLP string.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl From<U256> for SignedUint {
    fn from(value: U256) -> Self {
        Self::new(value)
    }
}

impl From<u64> for SignedUint {
    fn from(value: u64) -> Self {
        Self::new(U256::from(value))
    }
}

impl From<U256> for RawUint {
    fn from(value: U256) -> Self {
        Self::minimal(value)
    }
}

impl From<u64> for RawUint {
    fn from(value: u64) -> Self {
        Self::minimal(U256::from(value))
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn number(limbs: [u64; 4], bits: usize) -> U256 {
        U256::from_limbs(limbs).wrapping_shr(bits)
    }

    proptest! {
        #[test]
        fn digits_are_read_as_they_are_written(limbs: [u64; 4], bits in 0..256usize) {
            let value = number(limbs, bits);
            prop_assert_eq!(Decimal(&value).to_string(), value.to_string());
            prop_assert_eq!(from_digits(&value.to_string(), 10), Some(value));
            prop_assert_eq!(from_digits(&format!("{value:x}"), 16), Some(value));
            prop_assert_eq!(from_digits(&format!("000{value:X}"), 16), Some(value));
        }

        #[test]
        fn small_divisors_divide_like_large_ones(limbs: [u64; 4], bits in 0..256usize, divisor: u64, less in 0..64u32) {
            let (value, divisor) = (number(limbs, bits), (divisor >> less).max(1));
            let (quotient, rest) = value.div_rem(U256::from(divisor));
            prop_assert_eq!(div_rem(value, divisor), (quotient, rest.to::<u64>()));
        }
    }

    #[test]
    fn numbers_that_do_not_fit_and_other_characters_are_refused() {
        let largest = U256::MAX.to_string();
        assert_eq!(from_digits(&largest, 10), Some(U256::MAX));
        assert_eq!(from_digits(&format!("{}6", largest.trim_end_matches('5')), 10), None);
        assert_eq!(from_digits(&format!("{largest}0"), 10), None);
        assert_eq!(from_digits(&format!("1{}", "0".repeat(64)), 16), None);
        assert_eq!(from_digits("", 10), Some(U256::ZERO));
        for (digits, base) in
            [("1_0", 10), ("a", 10), ("g", 16), ("+1", 10), ("-1", 16), (" 1", 16), ("1\u{e9}", 16)]
        {
            assert_eq!(from_digits(digits, base), None, "{digits}");
        }
    }

    #[test]
    fn zeros_inside_a_number_are_written() {
        for text in
            ["0", "1", "999999999", "1000000000", "10000000000000000007", "5000000000000000000000000000"]
        {
            assert_eq!(Decimal(&from_digits(text, 10).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn a_division_by_zero_is_zero() {
        assert_eq!(div_rem(U256::MAX, 0), (U256::ZERO, 0));
    }
}
