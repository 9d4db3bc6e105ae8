//! Parses the value of `--fork-block`, for clap.

use rootlight_node::fork::ForkBlock;

/// Parses `N` or `N:HASH`; a block with its hash is trusted.
pub(super) fn block(text: &str) -> Result<ForkBlock, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a block number"));
    match text.split_once(':') {
        None => number(text).map(ForkBlock::Number),
        Some((at, hash)) => {
            let hash = hash.parse().map_err(|_| format!("{hash:?} is not a block hash"))?;
            Ok(ForkBlock::Trusted(number(at)?, hash))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_number_or_a_number_with_its_hash() {
        let hash = alloy_primitives::B256::repeat_byte(7);
        assert_eq!(block("12"), Ok(ForkBlock::Number(12)));
        assert_eq!(block(&format!("12:{hash}")), Ok(ForkBlock::Trusted(12, hash)));
        for text in ["", "x", "12:", "12:0x12", ":0x"] {
            assert!(block(text).is_err(), "{text}");
        }
    }
}
