//! Recorded chunks are proven, and made again byte for byte.

use std::collections::BTreeMap;

use alloy_primitives::{B256, keccak256};
use rootlight_p2p::chunk::limits::SPAN;
use rootlight_p2p::chunk::{ChunkError, ProvenChunk, prove, serve};
use rootlight_p2p::message::{Message, Request, Response};

use crate::gzipped::{hex_field, lines};
use crate::state::{NodeMap, nodes, states};

/// The recorded request and its response, if there was one.
struct ChunkExchange {
    block: u64,
    from: u64,
    response: Option<(Vec<u8>, u64, bool)>,
}

fn exchanges() -> Vec<ChunkExchange> {
    let (mut asked, mut answered) = (Vec::new(), BTreeMap::new());
    for line in lines("sessions/chunks.jsonl.gz").into_iter().flatten().filter(|line| line["code"] == 0x18) {
        let payload = hex_field(&line, "payload");
        match Message::decode(&payload).unwrap() {
            Message::Request { id, request: Request::Chunk(request) } => asked.push((id, request)),
            Message::Response { id, response: Response::Chunk(chunk) } => {
                answered.insert(id, (chunk.bytes.to_vec(), chunk.to, chunk.complete));
            }
            _ => {}
        }
    }
    let exchange = |(id, request): (u64, rootlight_p2p::message::ChunkRequest)| ChunkExchange {
        block: request.block,
        from: request.from,
        response: answered.remove(&id),
    };
    asked.into_iter().map(exchange).collect()
}

/// Every piece of the chunk has the hash that it is listed under, and is a node or value of the state.
fn check_pieces(proven: &ProvenChunk<'_>, nodes: &NodeMap) {
    assert!(!proven.is_empty() && proven.iter().count() == proven.len());
    for (hash, bytes) in proven.iter() {
        assert_eq!(keccak256(bytes), *hash);
        assert!(nodes.get(hash).is_some_and(|node| node == bytes));
    }
}

#[test]
fn recorded_chunks_are_proven_and_made_again() {
    let Some(nodes) = nodes() else { return };
    let states: BTreeMap<u64, (B256, u64)> =
        states().into_iter().map(|state| (state.block, (state.root, state.size))).collect();
    let (mut proven_chunks, mut silent) = (0, 0);
    for ChunkExchange { block, from, response } in exchanges() {
        let Some((root, size)) = states.get(&block) else {
            assert!(response.is_none());
            continue;
        };
        // Offsets from 2^63 on are read as negative by the recorded node.
        if from > i64::MAX as u64 {
            continue;
        }
        let made = serve::chunk(&nodes, root, from);
        let Some((bytes, to, complete)) = response else {
            assert!(from > *size && made.is_none());
            silent += 1;
            continue;
        };
        let made = made.unwrap_or_else(|| panic!("block {block}, from {from}: no chunk"));
        assert!(made.bytes == bytes, "block {block}, from {from}: another chunk");
        assert_eq!((made.to, made.complete), (to, complete));
        let proven = prove(&bytes, root, from).unwrap_or_else(|error| panic!("{block}, {from}: {error}"));
        assert_eq!(proven.trie_size(), *size);
        check_pieces(&proven, &nodes);
        proven_chunks += 1;
    }
    assert_eq!((proven_chunks, silent), (47, 1));
}

#[test]
fn every_chunk_of_every_state_is_proven_and_together_they_are_the_state() {
    let Some(nodes) = nodes() else { return };
    let mut count = 0;
    for state in states() {
        assert_eq!(serve::trie_size(&nodes, &state.root), Some(state.size));
        let mut found = NodeMap::new();
        for from in (0..=state.size).step_by(SPAN as usize) {
            let served = serve::chunk(&nodes, &state.root, from).unwrap();
            let proven = prove(&served.bytes, &state.root, from).unwrap();
            check_pieces(&proven, &nodes);
            found.extend(proven.iter().map(|(hash, bytes)| (*hash, bytes.to_vec().into())));
            assert_eq!(served.complete, from + SPAN > state.size);
            count += 1;
        }
        let mut open = vec![state.root];
        while let Some(hash) = open.pop() {
            let node = found.get(&hash).unwrap_or_else(|| panic!("{hash} is in no chunk"));
            let node = rootlight::trie::parse_node(node).unwrap();
            for child in [node.left, node.right].into_iter().flatten() {
                if let rootlight::trie::Child::Hash(hash) = child {
                    open.push(*hash);
                }
            }
        }
    }
    println!("{count} chunks");
}

/// Offsets next to the borders of nodes, and others; each chunk is proven for its own offset only.
#[test]
fn chunks_from_any_offset_are_proven() {
    let Some(nodes) = nodes() else { return };
    for state in states() {
        let step = (state.size / 120).max(1) as usize;
        for from in (0..=state.size).step_by(step).chain([state.size - 1, state.size]) {
            let served = serve::chunk(&nodes, &state.root, from).unwrap();
            prove(&served.bytes, &state.root, from).unwrap_or_else(|error| panic!("{from}: {error}"));
            let far = (from + 200_000) % state.size;
            if far.abs_diff(from) > 62_000 {
                assert!(prove(&served.bytes, &state.root, far).is_err());
            }
        }
        assert!(serve::chunk(&nodes, &state.root, state.size + 1).is_none());
    }
}

#[test]
fn hostile_chunks_are_refused() {
    let (mut accepted, mut refused) = (0, 0);
    for case in lines("hostile/chunks.jsonl.gz").into_iter().flatten() {
        let name = case["case"].as_str().unwrap();
        let root = B256::from_slice(&hex_field(&case, "root"));
        let chunk = hex_field(&case, "chunk");
        let result = prove(&chunk, &root, case["from"].as_u64().unwrap());
        // The leaf that was smuggled in is never among the pieces.
        for (_, bytes) in result.iter().flat_map(ProvenChunk::iter) {
            assert!(!bytes.ends_with(&[1, 2, 3]), "{name}");
        }
        match case["verdict"] == "accept" {
            true => {
                result.unwrap_or_else(|error| panic!("{name}: {error}"));
                // A server on another branch gives chunks of another state.
                let other = prove(&chunk, &B256::ZERO, case["from"].as_u64().unwrap()).unwrap_err();
                assert!(
                    matches!(other, ChunkError::Root { .. }) && !other.fits_no_state(),
                    "{name}: {other}"
                );
                accepted += 1;
            }
            false => {
                println!("{name}: {:?}", result.as_ref().err().map(ToString::to_string));
                assert!(result.is_err(), "{name}");
                refused += 1;
            }
        }
    }
    if crate::vectors::folder().is_some() {
        assert_eq!((accepted, refused), (6, 57));
    }
}

/// Every byte of an honest chunk, changed: it is refused, or shows nothing but nodes and values of the state.
#[test]
fn changed_recorded_chunks_show_nothing_wrong() {
    let Some(nodes) = nodes() else { return };
    let cases = lines("hostile/chunks.jsonl.gz").unwrap();
    let honest = cases.iter().filter(|case| case["verdict"] == "accept");
    for case in honest {
        let (root, chunk) = (B256::from_slice(&hex_field(case, "root")), hex_field(case, "chunk"));
        let from = case["from"].as_u64().unwrap();
        for at in (0..chunk.len()).step_by((chunk.len() / 400).max(1)) {
            for change in [1, 0x80] {
                let mut changed = chunk.clone();
                changed[at] ^= change;
                if let Ok(proven) = prove(&changed, &root, from) {
                    check_pieces(&proven, &nodes);
                }
            }
        }
    }
}
