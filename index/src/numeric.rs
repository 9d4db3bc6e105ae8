//! 256-bit numbers as PostgreSQL's `numeric`, in its binary form: the number of digits, the weight of the first one, the
//! sign, the scale (decimal digits after the point), and digits of base 10,000. Each is two bytes, big-endian.

use std::error::Error;

use alloy_primitives::U256;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Base of the digits, as PostgreSQL defines it.
const BASE: u64 = 10_000;

/// Digits of base 10,000 of the largest number, 2^256 - 1.
const MAX_DIGITS: usize = 20;

/// A number that is stored as `numeric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numeric(pub(crate) U256);

impl ToSql for Numeric {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let mut digits = Vec::with_capacity(MAX_DIGITS);
        let mut rest = self.0;
        while !rest.is_zero() {
            let (quotient, digit) = rest.div_rem(U256::from(BASE));
            digits.push(digit.to::<u16>());
            rest = quotient;
        }
        let weight = i16::try_from(digits.len())?.saturating_sub(1).max(0);
        // The least significant digits come first here. PostgreSQL leaves out those at the end of the number that are zero; the
        // weight states the power of the base of the first digit.
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let kept = digits.len().saturating_sub(zeros);
        out.extend_from_slice(&u16::try_from(kept)?.to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        // The sign (positive) and the scale (no digits after the point).
        out.extend_from_slice(&[0; 4]);
        for digit in digits.iter().rev().take(kept) {
            out.extend_from_slice(&digit.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }

    to_sql_checked!();
}

/// The bytes are not a whole number from 0 to 2^256 - 1.
#[derive(Debug, thiserror::Error)]
#[error("not a whole number of 256 bits")]
struct NotWhole;

impl<'a> FromSql<'a> for Numeric {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        // `odd` is a last byte without a second one. A sign other than 0 is negative or no number; the scale does not matter. The weight
        // of a fraction is negative: read without its sign it is above 32,767, so the number does not fit below.
        let (words, odd) = raw.as_chunks::<2>();
        let mut words = words.iter().map(|word| u16::from_be_bytes(*word));
        let (Some(count), Some(weight), Some(0), Some(_)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(NotWhole.into());
        };
        let integer_digits = usize::from(weight).saturating_add(1);
        let digits: Vec<u16> = words.collect();
        let fits = usize::from(count) == digits.len()
            && digits.len() <= integer_digits
            && integer_digits <= MAX_DIGITS;
        if digits.is_empty() && odd.is_empty() {
            return Ok(Self(U256::ZERO));
        }
        if !fits || !odd.is_empty() {
            return Err(NotWhole.into());
        }
        let mut value = U256::ZERO;
        for digit in digits.into_iter().chain(std::iter::repeat(0)).take(integer_digits) {
            let next =
                value.checked_mul(U256::from(BASE)).and_then(|value| value.checked_add(U256::from(digit)));
            value = next.filter(|_| u64::from(digit) < BASE).ok_or(NotWhole)?;
        }
        Ok(Self(value))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(value: U256) -> U256 {
        let mut bytes = BytesMut::new();
        Numeric(value).to_sql(&Type::NUMERIC, &mut bytes).unwrap();
        Numeric::from_sql(&Type::NUMERIC, &bytes).unwrap().0
    }

    #[test]
    fn the_form_is_that_of_the_server() {
        // SELECT numeric_send(120000000::numeric): one digit 1 of weight 2, one digit 2000 of weight 1.
        let mut bytes = BytesMut::new();
        Numeric(U256::from(120_000_000_u64)).to_sql(&Type::NUMERIC, &mut bytes).unwrap();
        assert_eq!(&bytes[..], [0, 2, 0, 2, 0, 0, 0, 0, 0, 1, 0x07, 0xd0]);
    }

    proptest! {
        #[test]
        fn numbers_survive(limbs in any::<[u64; 4]>(), shift in 0_usize..256, ten in 0_u64..78) {
            let value = U256::from_limbs(limbs) >> shift;
            prop_assert_eq!(round(value), value);
            let power = U256::from(10).pow(U256::from(ten.min(77)));
            prop_assert_eq!(round(power), power);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Numeric::from_sql(&Type::NUMERIC, &bytes);
        }
    }

    #[test]
    fn extremes_survive() {
        for value in [U256::ZERO, U256::from(1), U256::from(9_999), U256::from(10_000), U256::MAX] {
            assert_eq!(round(value), value);
        }
    }
}
