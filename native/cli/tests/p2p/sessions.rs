//! Recorded sessions of the reference node: the same requests get the same responses, byte for byte.

use std::collections::BTreeMap;
use std::io::Read as _;

use alloy_primitives::hex;
use flate2::read::GzDecoder;
use rootlight_node::peer_server::respond;
use rootlight_p2p::message::{Message, Request};
use serde_json::Value;

use crate::chain::RecordedChain;

/// The requests of a recorded session with their responses, if they got one.
fn exchanges(name: &str) -> Vec<(u64, Request, Option<Vec<u8>>)> {
    let path = crate::common::shared(&format!("vectors/p2p/sessions/{name}.jsonl.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let (mut requests, mut responses) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(payload) = line["payload"].as_str().filter(|_| line["code"] == 0x18) else { continue };
        let payload = hex::decode(payload).unwrap();
        match (line["dir"].as_str().unwrap(), Message::decode(&payload).unwrap()) {
            ("out", Message::Request { id, request }) => requests.push((id, request)),
            ("in", Message::Response { id, .. }) => drop(responses.insert(id, payload.clone())),
            _ => {}
        }
    }
    requests.into_iter().map(|(id, request)| (id, request, responses.remove(&id))).collect()
}

#[test]
fn requests_get_the_responses_of_the_reference_node() {
    let Some(chain) = RecordedChain::read(5060) else { return };
    let mut counts = BTreeMap::<u8, (usize, usize)>::new();
    for (id, request, expected) in ["main", "chunks"].into_iter().flat_map(exchanges) {
        // The reference node reads such offsets as negative numbers and responds with odd ranges.
        if matches!(request, Request::Chunk(chunk) if chunk.from >= 1 << 63) {
            continue;
        }
        let response = respond(&*chain, id, request);
        let shown = |payload: &Option<Vec<u8>>| {
            payload.as_ref().map(|payload| hex::encode(&payload[..payload.len().min(60)]))
        };
        assert!(response == expected, "{request:?}: {:?}, recorded {:?}", shown(&response), shown(&expected));
        let (answered, silent) = counts.entry(request.kind()).or_default();
        *if expected.is_some() { answered } else { silent } += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [8, 9, 11, 14, 16, 20, 22, 24], "{counts:?}");
    assert!(counts.values().all(|(answered, _)| *answered > 0), "{counts:?}");
}
