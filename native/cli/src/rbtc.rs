//! Amounts of RBTC as text.

use alloy_primitives::U256;
use alloy_primitives::utils::format_ether;

/// An amount of wei in RBTC, Rootstock's coin of 10^18 wei, without zeros at the end: `1.5`, not `1.500000000000000000`.
pub(super) fn in_rbtc(wei: U256) -> String {
    let text = format_ether(wei);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_that_say_nothing_are_left_out() {
        let rbtc = |text: &str| in_rbtc(rootlight::dev::rbtc(text).unwrap());
        for text in ["10000", "1.5", "0", "0.000000000000000001", "1000000000000", "100.01"] {
            assert_eq!(rbtc(text), text);
        }
    }
}
