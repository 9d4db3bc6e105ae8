//! State chunks (`rootlight_p2p::chunk`): an honest one is proven, and no change of it shows anything that is not in the trie. A chunk is
//! a range of a state trie's bytes in a fixed order, from an offset (`from`) on, with the nodes that prove the range; its pieces are
//! nodes and long values.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight::trie::{EMPTY_ROOT, lookup_value};
use rootlight_p2p::chunk::{KeyAnswer, ChunkError, Seek, prove, serve};

use crate::input::{Input, change};
use crate::limit::{with_at_most, with_limit};
use crate::model::{Model, key};

/// Most keys of one search, present and absent.
const MAX_KEYS: usize = 12;

/// Most changes of one chunk, each of which is proven anew.
const MAX_CHANGES: usize = 8;

/// Most requests of one search in tries that fit into few chunks.
const MAX_REQUESTS: usize = 16;

/// The first byte decides whether the rest is a chunk itself, or choices of a trie and of changes.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 3 {
        0 => with_limit(data.len(), || check_bytes(input.rest())),
        _ => with_at_most(16 << 20, || check_made(&mut input)),
    }
}

/// Any bytes: with whatever root their nodes have, every piece has its hash.
fn check_bytes(bytes: &[u8]) {
    // No chunk has the root 0, so the error names the root that the nodes have.
    let Err(ChunkError::Root { found, .. }) = prove(bytes, &B256::ZERO, 0) else { return };
    // 51,200 bytes are the span of a chunk (`limits::SPAN`).
    for from in [0, 1, 51_200, u64::MAX] {
        match prove(bytes, &found, from) {
            Ok(proven) => {
                assert!(proven.iter().any(|(hash, _)| *hash == found));
                assert!(proven.iter().all(|(hash, piece)| keccak256(piece) == *hash));
            }
            Err(error) => assert_eq!(error, ChunkError::Elsewhere { from }),
        }
    }
}

/// A trie of chosen content, a chunk of it, changes of the chunk, and a search.
fn check_made(input: &mut Input<'_>) {
    let mut model = Model::build(input);
    // Long values make several chunks.
    for _ in 0..input.below(4) {
        let (key, byte) = (key(input, &model.map), input.byte());
        let value = Bytes::from(vec![byte; 20_000 + input.short() / 2]);
        model.trie.put(&key, value.clone());
        model.map.insert(key, value);
    }
    let root = model.trie.root();
    if root == EMPTY_ROOT {
        return;
    }
    let mut nodes = BTreeMap::new();
    model.trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
    let size = serve::trie_size(&nodes, &root).expect("not empty");
    let from = (input.short() as u64 * 7) % (size + 1);
    let chunk = serve::chunk(&nodes, &root, from).expect("within the trie").bytes;
    let proven = prove(&chunk, &root, from).expect("honest");
    assert_eq!(proven.trie_size(), size);
    for _ in 0..input.below(MAX_CHANGES + 1) {
        let mut changed = chunk.clone();
        change(&mut changed, input);
        if let Ok(proven) = prove(&changed, &root, from) {
            assert!(proven.iter().all(|(hash, piece)| nodes.get(hash).is_some_and(|node| node == piece)));
        }
    }
    check_search(input, &model, &nodes, root);
}

fn check_search(input: &mut Input<'_>, model: &Model, nodes: &BTreeMap<B256, Bytes>, root: B256) {
    let keys: Vec<Vec<u8>> = (0..input.below(MAX_KEYS + 1)).map(|_| key(input, &model.map)).collect();
    let hint = (input.byte() % 2 == 0).then(|| serve::trie_size(nodes, &root).expect("not empty"));
    let mut seek = Seek::new(root, hint, keys).expect("few short keys");
    let (mut store, mut requests) = (BTreeMap::new(), 0);
    while !seek.is_finished() {
        for from in seek.next(&store) {
            requests += 1;
            let chunk = serve::chunk(nodes, &root, from).expect("within the trie").bytes;
            let proven = prove(&chunk, &root, from).expect("honest");
            store.extend(proven.iter().map(|(hash, piece)| (*hash, Bytes::copy_from_slice(piece))));
            seek.received(from);
        }
        assert!(requests <= MAX_REQUESTS);
    }
    for (key, answer) in seek.answers() {
        let expected = model.map.get(key).map_or(KeyAnswer::Absent, |value| KeyAnswer::Present(value.clone()));
        assert_eq!(answer, Some(&expected));
        assert_eq!(lookup_value(&store, root, key), Ok(model.map.get(key).cloned()));
    }
}
