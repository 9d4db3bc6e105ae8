//! Bitcoin Merkle branches: how a Rootstock header proves, from RSKIP-92 on, that a coinbase is in a Bitcoin block.
//!
//! The header's field is the list of sibling hashes from the leaf up, 32 bytes each in display order. The coinbase is the
//! leftmost leaf, so every sibling is on the right and no index is needed.

use thiserror::Error;

use super::bitcoin::{hash_pair, looks_like_transaction, reversed};
use crate::types::B256;

/// Greatest length of a branch from RSKIP-180 on, in bytes: 30 levels.
pub const MAX_BRANCH_LEN: usize = 960;

/// Why a branch is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum BranchError {
    /// The branch is longer than RSKIP-180 allows.
    #[error("{found} bytes, at most {MAX_BRANCH_LEN} (RSKIP-180)")]
    TooLong { found: usize },
    /// The branch is not a whole number of hashes.
    #[error("{found} bytes, not a multiple of 32")]
    Length { found: usize },
    /// A node could be a 64-byte transaction.
    #[error("level {level} has the shape of a 64-byte transaction")]
    TransactionShape { level: usize },
}

/// Computes the root from a branch and the leftmost leaf `leaf`. Both hashes are in internal byte order.
///
/// `limited` says whether RSKIP-180 limits the length. If not, only the size of the message with the header bounds the work.
pub fn branch_root(branch: &[u8], leaf: B256, limited: bool) -> Result<B256, BranchError> {
    let found = branch.len();
    if limited && found > MAX_BRANCH_LEN {
        return Err(BranchError::TooLong { found });
    }
    let siblings = branch.chunks_exact(32);
    if !siblings.remainder().is_empty() {
        return Err(BranchError::Length { found });
    }
    let mut node = leaf;
    for (level, sibling) in siblings.enumerate() {
        let sibling = reversed(&B256::from_slice(sibling));
        if looks_like_transaction(&node, &sibling) {
            return Err(BranchError::TransactionShape { level });
        }
        node = hash_pair(&node, &sibling);
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::bitcoin::double_sha256;
    use proptest::prelude::*;

    #[test]
    fn an_empty_branch_is_the_leaf() {
        assert_eq!(branch_root(&[], B256::repeat_byte(3), true), Ok(B256::repeat_byte(3)));
    }

    #[test]
    fn siblings_are_read_in_display_order() {
        let (leaf, sibling) = (double_sha256(b"a"), double_sha256(b"b"));
        let root = branch_root(reversed(&sibling).as_slice(), leaf, true);
        assert_eq!(root, Ok(hash_pair(&leaf, &sibling)));
    }

    #[test]
    fn the_length_is_limited_as_in_rskip_180() {
        let branch = [0u8; 992];
        assert_eq!(branch_root(&branch, B256::ZERO, true), Err(BranchError::TooLong { found: 992 }));
        assert!(branch_root(&branch, B256::ZERO, false).is_ok());
        assert!(branch_root(&branch[..960], B256::ZERO, true).is_ok());
    }

    #[test]
    fn a_length_that_is_not_a_multiple_of_32_is_refused() {
        assert_eq!(branch_root(&[0; 33], B256::ZERO, true), Err(BranchError::Length { found: 33 }));
    }

    #[test]
    fn a_node_shaped_like_a_transaction_is_refused() {
        // The parts of a transaction at their offsets in both hashes in display order: the input count, the output count, an amount
        // of 1, and the length of the output script.
        let mut node = [0u8; 64];
        node[4] = 1;
        node[46] = 1;
        node[47] = 1;
        node[55] = 4;
        let leaf = reversed(&B256::from_slice(&node[..32]));
        assert_eq!(branch_root(&node[32..], leaf, true), Err(BranchError::TransactionShape { level: 0 }));
        node[55] = 3;
        assert!(branch_root(&node[32..], leaf, true).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(branch in proptest::collection::vec(any::<u8>(), 0..1100), limited: bool) {
            let _ = branch_root(&branch, B256::ZERO, limited);
        }
    }
}
