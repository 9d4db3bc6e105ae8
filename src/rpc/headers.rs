//! `ext_` methods of the reference node, also called `rsk_`: raw headers, raw receipts and the trie nodes of receipts.

use alloc::{string::String, vec::Vec};

use alloy_primitives::{Bytes, hex};

use super::{
    blocks::{by_block_param, by_hash},
    method::{BLOCK_HASH, HandlerResult, Method, THE_BLOCK, absent, required, verified},
    params::Params,
    render,
};
use crate::{
    engine::{BlockHeader, TransactionLocation, View},
    trie::{Bits, Child, NodeStep, Trie, index_key, ordered_trie, parse_node},
    types::{HeaderForm, Receipt},
};

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "ext_getRawBlockHeaderByHash",
        &[BLOCK_HASH],
        "DATA or null",
        "RLP of a header as its hash covers it; from RSKIP-92 on without Merkle proof and coinbase.",
        |view, params| raw(by_hash(view, params)?),
    )
    .relayed()
    .costs(5)
    .also(&["rsk_getRawBlockHeaderByHash"]),
    Method::read(
        "ext_getRawBlockHeaderByNumber",
        &[THE_BLOCK],
        "DATA or null",
        "RLP of a header of the canonical chain.",
        |view, params| raw(by_block_param(view, params)?),
    )
    .relayed()
    .costs(5)
    .also(&["rsk_getRawBlockHeaderByNumber"]),
    Method::read(
        "ext_getRawTransactionReceiptByHash",
        &[required("transactionHash", "HASH")],
        "DATA or null",
        "RLP of a receipt.",
        raw_receipt,
    )
    .relayed()
    .costs(20)
    .also(&["rsk_getRawTransactionReceiptByHash"]),
    Method::read(
        "ext_getTransactionReceiptNodesByHash",
        &[BLOCK_HASH, required("transactionHash", "HASH")],
        "array of DATA or null",
        "Trie nodes from the receipt up to the receipts root, in the reference node's order.",
        receipt_nodes,
    )
    .relayed()
    .costs(20)
    .also(&["rsk_getTransactionReceiptNodesByHash"]),
];

/// A header in RLP.
fn raw(header: Option<BlockHeader>) -> HandlerResult {
    match header {
        Some(header) => verified(&hex::encode_prefixed(header.encode(HeaderForm::Raw))),
        None => absent(),
    }
}

fn raw_receipt(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let hash = params.hash(0, "transaction hash")?;
    // `None`: the caller gives the hash only, not the transaction.
    match view.locate(hash, None)? {
        TransactionLocation::Unknown | TransactionLocation::Pending(_) => absent(),
        TransactionLocation::Mined(header, index) => {
            let (_, receipts) = render::body_and_receipts(view, &header)?;
            let raw = receipts.receipts().get(index).map(|receipt| hex::encode_prefixed(receipt.encode()));
            verified(&raw)
        }
    }
}

fn receipt_nodes(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let transaction = params.hash(1, "transaction hash")?;
    let Some(header) = by_hash(view, params)? else { return absent() };
    let (body, receipts) = render::body_and_receipts(view, &header)?;
    // The transactions root proves that the block does not have the transaction.
    let Some(index) = render::position(&body, &transaction) else { return verified(&()) };
    let raw: Vec<Vec<u8>> = receipts.receipts().iter().map(Receipt::encode).collect();
    let nodes = path_nodes(&ordered_trie(&raw), &index_key(index as u64));
    let nodes: Vec<String> = nodes.iter().rev().map(hex::encode_prefixed).collect();
    verified(&nodes)
}

/// The nodes on the path of a key, root first. A leaf that is embedded in its parent is repeated as a node of its
/// own, as in the reference node's answers.
fn path_nodes(trie: &Trie, key: &[u8]) -> Vec<Bytes> {
    let mut nodes = trie.proof(key);
    let mut rest = Bits::of_key(key);
    let mut embedded = None;
    for node in &nodes {
        // `proof` returns the nodes that have a hash of their own. The last of them may have the leaf embedded.
        match parse_node(node).map(|node| node.step(rest)) {
            Ok(NodeStep::Goes(Child::Hash(_), below)) => rest = below,
            Ok(NodeStep::Goes(Child::Embedded(bytes), _)) => embedded = Some(Bytes::copy_from_slice(bytes)),
            // The key, which the trie has, ends at this node.
            _ => {}
        }
    }
    nodes.extend(embedded);
    nodes
}
