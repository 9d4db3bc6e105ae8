//! Receipt proofs in the form that full nodes return (`rsk_getTransactionReceiptNodesByHash`): trie nodes leaf first,
//! embedded ones listed too, the receipt itself separate. The trie nodes have the RSKIP-107 format whatever the
//! block's age, so receipts under a root from before RSKIP-126 cannot be proven this way.

use super::bits::BitPath;
use super::node::{Child, Node, parse_node};
use super::ordered::index_key;
use super::proof::{Leaf, ProofNodes, check_long_value, verify_path};
use super::proof_error::ProofError;
use alloy_primitives::{B256, keccak256};
use alloy_rlp::Decodable;
use thiserror::Error;

/// Why a receipt proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ReceiptProofError {
    /// The nodes do not verify, or the receipt is not the one that the leaf commits to.
    #[error(transparent)]
    Proof(#[from] ProofError),
    #[error("no receipt {0} under the root")]
    Absent(u64),
    #[error("the leaf holds another value than the receipt")]
    OtherValue,
    #[error("node {index} is not a child of the next one towards the root")]
    Unlinked { index: usize },
    /// The path from the root to the leaf is not a whole number of bytes.
    #[error("the key has {bits} bits, not whole bytes")]
    KeyNotWholeBytes { bits: usize },
    #[error("the key is not the RLP of an index")]
    KeyNotAnIndex,
}

/// Checks that `receipt` (its RLP) has the index `index` under a receipts root.
pub fn prove_receipt(
    root: B256,
    index: u64,
    nodes: &[impl AsRef<[u8]>],
    receipt: &[u8],
) -> Result<(), ReceiptProofError> {
    match verify_path(root, &index_key(index), nodes)? {
        Leaf::Absent => Err(ReceiptProofError::Absent(index)),
        Leaf::Inline(value) if value == receipt => Ok(()),
        Leaf::Inline(_) => Err(ReceiptProofError::OtherValue),
        Leaf::Long { hash, len } => Ok(check_long_value(receipt, hash, len)?),
    }
}

/// Proves `receipt` without knowing its index and returns the index, which follows from the path from the
/// root to the leaf. The nodes must include the leaf, even if it is embedded. If the same receipt has several
/// indices under equal nodes, one of them is returned.
pub fn receipt_index(
    root: B256,
    nodes: &[impl AsRef<[u8]>],
    receipt: &[u8],
) -> Result<u64, ReceiptProofError> {
    let mut list = ProofNodes::new(nodes, &root)?;
    let (_, top) = list.next().transpose()?.ok_or(ProofError::Missing { hash: root })?;
    let mut node = parse_node(top).map_err(ProofError::from)?;
    // The path from the root to the leaf, which is the key of the receipt.
    let mut path = BitPath::of(node.path);
    while let Some((index, below)) = list.next().transpose()? {
        path.push(side_of(&node, below).ok_or(ReceiptProofError::Unlinked { index })?);
        node = parse_node(below).map_err(ProofError::from)?;
        path.extend(node.path);
    }
    let bits = path.bits().len();
    let mut key = path.whole_bytes().ok_or(ReceiptProofError::KeyNotWholeBytes { bits })?;
    let index = u64::decode(&mut key).map_err(|_| ReceiptProofError::KeyNotAnIndex)?;
    if !key.is_empty() {
        return Err(ReceiptProofError::KeyNotAnIndex);
    }
    prove_receipt(root, index, nodes, receipt).map(|()| index)
}

/// The side of the child of `node` that has these bytes: `true` is right. `None` if it is not a child.
fn side_of(node: &Node<'_>, bytes: &[u8]) -> Option<bool> {
    let hash = keccak256(bytes);
    let is = |child: Option<Child<'_>>| match child {
        Some(Child::Hash(expected)) => *expected == hash,
        Some(Child::Embedded(inside)) => inside == bytes,
        None => false,
    };
    match (is(node.left), is(node.right)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}
