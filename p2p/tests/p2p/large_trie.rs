//! Searches in a trie of the size of a small public network, and against servers that do not respond.

use alloy_primitives::{B256, U256, keccak256};
use rootlight::state::keys::{account_key, slot_key, storage_root_key};
use rootlight::trie::Trie;
use rootlight::types::Address;
use rootlight_p2p::chunk::limits::MAX_PROBES;
use rootlight_p2p::chunk::{KeyAnswer, Seek, prove, serve};

use crate::search::run;
use crate::state::NodeMap;

const ACCOUNTS: u64 = 22_000;
const CELLS: u64 = 86_500;

fn address(index: u64) -> Address {
    Address::from_slice(&keccak256(index.to_be_bytes())[12..])
}

fn cell(index: u64) -> U256 {
    U256::from_be_bytes(keccak256((index | 1 << 40).to_be_bytes()).0)
}

/// 22,000 accounts, one of which has 86,500 cells.
fn trie() -> (B256, NodeMap) {
    let mut trie = Trie::new();
    for index in 0..ACCOUNTS {
        trie.put(&account_key(&address(index)), keccak256(index.to_le_bytes())[..14].to_vec());
    }
    trie.put(&storage_root_key(&address(7)), vec![1]);
    for index in 0..CELLS {
        let value = keccak256(index.to_le_bytes())[..1 + index as usize % 32].to_vec();
        trie.put(&slot_key(&address(7), &cell(index)), value);
    }
    let mut nodes = NodeMap::new();
    trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
    (trie.root(), nodes)
}

/// Present and absent accounts and cells in turn.
fn keys(count: u64) -> Vec<Vec<u8>> {
    let key = |index: u64| match index % 4 {
        0 => account_key(&address(index * 97 % ACCOUNTS)).to_vec(),
        1 => slot_key(&address(7), &cell(index * 389 % CELLS)),
        2 => account_key(&address(ACCOUNTS + index)).to_vec(),
        _ => slot_key(&address(7), &cell(CELLS + index)),
    };
    (0..count).map(key).collect()
}

#[test]
fn keys_of_a_large_trie_take_few_requests() {
    let (root, nodes) = trie();
    let size = serve::trie_size(&nodes, &root);
    println!("{size:?} bytes");
    assert!(size.unwrap() > 12_000_000);
    let mut counts = Vec::new();
    for key in keys(152) {
        let mut seek = Seek::new(root, size, [key.clone()]).unwrap();
        counts.push(run(&mut seek, &mut NodeMap::new(), &nodes).requests);
        let found = matches!(seek.answers().next(), Some((_, Some(KeyAnswer::Present(_)))));
        let expected = rootlight::trie::lookup_value(&nodes, root, &key).unwrap().is_some();
        assert_eq!(found, expected);
    }
    counts.sort_unstable();
    let (median, most) = (counts[counts.len() / 2], counts[counts.len() - 1]);
    println!("median {median}, at most {most}");
    assert!(median <= 2 && most <= 3, "{counts:?}");

    let mut seek = Seek::new(root, size, keys(180)).unwrap();
    let cost = run(&mut seek, &mut NodeMap::new(), &nodes);
    println!("180 keys together: {cost:?}");
    assert!(cost.requests <= 123, "{cost:?}");
}

fn small() -> (B256, NodeMap) {
    let mut trie = Trie::new();
    for index in 0..2000 {
        trie.put(&account_key(&address(index)), vec![7; 30]);
    }
    let mut nodes = NodeMap::new();
    trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
    (trie.root(), nodes)
}

#[test]
fn a_search_without_responses_ends() {
    let (root, _) = small();
    let mut seek = Seek::new(root, Some(100_000), keys(40)).unwrap();
    let (store, mut requests) = (NodeMap::new(), 0);
    while !seek.is_finished() {
        let offsets = seek.next(&store);
        assert!(!offsets.is_empty() || seek.is_finished());
        requests += offsets.len();
        offsets.into_iter().for_each(|from| seek.failed(from));
    }
    assert!(requests <= 40 * usize::from(MAX_PROBES), "{requests}");
    assert!(seek.answers().all(|(_, answer)| answer == Some(&KeyAnswer::Unreachable)));
}

/// The wrong size leads above the end of the trie, where servers are silent.
#[test]
fn a_wrong_size_costs_few_requests() {
    let (root, nodes) = small();
    let size = serve::trie_size(&nodes, &root).unwrap();
    for claimed in [0, 1, size / 50, size - 1, size * 20, u64::MAX] {
        let mut store = NodeMap::new();
        let mut seek = Seek::new(root, Some(claimed), keys(3)).unwrap();
        let mut requests = 0;
        while !seek.is_finished() {
            for from in seek.next(&store) {
                requests += 1;
                match serve::chunk(&nodes, &root, from) {
                    Some(served) => {
                        let proven = prove(&served.bytes, &root, from).unwrap();
                        store.extend(proven.iter().map(|(hash, bytes)| (*hash, bytes.to_vec().into())));
                        seek.received(from);
                    }
                    None => seek.failed(from),
                }
            }
        }
        assert!(requests <= 10, "{claimed}: {requests}");
        assert!(seek.answers().all(|(_, answer)| answer != Some(&KeyAnswer::Unreachable)));
    }
}

/// The store keeps only the newest chunk.
#[test]
fn a_search_goes_on_after_nodes_left_the_store() {
    let (root, nodes) = small();
    let mut seek = Seek::new(root, None, keys(20)).unwrap();
    let mut store = NodeMap::new();
    let mut requests = 0;
    while !seek.is_finished() && requests < 2000 {
        for from in seek.next(&store) {
            requests += 1;
            store.clear();
            let served = serve::chunk(&nodes, &root, from).unwrap();
            let proven = prove(&served.bytes, &root, from).unwrap();
            store.extend(proven.iter().map(|(hash, bytes)| (*hash, bytes.to_vec().into())));
            seek.received(from);
        }
    }
    assert!(seek.is_finished(), "{requests}");
    let mut answered = 0;
    for (key, answer) in seek.answers() {
        let expected = match rootlight::trie::lookup_value(&nodes, root, key).unwrap() {
            Some(value) => KeyAnswer::Present(value),
            None => KeyAnswer::Absent,
        };
        // A key whose nodes leave the store every time is given up.
        if answer != Some(&KeyAnswer::Unreachable) {
            assert_eq!(answer, Some(&expected));
            answered += 1;
        }
    }
    assert!(answered >= 15, "{answered}");
}
