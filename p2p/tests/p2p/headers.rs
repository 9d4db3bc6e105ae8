//! Headers of recorded sessions in their full form.

use std::collections::BTreeMap;

use rootlight::consensus::Network;
use rootlight::types::{B256, Header};
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::{Message, Request, Response};
use serde_json::Value;

use crate::gzipped::{hex_field, lines};

/// The payloads of the main session's messages, in order.
fn payloads() -> Option<Vec<Vec<u8>>> {
    let messages = |line: &&Value| line["code"] == 0x18 && line["payload"].is_string();
    let lines = lines("sessions/main.jsonl.gz")?;
    Some(lines.iter().filter(messages).map(|line| hex_field(line, "payload")).collect())
}

/// The full form of each header hashes to the hash that was asked for, or to the parent hash of the one before.
#[test]
fn compressed_headers_and_extensions_of_bodies_make_full_headers() {
    let Some(payloads) = payloads() else { return };
    let network = Network::regtest();
    let messages: Vec<Message<'_>> =
        payloads.iter().map(|payload| Message::decode(payload).unwrap()).collect();
    let mut requests = BTreeMap::new();
    let (mut bodies, mut runs) = (BTreeMap::new(), Vec::new());
    for message in &messages {
        match message {
            Message::Request { id, request } => drop(requests.insert(*id, *request)),
            Message::Response { id, response } => match (requests.get(id), response) {
                (Some(Request::Body(hash)), Response::Body(body)) => drop(bodies.insert(*hash, body)),
                (Some(Request::Headers { hash, .. }), Response::Headers(headers)) => {
                    runs.push((*hash, headers))
                }
                _ => {}
            },
            Message::Push(_) => {}
        }
    }
    let (mut plain, mut extended): (usize, usize) = (0, 0);
    for (first, headers) in runs {
        let mut hash: B256 = first;
        for rlp in headers.iter() {
            let header = RawHeader::split(rlp).unwrap();
            let body = bodies.get(&hash);
            let extension = body.and_then(|body| body.extension.as_ref());
            if !header.needs_extension() || extension.is_some() {
                let full = header.full(extension).unwrap();
                let read = Header::decode(&full, &|number| network.header_shape(number)).unwrap();
                assert_eq!(read.hash(), hash, "block {}", header.number());
                assert_eq!(
                    (read.number, read.parent_hash, read.state_root, read.uncles_hash),
                    (header.number(), header.parent_hash(), header.state_root(), header.uncles_hash())
                );
                *if header.needs_extension() { &mut extended } else { &mut plain } += 1;
            }
            hash = header.parent_hash();
        }
    }
    assert!(extended > 0, "{plain} headers without and {extended} with an extension");
}
