//! Words that client libraries look for in the reasons to refuse a transaction.
//!
//! The reference node has words of its own. Libraries know those of Ethereum's nodes, which follow here, so that the same
//! error is found by both. Refusals of upstreams get them too.

use alloc::{format, string::String};

/// A part of the reference node's text, and the words for the same reason in Ethereum's nodes.
const WORDS: &[(&str, &str)] = &[
    ("same hash already exists", "already known"),
    ("not enough to bump", "replacement transaction underpriced"),
    ("basic cost is above", "intrinsic gas too low"),
    ("higher than the block's gas limit", "exceeds block gas limit: gas limit reached"),
    ("lower than block's minimum", "transaction underpriced"),
    ("sender account doesn't exist", "insufficient funds"),
];

/// The text with the words that libraries look for, if it has one of the reference node's reasons.
pub(super) fn with_known_words(text: String) -> String {
    match WORDS.iter().find(|(part, words)| text.contains(*part) && !text.contains(*words)) {
        Some((_, words)) => format!("{text}: {words}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_of_the_reference_node_get_more_words() {
        let known = with_known_words("gas price not enough to bump transaction".into());
        assert_eq!(known, "gas price not enough to bump transaction: replacement transaction underpriced");
        assert_eq!(with_known_words(known.clone()), known);
        assert_eq!(with_known_words("nonce too low".into()), "nonce too low");
    }

    #[cfg(feature = "dev")]
    #[test]
    fn each_reason_is_one_of_the_pool() {
        use crate::dev::pool::PoolError;
        use alloc::string::ToString;
        use alloy_primitives::U256;
        let errors = [
            (PoolError::KnownPending, "already known"),
            (PoolError::KnownQueued, "already known"),
            (PoolError::Bump, "replacement transaction underpriced"),
            (PoolError::BasicCost, "intrinsic gas too low"),
            (PoolError::GasLimit { gas: U256::from(2), limit: 1 }, "exceeds block gas limit"),
            (PoolError::MinimumGasPrice, "transaction underpriced"),
            (PoolError::NoAccount, "insufficient funds"),
        ];
        for (error, words) in errors {
            let text = with_known_words(error.to_string());
            assert!(text.starts_with(&error.to_string()) && text.contains(words), "{text}");
        }
    }
}
