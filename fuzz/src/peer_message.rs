//! Messages of peers: what decodes encodes to the same bytes, and can be split into its parts.

use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::{BlockParts, Body, Items, Message, Push, Response};

use crate::limit::with_limit;

/// The bytes as the payload of a message.
pub fn check(data: &[u8]) {
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

fn count(items: &Items<'_>) {
    assert_eq!(items.iter().count(), items.len());
}

fn check_response(response: &Response<'_>) {
    match response {
        Response::Headers(list) => {
            count(list);
            list.iter().for_each(check_header);
        }
        Response::Block(block) => check_block(block),
        Response::Body(body) => check_body(body),
        Response::SnapBlocks(blocks) => {
            assert_eq!(blocks.iter().count(), blocks.blocks.len());
            blocks.iter().for_each(|(block, _)| check_block(block));
        }
        _ => {}
    }
}

fn check_block(block: &[u8]) {
    if let Ok(parts) = BlockParts::split(block) {
        count(&parts.transactions);
        count(&parts.uncles);
        check_header(parts.header);
    }
}

fn check_header(rlp: &[u8]) {
    if let Ok(header) = RawHeader::split(rlp)
        && !header.needs_extension()
    {
        assert_eq!(header.full(None).as_deref(), Ok(rlp));
    }
}

fn check_body(body: &Body<'_>) {
    count(&body.transactions);
    count(&body.uncles);
    let _ = body.extension.map(|extension| extension.read_fields());
}
