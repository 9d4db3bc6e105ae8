//! Keys of recorded states are found by requesting few chunks.

use std::collections::BTreeMap;

use alloy_primitives::{B256, keccak256};
use rootlight_p2p::chunk::{KeyAnswer, Seek};
use serde_json::Value;

use crate::gzipped::{bytes, hex_field};
use crate::search::run;
use crate::state::{NodeMap, nodes, states};

/// A recorded key with its value: the bytes, or hash and length of a long one.
struct RecordedKey {
    key: Vec<u8>,
    value: Option<Result<Vec<u8>, (B256, usize)>>,
    requests: usize,
}

fn recorded() -> Vec<(B256, Vec<RecordedKey>)> {
    let Some(content) = bytes("chain/keys.json.gz") else { return Vec::new() };
    let lists: Vec<Value> = serde_json::from_slice(&content).unwrap();
    let value = |text: &str| match text.strip_prefix("keccak:") {
        Some(long) => {
            let (hash, len) = long.split_once(':').unwrap();
            Err((hash.parse().unwrap(), len.parse().unwrap()))
        }
        None => Ok(hex::decode(text).unwrap()),
    };
    let key = |entry: &Value| RecordedKey {
        key: hex_field(entry, "key"),
        value: entry["value"].as_str().map(value),
        requests: entry["requests"].as_u64().unwrap() as usize,
    };
    let list = |list: &Value| {
        let root = B256::from_slice(&hex_field(list, "root"));
        (root, list["keys"].as_array().unwrap().iter().map(key).collect())
    };
    lists.iter().map(list).collect()
}

fn check(recorded: &RecordedKey, answer: &KeyAnswer) {
    match (&recorded.value, answer) {
        (None, KeyAnswer::Absent) => {}
        (Some(Ok(value)), KeyAnswer::Present(found)) => assert_eq!(value, found),
        (Some(Err((hash, len))), KeyAnswer::Present(found)) => {
            assert_eq!((*hash, *len), (keccak256(found), found.len()));
        }
        _ => panic!("{}: {answer:?}", hex::encode(&recorded.key)),
    }
}

#[test]
fn each_recorded_key_is_found_from_nothing_in_three_requests() {
    let Some(nodes) = nodes() else { return };
    let sizes: BTreeMap<B256, u64> = states().into_iter().map(|state| (state.root, state.size)).collect();
    let (mut ours, mut theirs, mut most, mut bytes, mut count) = (0, 0, 0, 0, 0);
    let mut histogram = BTreeMap::new();
    for (root, keys) in recorded() {
        for entry in &keys {
            let mut seek = Seek::new(root, Some(sizes[&root]), [entry.key.clone()]).unwrap();
            let cost = run(&mut seek, &mut NodeMap::new(), &nodes);
            check(entry, seek.answers().next().unwrap().1.unwrap());
            *histogram.entry((cost.requests, entry.requests)).or_insert(0usize) += 1;
            ours += cost.requests;
            theirs += entry.requests;
            most = most.max(cost.requests);
            bytes += cost.bytes;
            count += 1;
        }
    }
    println!(
        "{count} keys, {ours} requests (recorded {theirs}), at most {most}, {} bytes each",
        bytes / count
    );
    println!("{histogram:?}");
    assert_eq!(count, 704);
    assert!(most <= 3 && ours <= theirs, "{most}, {ours} and {theirs}");
    assert!(bytes / count <= 70_000, "{}", bytes / count);
}

#[test]
fn all_recorded_keys_of_a_state_share_requests() {
    let Some(nodes) = nodes() else { return };
    for (root, keys) in recorded() {
        for size in [None, states().into_iter().find(|state| state.root == root).map(|state| state.size)] {
            let mut seek = Seek::new(root, size, keys.iter().map(|entry| entry.key.clone())).unwrap();
            let cost = run(&mut seek, &mut NodeMap::new(), &nodes);
            for (entry, (key, answer)) in keys.iter().zip(seek.answers()) {
                assert_eq!(key, entry.key);
                check(entry, answer.unwrap());
            }
            println!("{} keys, size {size:?}: {cost:?}", keys.len());
            assert!(cost.requests <= 32, "{cost:?}");
        }
    }
}

/// A search in a later state, of which nothing is known, with the nodes that a search in an earlier one brought.
#[test]
fn nodes_of_an_earlier_state_save_requests() {
    let Some(nodes) = nodes() else { return };
    let recorded = recorded();
    let [.., (earlier, _), (later, keys)] = &recorded[..] else { panic!() };
    let all = || keys.iter().map(|entry| entry.key.clone());
    let mut store = NodeMap::new();
    run(&mut Seek::new(*earlier, None, all()).unwrap(), &mut store, &nodes);
    let mut together = Seek::new(*later, None, all()).unwrap().near(*earlier);
    let cost = run(&mut together, &mut store.clone(), &nodes);
    println!("{} keys: {cost:?}", keys.len());
    assert!(cost.requests <= 20, "{cost:?}");
    let (mut single, mut guessed) = (0, 0);
    for entry in keys {
        let mut seek = Seek::new(*later, None, [entry.key.clone()]).unwrap().near(*earlier);
        single += run(&mut seek, &mut store.clone(), &nodes).requests;
        check(entry, seek.answers().next().unwrap().1.unwrap());
        guessed += 1;
    }
    println!("{single} requests for {guessed} single keys");
    assert!(single <= guessed + guessed / 10, "{single}");
}
