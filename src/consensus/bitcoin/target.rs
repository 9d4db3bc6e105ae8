//! Targets in compact form (`nBits`), the work of a block with a target, and the change of target after a period.

use crate::types::U256;

/// Blocks in a retarget period, after which the target changes.
pub(super) const PERIOD: u32 = 2_016;
/// Seconds that a period should take: two weeks.
const PERIOD_SECONDS: u32 = 14 * 24 * 60 * 60;
/// The greatest factor by which the target changes after a period, up or down.
pub(super) const CLAMP: u32 = 4;

/// The bit of the compact form that makes a number negative.
const SIGN: u32 = 0x0080_0000;
/// The bits of the mantissa in the compact form. The number is `mantissa * 256^(length - 3)`; the length is the highest byte.
const MANTISSA: u32 = 0x007f_ffff;
/// Length of a mantissa, in bytes.
const MANTISSA_LEN: u32 = 3;

/// The target of a compact form. `None` if it is zero, negative, or has more than 256 bits.
#[must_use]
pub fn target_of(bits: u32) -> Option<U256> {
    let (len, mantissa) = (bits >> 24, bits & MANTISSA);
    let target = match len.checked_sub(MANTISSA_LEN) {
        Some(bytes) => {
            let shift = bytes.saturating_mul(8) as usize;
            U256::from(mantissa).checked_shl(shift)?
        }
        None => U256::from(mantissa >> MANTISSA_LEN.saturating_sub(len).saturating_mul(8)),
    };
    let negative = bits & SIGN != 0;
    (!negative && !target.is_zero()).then_some(target)
}

/// The compact form of a target. The digits beyond the mantissa are cut off.
#[must_use]
pub fn bits_of(target: U256) -> u32 {
    let mut len = (target.bit_len() as u32).div_ceil(8);
    let shift = |bytes: u32| bytes.saturating_mul(8) as usize;
    let scaled = match len.checked_sub(MANTISSA_LEN) {
        Some(more) => target.wrapping_shr(shift(more)),
        None => target.wrapping_shl(shift(MANTISSA_LEN.saturating_sub(len))),
    };
    let mut mantissa = scaled.wrapping_to::<u32>();
    // The first bit of the mantissa is the sign, so a number that begins with it takes one byte more.
    if mantissa & SIGN != 0 {
        mantissa >>= 8;
        len = len.saturating_add(1);
    }
    mantissa | len << 24
}

/// Expected number of hashes until one is at most the target.
#[must_use]
pub fn work_of_target(target: U256) -> U256 {
    // 2^256 / (target + 1), which is (2^256 - 1 - target) / (target + 1) + 1 and so fits 256 bits. The largest target, which every hash
    // meets, gives 1.
    let work = target.checked_add(U256::ONE).and_then(|divisor| (!target).checked_div(divisor));
    work.unwrap_or_default().saturating_add(U256::ONE)
}

/// The target, in compact form, of the period after one with the target `bits`, whose first and last blocks have these times in
/// seconds. `limit` is the network's highest target, in compact form.
///
/// Bitcoin divides the time of the 2,015 intervals between these two blocks by the planned time of 2,016 intervals.
#[must_use]
pub(super) fn retarget(bits: u32, first_time: u32, last_time: u32, limit: u32) -> u32 {
    let lowest = i64::from(PERIOD_SECONDS / CLAMP);
    let highest = i64::from(PERIOD_SECONDS).saturating_mul(i64::from(CLAMP));
    let taken = i64::from(last_time).saturating_sub(i64::from(first_time)).clamp(lowest, highest);
    let (target, limit) = (target_of(bits).unwrap_or_default(), target_of(limit).unwrap_or_default());
    let (taken, planned) = (U256::from(taken.unsigned_abs()), U256::from(PERIOD_SECONDS));
    // target * taken / planned, without a product of more than 256 bits.
    let (whole, rest) = target.div_rem(planned);
    let rest = rest.saturating_mul(taken).wrapping_div(planned);
    bits_of(whole.saturating_mul(taken).saturating_add(rest).min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The highest target of Bitcoin's mainnet, in compact form.
    const MAINNET_LIMIT: u32 = 0x1d00_ffff;

    /// Examples of Bitcoin Core's tests of the compact form.
    #[test]
    fn compact_forms_mean_what_bitcoin_says() {
        for none in
            [0, 0x0012_3456, 0x0100_3456, 0x0200_0056, 0x0300_0000, 0x0400_0000, 0x0092_3456, 0x0180_3456]
        {
            assert_eq!(target_of(none), None, "{none:#x} is zero");
        }
        for negative in [0x01fe_dcba, 0x0492_3456, 0x2080_0001] {
            assert_eq!(target_of(negative), None, "{negative:#x} is negative");
        }
        for (bits, target, back) in [
            (0x0112_3456, 0x12u64, 0x0112_0000),
            (0x0212_3456, 0x1234, 0x0212_3400),
            (0x0312_3456, 0x12_3456, 0x0312_3456),
            (0x0412_3456, 0x1234_5600, 0x0412_3456),
            (0x0500_9234, 0x9234_0000, 0x0500_9234),
        ] {
            assert_eq!(target_of(bits), Some(U256::from(target)));
            assert_eq!(bits_of(U256::from(target)), back);
        }
        assert_eq!(target_of(0x2012_3456), Some(U256::from(0x12_3456) << 232));
        assert_eq!(bits_of(U256::from(0x80)), 0x0200_8000);
        assert_eq!(bits_of(U256::ZERO), 0);
    }

    #[test]
    fn a_target_of_more_than_256_bits_is_none() {
        for bits in [0xff12_3456, 0x2300_0001, 0x2200_0100, 0x2101_0000] {
            assert_eq!(target_of(bits), None, "{bits:#x}");
        }
        let widest = [(0x2200_00ff, 0xffu32, 248), (0x2100_ffff, 0xffff, 240), (0x207f_ffff, 0x7f_ffff, 232)];
        for (bits, mantissa, shift) in widest {
            assert_eq!(target_of(bits), Some(U256::from(mantissa) << shift), "{bits:#x}");
        }
    }

    /// Real changes of target, and Bitcoin Core's test of the longest period (its first time is not that of a block).
    #[test]
    fn retargets_are_those_of_bitcoin() {
        for (height, bits, first, last, next) in [
            (2_015, 0x1d00_ffff, 1_231_006_505, 1_233_061_996, 0x1d00_ffff),
            (32_255, 0x1d00_ffff, 1_261_130_161, 1_262_152_739, 0x1d00_d86a),
            (68_543, 0x1c05_a3f4, 1_279_008_237, 1_279_297_671, 0x1c01_68fd),
            (46_367, 0x1c38_7f6f, 1_263_163_443, 1_269_211_443, 0x1d00_e1fd),
        ] {
            assert_eq!(retarget(bits, first, last, MAINNET_LIMIT), next, "after block {height}");
        }
    }

    #[test]
    fn a_period_that_ends_before_it_starts_counts_as_a_quarter() {
        let quarter = retarget(0x1c05_a3f4, 1_000_000_000, 1_000_000_000 + PERIOD_SECONDS / 4, MAINNET_LIMIT);
        for last in [0, 999_999_999, 1_000_000_000, 1_000_000_001] {
            assert_eq!(retarget(0x1c05_a3f4, 1_000_000_000, last, MAINNET_LIMIT), quarter);
        }
        assert_eq!(retarget(0x1c05_a3f4, u32::MAX, 0, MAINNET_LIMIT), quarter);
    }

    #[test]
    fn work_of_known_targets() {
        let work = |bits| work_of_target(target_of(bits).unwrap());
        assert_eq!(work(0x207f_ffff), U256::from(2));
        assert_eq!(work(MAINNET_LIMIT), U256::from(0x1_0001_0001u64));
        assert_eq!(work_of_target(U256::MAX), U256::ONE);
        assert_eq!(work_of_target(U256::ZERO), U256::MAX, "2^256 does not fit");
    }

    /// Numbers as bytes, the least significant first, with the operations of primary school: nothing here is shared with the code
    /// above.
    mod model {
        /// Digits of a number: 256 bits, and 128 more for products.
        pub(super) const LEN: usize = 48;
        pub(super) type Number = [u8; LEN];

        pub(super) fn of_bits(bits: u32) -> Number {
            let (len, digits) = ((bits >> 24) as usize, bits.to_be_bytes());
            let mut number = [0; LEN];
            for (position, digit) in digits[1..].iter().enumerate() {
                if let Some(at) = len.checked_sub(position + 1) {
                    number[at] = *digit;
                }
            }
            number
        }

        pub(super) fn times(number: &Number, factor: u64) -> Number {
            let (mut out, mut carry) = ([0; LEN], 0u64);
            for (to, digit) in out.iter_mut().zip(number) {
                let sum = u64::from(*digit) * factor + carry;
                (*to, carry) = (sum as u8, sum >> 8);
            }
            assert_eq!(carry, 0);
            out
        }

        pub(super) fn divided(number: &Number, divisor: u64) -> Number {
            let (mut out, mut rest) = ([0; LEN], 0u64);
            for (to, digit) in out.iter_mut().zip(number).rev() {
                let sum = rest << 8 | u64::from(*digit);
                (*to, rest) = ((sum / divisor) as u8, sum % divisor);
            }
            out
        }

        pub(super) fn above(a: &Number, b: &Number) -> bool {
            a.iter().rev().gt(b.iter().rev())
        }

        pub(super) fn bits(number: &Number) -> u32 {
            let mut len = LEN - number.iter().rev().take_while(|digit| **digit == 0).count();
            if len > 0 && number[len - 1] >= 0x80 {
                len += 1;
            }
            let digit = |position: usize| len.checked_sub(position).map_or(0, |at| u32::from(number[at]));
            (len as u32) << 24 | digit(1) << 16 | digit(2) << 8 | digit(3)
        }
    }

    /// The compact forms of targets up to the limit.
    fn honest_bits() -> impl Strategy<Value = u32> {
        (4u32..=0x1d, 0x8000u32..=0x7f_ffff).prop_map(|(len, mantissa)| {
            let bits = len << 24 | mantissa;
            if bits > MAINNET_LIMIT { MAINNET_LIMIT } else { bits }
        })
    }

    proptest! {
        #[test]
        fn a_retarget_equals_that_of_long_arithmetic(bits in honest_bits(), first: u32, taken in -9_000_000i64..9_000_000) {
            let last = u32::try_from(i64::from(first) + taken).unwrap_or(first);
            let seconds = (i64::from(last) - i64::from(first)).clamp(302_400, 4_838_400);
            let product = model::times(&model::of_bits(bits), seconds as u64);
            let mut next = model::divided(&product, 1_209_600);
            let limit = model::of_bits(MAINNET_LIMIT);
            if model::above(&next, &limit) {
                next = limit;
            }
            prop_assert_eq!(retarget(bits, first, last, MAINNET_LIMIT), model::bits(&next));
        }

        #[test]
        fn compact_forms_cut_off_digits_only(bytes: [u8; 32], shift in 0usize..256) {
            let number = U256::from_be_bytes(bytes) >> shift;
            let mut digits = [0; model::LEN];
            digits[..32].copy_from_slice(&number.to_le_bytes::<32>());
            prop_assert_eq!(bits_of(number), model::bits(&digits));
            let read = target_of(bits_of(number)).unwrap_or_default();
            prop_assert!(read <= number && number - read <= number >> 15);
            prop_assert_eq!(bits_of(read), bits_of(number), "a second time changes nothing");
        }

        #[test]
        fn any_bits_are_a_target_or_none(bits: u32) {
            let mantissa = bits & MANTISSA;
            let digits = model::of_bits(with_capped_length(bits, mantissa));
            let fits = digits[32..].iter().all(|digit| *digit == 0) && bits >> 24 <= model::LEN as u32;
            let number = U256::from_le_slice(&digits[..32]);
            let expected = (bits & SIGN == 0 && fits && !number.is_zero()).then_some(number);
            prop_assert_eq!(target_of(bits), expected);
        }
    }

    /// A compact form whose length fits the model's numbers.
    fn with_capped_length(bits: u32, mantissa: u32) -> u32 {
        (bits >> 24).min(model::LEN as u32) << 24 | mantissa
    }
}
