//! Bitcoin's partial Merkle tree: how a Rootstock header proves, before RSKIP-92, that a coinbase is in a Bitcoin block.
//!
//! The header's field is `u32 LE transaction count | varint hash count | hashes (internal byte order) | varint flag byte count | flag
//! bytes`. Each node that is visited depth first has a flag, from the least significant bit of each byte on: whether a leaf at or below
//! the node is proven. A leaf, and a node whose flag is 0, is given as its hash; other nodes are computed from their children.

use thiserror::Error;

use super::bitcoin::{hash_pair, looks_like_transaction};
use crate::types::B256;

/// Most transactions of a Bitcoin block: 1,000,000 bytes, in transactions of 60 bytes, the smallest size.
pub const MAX_TRANSACTIONS: u32 = 1_000_000 / 60;
/// Height of a tree with [`MAX_TRANSACTIONS`] leaves; limits the depth of the recursion.
const MAX_HEIGHT: u32 = 15;

/// Why a partial tree is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PartialTreeError {
    /// The declared counts do not add up to the length of the field.
    #[error("{found} bytes do not fit the declared counts")]
    Size { found: usize },
    /// The declared number of transactions is zero.
    #[error("no transactions")]
    Empty,
    /// There are more transactions than a block can have.
    #[error("{found} transactions, at most {MAX_TRANSACTIONS}")]
    TooManyTransactions { found: u32 },
    /// There are more hashes than transactions.
    #[error("{hashes} hashes for {transactions} transactions")]
    TooManyHashes { hashes: usize, transactions: u32 },
    #[error("{bits} flag bits for {hashes} hashes")]
    TooFewBits { bits: usize, hashes: usize },
    /// The walk needs more flag bits than there are.
    #[error("flag bits run out")]
    BitsRunOut,
    /// The walk needs more hashes than there are.
    #[error("hashes run out")]
    HashesRunOut,
    /// Two children are equal. A block with repeated transactions has the same root as the block without them.
    #[error("equal left and right nodes")]
    EqualChildren,
    #[error("a node has the shape of a 64-byte transaction")]
    TransactionShape,
    /// The walk did not use all hashes or flag bytes.
    #[error("unused hashes or flag bytes")]
    Unused,
}

/// A parsed field, which borrows its hashes and flags.
struct PartialTree<'a> {
    transactions: u32,
    hashes: &'a [u8],
    flags: &'a [u8],
}

impl<'a> PartialTree<'a> {
    fn parse(field: &'a [u8]) -> Option<Self> {
        let (count, rest) = field.split_first_chunk::<4>()?;
        let (hash_count, rest) = varint(rest)?;
        let (hashes, rest) = rest.split_at_checked(hash_count.checked_mul(32)?)?;
        let (flag_count, flags) = varint(rest)?;
        (flags.len() == flag_count).then_some(Self {
            transactions: u32::from_le_bytes(*count),
            hashes,
            flags,
        })
    }

    /// Checks the numbers of transactions, hashes and flags against each other.
    fn check_counts(&self) -> Result<(), PartialTreeError> {
        let (transactions, hashes) = (self.transactions, self.hashes.len() / 32);
        let bits = self.flags.len().saturating_mul(8);
        match transactions {
            0 => return Err(PartialTreeError::Empty),
            found if found > MAX_TRANSACTIONS => return Err(PartialTreeError::TooManyTransactions { found }),
            _ => {}
        }
        if hashes > transactions as usize {
            return Err(PartialTreeError::TooManyHashes { hashes, transactions });
        }
        if bits < hashes {
            return Err(PartialTreeError::TooFewBits { bits, hashes });
        }
        Ok(())
    }

    /// Number of nodes at a height above the leaves: the transactions divided by `2^height`, rounded up.
    fn width(&self, height: u32) -> u64 {
        // The cap keeps the shifts within 64 bits; heights are at most `MAX_HEIGHT`.
        let height = height.min(32);
        u64::from(self.transactions).saturating_add((1u64 << height).saturating_sub(1)) >> height
    }
}

/// Reads Bitcoin's variable-length integer, which need not have its shortest form.
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (value, rest) = match first {
        0xfd => rest.split_first_chunk().map(|(n, r)| (u64::from(u16::from_le_bytes(*n)), r))?,
        0xfe => rest.split_first_chunk().map(|(n, r)| (u64::from(u32::from_le_bytes(*n)), r))?,
        0xff => rest.split_first_chunk().map(|(n, r)| (u64::from_le_bytes(*n), r))?,
        small => (u64::from(*small), rest),
    };
    Some((usize::try_from(value).ok()?, rest))
}

/// A depth-first walk that computes the root and looks for one leaf among the proven ones.
struct Walk<'a> {
    tree: &'a PartialTree<'a>,
    /// The leaf to look for.
    leaf: B256,
    /// Whether the leaf was found, with its flag set.
    found: bool,
    bits_used: usize,
    /// The hashes that are not used yet.
    hashes: core::slice::ChunksExact<'a, u8>,
}

impl Walk<'_> {
    fn next_bit(&mut self) -> Result<bool, PartialTreeError> {
        let byte = self.tree.flags.get(self.bits_used / 8).ok_or(PartialTreeError::BitsRunOut)?;
        let bit = byte >> (self.bits_used % 8) & 1 == 1;
        self.bits_used = self.bits_used.saturating_add(1);
        Ok(bit)
    }

    /// The hash of the node at a height above the leaves and a position from the left.
    fn node(&mut self, height: u32, position: u64) -> Result<B256, PartialTreeError> {
        let has_proven_leaf = self.next_bit()?;
        let Some(below) = height.checked_sub(1).filter(|_| has_proven_leaf) else {
            let hash = self.hashes.next().map(B256::from_slice).ok_or(PartialTreeError::HashesRunOut)?;
            self.found |= height == 0 && has_proven_leaf && hash == self.leaf;
            return Ok(hash);
        };
        // Positions are below the number of transactions, so the saturating operations never saturate.
        let first = position.saturating_mul(2);
        let second = first.saturating_add(1);
        let left = self.node(below, first)?;
        let right = if second < self.tree.width(below) {
            let right = self.node(below, second)?;
            if left == right {
                return Err(PartialTreeError::EqualChildren);
            }
            right
        } else {
            // Bitcoin pairs an odd last node with itself.
            left
        };
        if looks_like_transaction(&left, &right) {
            return Err(PartialTreeError::TransactionShape);
        }
        Ok(hash_pair(&left, &right))
    }
}

/// Computes the root of the tree, and whether `leaf` is among its proven leaves. Hashes are in internal byte order.
pub fn partial_tree_root(field: &[u8], leaf: B256) -> Result<(B256, bool), PartialTreeError> {
    let tree = PartialTree::parse(field).ok_or(PartialTreeError::Size { found: field.len() })?;
    tree.check_counts()?;
    let height = (0..MAX_HEIGHT).find(|height| tree.width(*height) <= 1).unwrap_or(MAX_HEIGHT);
    let mut walk =
        Walk { tree: &tree, leaf, found: false, bits_used: 0, hashes: tree.hashes.chunks_exact(32) };
    let root = walk.node(height, 0)?;
    if walk.bits_used.div_ceil(8) != tree.flags.len() || walk.hashes.next().is_some() {
        return Err(PartialTreeError::Unused);
    }
    Ok((root, walk.found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::bitcoin::{double_sha256, reversed};
    use proptest::prelude::*;

    fn leaves(n: u32) -> Vec<B256> {
        (0..n).map(|i| double_sha256(&i.to_le_bytes())).collect()
    }

    fn level(leaves: &[B256], height: u32, position: usize) -> B256 {
        let Some(below) = height.checked_sub(1) else { return leaves[position] };
        let left = level(leaves, below, 2 * position);
        let width = (leaves.len() + (1 << below) - 1) >> below;
        let right = if 2 * position + 1 < width { level(leaves, below, 2 * position + 1) } else { left };
        hash_pair(&left, &right)
    }

    /// Builds the tree that proves the leaves for which `wanted` holds.
    fn build(leaves: &[B256], wanted: &dyn Fn(usize) -> bool) -> (Vec<u8>, B256) {
        fn go(
            leaves: &[B256],
            wanted: &dyn Fn(usize) -> bool,
            height: u32,
            position: usize,
            out: &mut (Vec<bool>, Vec<B256>),
        ) {
            let span = position << height..leaves.len().min((position + 1) << height);
            let matched = span.into_iter().any(wanted);
            out.0.push(matched);
            if height == 0 || !matched {
                out.1.push(level(leaves, height, position));
                return;
            }
            go(leaves, wanted, height - 1, 2 * position, out);
            if 2 * position + 1 < (leaves.len() + (1 << (height - 1)) - 1) >> (height - 1) {
                go(leaves, wanted, height - 1, 2 * position + 1, out);
            }
        }
        let height = (0..).find(|h| (leaves.len() + (1 << h) - 1) >> h <= 1).unwrap();
        let mut out = (Vec::new(), Vec::new());
        go(leaves, wanted, height, 0, &mut out);
        let mut flags = vec![0u8; out.0.len().div_ceil(8)];
        out.0.iter().enumerate().for_each(|(i, bit)| flags[i / 8] |= u8::from(*bit) << (i % 8));
        (field(leaves.len() as u32, &out.1, &flags), level(leaves, height, 0))
    }

    fn field(count: u32, hashes: &[B256], flags: &[u8]) -> Vec<u8> {
        let mut out = count.to_le_bytes().to_vec();
        out.push(0xfd);
        out.extend((hashes.len() as u16).to_le_bytes());
        hashes.iter().for_each(|h| out.extend(h.as_slice()));
        out.push(0xfd);
        out.extend((flags.len() as u16).to_le_bytes());
        out.extend(flags);
        out
    }

    #[test]
    fn any_matched_leaf_is_proven() {
        for n in [1, 2, 3, 7, 16, 33, 500] {
            let leaves = leaves(n);
            for at in [0, n as usize / 2, n as usize - 1] {
                let (tree, root) = build(&leaves, &|i| i == at);
                assert_eq!(partial_tree_root(&tree, leaves[at]), Ok((root, true)));
                assert_eq!(partial_tree_root(&tree, B256::ZERO), Ok((root, false)));
            }
        }
    }

    #[test]
    fn a_leaf_that_is_only_a_sibling_is_not_proven() {
        let leaves = leaves(2);
        let (tree, root) = build(&leaves, &|i| i == 0);
        assert_eq!(partial_tree_root(&tree, leaves[1]), Ok((root, false)));
    }

    #[test]
    fn counts_are_checked() {
        use PartialTreeError::*;
        let one = [B256::repeat_byte(1)];
        let check = |bytes: &[u8]| partial_tree_root(bytes, B256::ZERO).unwrap_err();
        assert_eq!(check(&field(0, &[], &[0])), Empty);
        assert_eq!(check(&field(16_667, &one, &[0])), TooManyTransactions { found: 16_667 });
        assert_eq!(check(&field(1, &[one[0]; 2], &[0])), TooManyHashes { hashes: 2, transactions: 1 });
        assert_eq!(check(&field(9, &[one[0]; 9], &[0])), TooFewBits { bits: 8, hashes: 9 });
        let mut long = field(1, &one, &[1]);
        long.push(0);
        assert_eq!(check(&long), Size { found: long.len() });
        assert_eq!(check(&long[..long.len() - 2]), Size { found: long.len() - 2 });
        assert_eq!(check(&[]), Size { found: 0 });
    }

    #[test]
    fn the_walk_must_fit_exactly() {
        use PartialTreeError::*;
        let (a, b) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let check = |bytes: &[u8]| partial_tree_root(bytes, B256::ZERO).unwrap_err();
        assert_eq!(check(&field(2, &[a], &[3])), HashesRunOut);
        assert_eq!(check(&field(1, &[a], &[])), TooFewBits { bits: 0, hashes: 1 });
        assert_eq!(check(&field(2, &[], &[])), BitsRunOut);
        assert_eq!(check(&field(2, &[a, a], &[3])), EqualChildren);
        assert_eq!(check(&field(2, &[a, b], &[3, 0])), Unused);
        assert_eq!(check(&field(4, &[a, b], &[0])), Unused);
        assert!(partial_tree_root(&field(2, &[a, b], &[3]), a).is_ok());
    }

    #[test]
    fn a_node_shaped_like_a_transaction_is_refused() {
        let mut node = [0u8; 64];
        (node[4], node[46], node[47], node[55]) = (1, 1, 1, 4);
        let left = reversed(&B256::from_slice(&node[..32]));
        let right = reversed(&B256::from_slice(&node[32..]));
        let tree = field(2, &[left, right], &[3]);
        assert_eq!(partial_tree_root(&tree, left), Err(PartialTreeError::TransactionShape));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = partial_tree_root(&bytes, B256::ZERO);
        }

        #[test]
        fn any_flags_and_hashes_are_answered(
            count in 0u32..20_000,
            hashes in proptest::collection::vec(any::<[u8; 32]>(), 0..20),
            flags in proptest::collection::vec(any::<u8>(), 0..8),
        ) {
            let hashes: Vec<B256> = hashes.into_iter().map(B256::from).collect();
            let _ = partial_tree_root(&field(count, &hashes, &flags), B256::ZERO);
        }
    }
}
