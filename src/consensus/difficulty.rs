//! The difficulty that a block must have, computed from its parent; a rule of `consensus::rules`.

use super::network::{Network, RESET_GAP};
use super::rule::Rule;
use crate::types::number::div_rem;
use crate::types::{Header, U256};

/// The difficulty that `header` must have as a child of `parent`.
///
/// The difficulty rises if the block comes sooner after its parent than the wanted spacing, which grows with the number of uncles that the
/// header states, and falls if the block comes later.
#[must_use]
pub fn expected(header: &Header, parent: &Header, network: &Network) -> U256 {
    let rules = network.rules(header.number);
    let minimum = network.minimum_difficulty(rules);
    // Signed: a block may be earlier than its parent.
    let delta = i128::from(header.timestamp).saturating_sub(i128::from(parent.timestamp));
    if !rules.has(Rule::Rskip97) && delta >= i128::from(RESET_GAP) {
        return minimum;
    }
    let from_parent = parent.difficulty.value();
    let wanted = wanted_spacing(header.uncle_count, network.params.duration_limit);
    if delta < 0 || delta == i128::from(wanted) {
        return from_parent;
    }
    let divisor = if rules.has(Rule::Rskip156) {
        network.params.difficulty_divisor_rskip156
    } else {
        network.params.difficulty_divisor
    };
    let (step, _) = div_rem(from_parent, divisor);
    let moved = if i128::from(wanted) > delta {
        from_parent.saturating_add(step)
    } else {
        from_parent.saturating_sub(step)
    };
    moved.max(minimum)
}

/// The wanted seconds between a block and its parent, `(1 + uncles) * spacing`. The product wraps like Java's `int`, as in the reference
/// node.
fn wanted_spacing(uncle_count: u32, duration_limit: i32) -> i32 {
    (uncle_count as i32).wrapping_add(1).wrapping_mul(duration_limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::testing::header;

    fn difficulty(network: &Network, number: u64, gap: i64, parent: u64, uncles: u32) -> U256 {
        let mut p = header(network, number - 1);
        p.timestamp = 1_000_000;
        p.difficulty = parent.into();
        let mut h = header(network, number);
        h.timestamp = p.timestamp.checked_add_signed(gap).unwrap();
        h.uncle_count = uncles;
        expected(&h, &p, network)
    }

    #[test]
    fn difficulty_moves_by_one_part_in_400_from_rskip_156_on() {
        let net = Network::mainnet();
        let d = 8_000_000_000_000_000u64;
        for (number, step) in [(2_392_699, d / 50), (2_392_700, d / 400), (9_000_000, d / 400)] {
            assert_eq!(difficulty(&net, number, 13, d, 0), U256::from(d + step));
            assert_eq!(difficulty(&net, number, 14, d, 0), U256::from(d));
            assert_eq!(difficulty(&net, number, 15, d, 0), U256::from(d - step));
            assert_eq!(difficulty(&net, number, 41, d, 2), U256::from(d + step));
            assert_eq!(difficulty(&net, number, 42, d, 2), U256::from(d));
            assert_eq!(difficulty(&net, number, -5, d, 0), U256::from(d));
        }
    }

    #[test]
    fn mainnet_resets_after_ten_minutes_only_before_rskip_97() {
        let (net, d, minimum) = (Network::mainnet(), u64::MAX / 4, U256::from(7_000_000_000_000_000u64));
        assert_eq!(difficulty(&net, 728_999, 600, d, 0), minimum);
        assert_ne!(difficulty(&net, 728_999, 599, d, 0), minimum);
        assert_ne!(difficulty(&net, 729_000, 600, d, 0), minimum);
    }

    #[test]
    fn the_test_network_resets_after_ten_minutes_at_every_height() {
        let net = Network::testnet();
        assert_eq!(difficulty(&net, 2_581_799, 600, 1 << 40, 0), U256::from(131_072));
        assert_eq!(difficulty(&net, 2_581_800, 600, 1 << 40, 0), U256::from(550_000_000));
        assert_eq!(difficulty(&net, 9_000_000, 600, 1 << 40, 0), U256::from(550_000_000));
    }

    #[test]
    fn the_minimum_applies_only_when_the_difficulty_moves() {
        let net = Network::mainnet();
        assert_eq!(difficulty(&net, 9_000_000, 99, 1_000, 0), U256::from(7_000_000_000_000_000u64));
        assert_eq!(difficulty(&net, 9_000_000, 14, 1_000, 0), U256::from(1_000));
        assert_eq!(difficulty(&net, 9_000_000, -1, 1_000, 0), U256::from(1_000));
    }

    #[test]
    fn the_uncle_product_wraps_as_in_java() {
        // (1 + 153_391_689) * 14 = 2_147_483_660 wraps to a negative number, so any time difference is too
        // long.
        let (net, d) = (Network::mainnet(), 8_000_000_000_000_000u64);
        assert_eq!(wanted_spacing(153_391_689, 14), -2_147_483_636);
        assert_eq!(difficulty(&net, 9_000_000, 0, d, 153_391_689), U256::from(d - d / 400));
        assert_eq!(difficulty(&net, 9_000_000, 0, d, 153_391_688), U256::from(d + d / 400));
        assert_eq!(wanted_spacing(i32::MAX as u32, 14), 0);
        assert_eq!(difficulty(&net, 9_000_000, 0, d, i32::MAX as u32), U256::from(d));
    }
}
