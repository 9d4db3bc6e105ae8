//! Messages of peers: what decodes encodes to the same bytes, and can be compared with any request.

use std::sync::OnceLock;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight_p2p::check::{self, PeerHeader};
use rootlight_p2p::message::{BlockParts, Body, Items, Message, Push, Response};

use crate::limit::with_limit;

/// The bytes as the payload of a message.
pub fn check(data: &[u8]) {
    // A network is built once; its tables do not count towards the input.
    network();
    with_limit(data.len(), || {
        let Ok(message) = Message::decode(data) else { return };
        assert_eq!(message.encode(), data);
        match &message {
            Message::Push(Push::Transactions(items)) => count(items),
            Message::Push(Push::Block(block)) => check_block(block),
            Message::Response { response, .. } => check_response(response),
            _ => {}
        }
    });
}

fn network() -> &'static Network {
    static NETWORK: OnceLock<Network> = OnceLock::new();
    NETWORK.get_or_init(Network::regtest)
}

fn count(items: &Items<'_>) {
    assert_eq!(items.iter().count(), items.len());
}

fn check_response(response: &Response<'_>) {
    match response {
        Response::Headers(list) => {
            count(list);
            let first = list.iter().next().and_then(|rlp| PeerHeader::decode(rlp, network()).ok());
            let hash = first.as_ref().map_or(B256::ZERO, PeerHeader::hash);
            if let Ok(headers) = check::headers(&hash, list.len() as u64, list, network()) {
                assert_eq!(headers.len(), list.len());
                let _ = headers.first().map(|header| header.check_work(network()));
            }
        }
        Response::Block(block) => check_block(block),
        Response::Body(body) => check_body(body),
        Response::Skeleton(blocks) => {
            let start = blocks.first().map_or(0, |block| block.number);
            if check::skeleton(start, blocks).is_ok() {
                assert!(blocks.is_sorted_by_key(|block| block.number));
            }
        }
        Response::SnapBlocks(blocks) => {
            assert_eq!(blocks.iter().count(), blocks.blocks.len());
            blocks.iter().for_each(|(block, _)| check_block(block));
            let _ = check::snap_blocks(blocks.blocks.len() as u64 + 1, blocks, network());
        }
        _ => {}
    }
}

fn check_block(block: &[u8]) {
    if let Ok(parts) = BlockParts::split(block) {
        count(&parts.transactions);
        count(&parts.uncles);
    }
    assert!(check::block(&B256::ZERO, block, network()).is_err());
}

fn check_body(body: &Body<'_>) {
    count(&body.transactions);
    count(&body.uncles);
    let _ = body.extension.map(|extension| extension.read_fields());
}
