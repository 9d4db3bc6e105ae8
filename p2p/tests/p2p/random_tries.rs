//! Chunks of tries of any content: made, proven, searched, changed.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rootlight::trie::{Trie, lookup_value};
use rootlight_p2p::chunk::limits::SPAN;
use rootlight_p2p::chunk::{KeyAnswer, Seek, prove, serve};

use crate::search::run;
use crate::state::NodeMap;

/// Keys that share beginnings, and values of all lengths.
fn content() -> impl Strategy<Value = BTreeMap<Vec<u8>, Vec<u8>>> {
    let key = prop_oneof![
        vec(0u8..3, 1..6),
        vec(any::<u8>(), 1..40),
        (0u8..4, vec(any::<u8>(), 0..12)).prop_map(|(account, slot)| [&[0, account][..], &slot].concat()),
    ];
    let value = prop_oneof![
        6 => vec(any::<u8>(), 1..40),
        2 => vec(any::<u8>(), 33..3000),
        1 => (any::<u8>(), 40_000usize..120_000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    btree_map(key, value, 1..120)
}

fn trie_of(content: &BTreeMap<Vec<u8>, Vec<u8>>) -> (Trie, NodeMap) {
    let (mut trie, mut nodes) = (Trie::new(), NodeMap::new());
    content.iter().for_each(|(key, value)| trie.put(key, value.clone()));
    trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
    (trie, nodes)
}

/// Adds what a chunk proves, all of which is in the trie.
fn take(found: &mut NodeMap, nodes: &NodeMap, root: &B256, from: u64, chunk: &[u8]) {
    for (hash, bytes) in prove(chunk, root, from).expect("an honest chunk").iter() {
        assert_eq!(&nodes[hash][..], bytes);
        found.insert(*hash, Bytes::copy_from_slice(bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn consecutive_chunks_are_the_trie(content in content()) {
        let (trie, nodes) = trie_of(&content);
        let (root, mut found) = (trie.root(), NodeMap::new());
        let size = serve::trie_size(&nodes, &root).unwrap();
        for from in (0..=size).step_by(SPAN as usize) {
            take(&mut found, &nodes, &root, from, &serve::chunk(&nodes, &root, from).unwrap().bytes);
        }
        prop_assert_eq!(found, nodes);
    }

    #[test]
    fn a_chunk_shows_the_keys_that_end_in_it(content in content(), part in 0.0..1.0f64) {
        let (trie, nodes) = trie_of(&content);
        let (root, mut found) = (trie.root(), NodeMap::new());
        let size = serve::trie_size(&nodes, &root).unwrap();
        let from = (size as f64 * part) as u64;
        take(&mut found, &nodes, &root, from, &serve::chunk(&nodes, &root, from).unwrap().bytes);
        for (key, value) in &content {
            // A key that needs a node outside of the chunk has no answer rather than a wrong one.
            if let Ok(shown) = lookup_value(&found, root, key) {
                prop_assert_eq!(shown, Some(Bytes::from(value.clone())));
            }
        }
    }

    #[test]
    fn all_keys_are_found(content in content(), absent in vec(vec(0u8..4, 1..8), 0..20)) {
        let (trie, nodes) = trie_of(&content);
        let keys: Vec<Vec<u8>> = content.keys().cloned().chain(absent).collect();
        let mut seek = Seek::new(trie.root(), None, keys.clone()).unwrap();
        let cost = run(&mut seek, &mut NodeMap::new(), &nodes);
        for (key, answer) in seek.answers() {
            let expected = trie.get(key).map_or(KeyAnswer::Absent, |value| KeyAnswer::Present(value.clone()));
            prop_assert_eq!(answer, Some(&expected));
        }
        let chunks = serve::trie_size(&nodes, &trie.root()).unwrap() / SPAN + 1;
        prop_assert!(cost.requests as u64 <= 2 * chunks + 2, "{:?} for {} chunks", cost, chunks);
    }

    /// A changed chunk is refused, or shows nothing but what is true.
    #[test]
    fn a_changed_chunk_shows_nothing_wrong(
        content in content(),
        part in 0.0..1.0f64,
        changes in vec((any::<prop::sample::Index>(), 1u8..), 1..200),
    ) {
        let (trie, nodes) = trie_of(&content);
        let root = trie.root();
        let from = (serve::trie_size(&nodes, &root).unwrap() as f64 * part) as u64;
        let chunk = serve::chunk(&nodes, &root, from).unwrap().bytes;
        for (at, change) in changes {
            let mut changed = chunk.clone();
            // The start of the chunk holds its structure, the rest mostly values.
            let place = at.index(changed.len().min(2000));
            changed[place] ^= change;
            if let Ok(proven) = prove(&changed, &root, from) {
                for (hash, bytes) in proven.iter() {
                    prop_assert_eq!(nodes.get(hash).map(|node| &node[..]), Some(bytes));
                }
            }
        }
    }
}
