//! `ext_getProof`, also called `rsk_getProof`: account proofs in the form of a draft of the reference node.
//!
//! The draft is pull request 3460 of the reference node. Its lists have the encoded trie nodes of RSKIP-107, from the leaf to
//! the root, and no proofs of absence: the list of a cell or account that does not exist is empty.

use alloc::{string::String, vec::Vec};

use alloy_primitives::{Bytes, hex};

use super::{
    method::{AT_BLOCK, HandlerResult, Method, contract_of, required, verified},
    params::Params,
    state,
};
use crate::engine::View;

pub(super) const METHODS: &[Method] = &[Method::read(
    "ext_getProof",
    &[contract_of("address"), required("storageKeys", "array of HASH"), AT_BLOCK],
    "account proof object",
    "As eth_getProof, with bare trie nodes from the leaf to the root, and none for what does not exist.",
    proof,
)
.costs(30)
.also(&["rsk_getProof"])];

fn proof(view: &dyn View, params: Params<'_>) -> HandlerResult {
    verified(&state::proof_with(view, params, leaf_first)?)
}

/// The nodes of a path, from the leaf to the root; none if the key does not exist.
fn leaf_first(nodes: &[Bytes], exists: bool) -> Vec<String> {
    if exists { nodes.iter().rev().map(hex::encode_prefixed).collect() } else { Vec::new() }
}
