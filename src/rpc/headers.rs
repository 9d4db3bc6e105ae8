//! `ext_` methods: raw headers, raw receipts and the trie nodes of receipts.

use alloc::{string::String, vec::Vec};

use alloy_primitives::{Bytes, hex};

use super::{
    blocks::{by_hash, by_selector},
    method::{
        BLOCK_HASH, Done, Failure, Handler, Method, Pages, THE_BLOCK, absent, required, told, verified,
    },
    params::Params,
    render,
};
use crate::{
    engine::{BlockHeader, Level, TransactionPlace, View},
    trie::{Bits, Child, NodeStep, Trie, index_key, ordered_trie, parse_node},
    types::{HeaderForm, Receipt},
};

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "ext_getRawBlockHeaderByHash",
        aliases: &["rsk_getRawBlockHeaderByHash"],
        params: &[BLOCK_HASH],
        result: told("DATA or null"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told(
            "RLP of a header as its hash covers it; from RSKIP-92 on without Merkle proof and coinbase.",
        ),
        handler: Handler::Read(|view, params| raw(by_hash(view, params)?)),
    },
    Method {
        name: "ext_getRawBlockHeaderByNumber",
        aliases: &["rsk_getRawBlockHeaderByNumber"],
        params: &[THE_BLOCK],
        result: told("DATA or null"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told("RLP of a header of the canonical chain."),
        handler: Handler::Read(|view, params| raw(by_selector(view, params)?)),
    },
    Method {
        name: "ext_getRawTransactionReceiptByHash",
        aliases: &["rsk_getRawTransactionReceiptByHash"],
        params: &[required("transactionHash", "HASH")],
        result: told("DATA or null"),
        level: Level::Verified,
        cost: 20,
        pages: Pages::Any,
        doc: told("RLP of a receipt."),
        handler: Handler::Read(raw_receipt),
    },
    Method {
        name: "ext_getTransactionReceiptNodesByHash",
        aliases: &["rsk_getTransactionReceiptNodesByHash"],
        params: &[BLOCK_HASH, required("transactionHash", "HASH")],
        result: told("array of DATA or null"),
        level: Level::Verified,
        cost: 20,
        pages: Pages::Any,
        doc: told("Trie nodes from the receipt up to the receipts root, in the reference node's order."),
        handler: Handler::Read(receipt_nodes),
    },
];

fn raw(header: Option<BlockHeader>) -> Result<Done, Failure> {
    match header {
        Some(header) => verified(&hex::encode_prefixed(header.encode(HeaderForm::Raw))),
        None => absent(),
    }
}

fn raw_receipt(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let hash = params.hash(0, "transaction hash")?;
    match view.locate(hash, None)? {
        TransactionPlace::Unknown | TransactionPlace::Pending(_) => absent(),
        TransactionPlace::Mined(header, index) => {
            let (_, receipts) = render::body_and_receipts(view, &header)?;
            let raw = receipts.receipts().get(index).map(|receipt| hex::encode_prefixed(receipt.encode()));
            verified(&raw)
        }
    }
}

fn receipt_nodes(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let transaction = params.hash(1, "transaction hash")?;
    let Some(header) = by_hash(view, params)? else { return absent() };
    let (body, receipts) = render::body_and_receipts(view, &header)?;
    let Some(index) = render::position(&body, &transaction) else { return verified(&()) };
    let raw: Vec<Vec<u8>> = receipts.receipts().iter().map(Receipt::encode).collect();
    let nodes = way(&ordered_trie(&raw), &index_key(index as u64));
    let nodes: Vec<String> = nodes.iter().rev().map(hex::encode_prefixed).collect();
    verified(&nodes)
}

/// The nodes on the path of a key, root first. A leaf that is embedded in its parent is repeated as a node of its
/// own, as in the reference node's answers.
fn way(trie: &Trie, key: &[u8]) -> Vec<Bytes> {
    let mut nodes = trie.proof(key);
    let mut rest = Bits::of_key(key);
    let mut embedded = None;
    for node in &nodes {
        match parse_node(node).map(|node| node.step(rest)) {
            Ok(NodeStep::Goes(Child::Hash(_), below)) => rest = below,
            Ok(NodeStep::Goes(Child::Embedded(bytes), _)) => embedded = Some(Bytes::copy_from_slice(bytes)),
            _ => {}
        }
    }
    nodes.extend(embedded);
    nodes
}
