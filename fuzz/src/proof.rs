//! Proofs: of one key, of many, of a receipt. Whatever is accepted must be what the trie says.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight::trie::{
    Leaf, Lookup, NodeFormat, ProvenValue, lookup, lookup_node, lookup_value, ordered_root, ordered_trie, prove,
    prove_receipt, receipt_index, unwrap_node, verify_multiproof, verify_path, verify_proof,
};

use crate::input::{Input, change};
use crate::limit::with_limit;
use crate::model::{Model, key, proof};

/// Most keys of one multi-proof, most receipts of one block, most nodes made by hand.
const MAX_KEYS: usize = 12;
const MAX_RECEIPTS: usize = 300;
const MAX_NODES: usize = 24;

/// First byte: which kind of proof; the rest are choices.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => check_single(&mut input),
        1 => check_multi(&mut input),
        2 => check_receipt(&mut input),
        _ => check_made_up(&mut input),
    }
}

fn size(nodes: &[Vec<u8>]) -> usize {
    nodes.iter().map(|node| node.len() + 1).sum()
}

/// Bytes of a value that is kept apart from its node.
fn long(value: Option<&Bytes>) -> Option<&[u8]> {
    value.map(|value| &value[..]).filter(|value| value.len() > 32)
}

fn check_single(input: &mut Input<'_>) {
    let model = Model::build(input);
    let root = model.trie.root();
    let mut wanted = key(input, &model.map);
    let style = input.byte();
    let mut nodes = proof(&model.trie, &wanted, style & 1 == 1);
    present(&mut nodes, style);
    let value = model.map.get(&wanted);
    let proven = verify_proof(root, &wanted, &nodes, long(value)).expect("an honest proof");
    assert_eq!(proven.value(), value.map(|value| &value[..]));
    if long(value).is_some() {
        assert!(verify_proof(root, &wanted, &nodes, None).is_err());
    }

    let mut extra = long(value).map(<[u8]>::to_vec);
    spoil(&mut nodes, &model, input);
    match input.byte() % 4 {
        0 => wanted = key(input, &model.map),
        1 => change(extra.get_or_insert_default(), input),
        _ => {}
    }
    let len = size(&nodes) + extra.as_ref().map_or(0, Vec::len);
    match with_limit(len, || verify_proof(root, &wanted, &nodes, extra.as_deref())) {
        Ok(ProvenValue::Present(value)) => assert_eq!(model.map.get(&wanted).map(|v| &v[..]), Some(value)),
        Ok(ProvenValue::Absent) => assert_eq!(model.map.get(&wanted), None),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The forms in which proofs are handed out: wrapped or not, from either end.
fn present(nodes: &mut [Vec<u8>], style: u8) {
    if style & 2 != 0 {
        nodes.reverse();
    }
    if style & 4 != 0 {
        nodes.iter_mut().filter(|node| node.len() > 1).for_each(|node| *node = alloy_rlp::encode(&node[..]));
    }
}

/// Up to seven changes of the list and the nodes in it.
fn spoil(nodes: &mut Vec<Vec<u8>>, model: &Model, input: &mut Input<'_>) {
    for _ in 0..input.byte() % 8 {
        let (at, other) = (input.below(nodes.len()), input.below(nodes.len()));
        match input.byte() % 8 {
            0 if !nodes.is_empty() => {
                nodes.remove(at);
            }
            1 if !nodes.is_empty() => nodes.swap(at, other),
            2 if !nodes.is_empty() => nodes.insert(at, nodes[other].clone()),
            3 => nodes.extend(proof(&model.trie, &key(input, &model.map), true)),
            4 => *nodes = proof(&model.trie, &key(input, &model.map), true),
            5 => nodes.push(input.take(40).to_vec()),
            _ => nodes.get_mut(at).into_iter().for_each(|node| change(node, input)),
        }
    }
}

fn check_multi(input: &mut Input<'_>) {
    let model = Model::build(input);
    let root = model.trie.root();
    let mut keys: Vec<Vec<u8>> = (0..input.below(MAX_KEYS)).map(|_| key(input, &model.map)).collect();
    let style = input.byte();
    let mut nodes: Vec<Vec<u8>> =
        keys.iter().flat_map(|key| proof(&model.trie, key, style & 1 == 1)).collect();
    present(&mut nodes, style);
    let mut values: Vec<Vec<u8>> =
        keys.iter().filter_map(|key| long(model.map.get(key))).map(Into::into).collect();
    values.truncate(input.below(values.len() + 1));
    check_proven(&model, &keys, &nodes, &values).expect("an honest proof");

    spoil(&mut nodes, &model, input);
    match input.byte() % 4 {
        0 => keys.push(key(input, &model.map)),
        1 => values.iter_mut().for_each(|value| change(value, input)),
        _ => {}
    }
    if let Err(error) = check_proven(&model, &keys, &nodes, &values) {
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(model.trie.root(), root);
}

/// If the proof is accepted, every key looks up to what the trie holds.
fn check_proven(
    model: &Model,
    keys: &[Vec<u8>],
    nodes: &[Vec<u8>],
    values: &[Vec<u8>],
) -> Result<(), rootlight::trie::ProofError> {
    let root = model.trie.root();
    let proven = with_limit(size(nodes) + size(values), || verify_multiproof(root, keys, nodes, values))?;
    assert!(proven.total_bytes() <= size(nodes) + size(values));
    for key in keys {
        let truth = model.map.get(key);
        match (lookup(&proven, root, key).expect("every key was walked"), truth) {
            (Lookup::Absent, None) => {}
            (Lookup::Found(found), Some(value)) => assert_eq!(&found, value),
            (Lookup::FoundLong { hash, len }, Some(value)) => {
                assert_eq!((hash, len as usize), (keccak256(value), value.len()));
                if values.iter().any(|given| given == &value[..]) {
                    assert_eq!(lookup_value(&proven, root, key).as_ref().ok(), Some(&truth.cloned()));
                }
            }
            (found, truth) => panic!("{found:?} is not {truth:?}"),
        }
        let node = lookup_node(&proven, root, key).expect("every key was walked");
        assert_eq!(node.map(|found| found.hash), model.trie.node_hash(key));
    }
    Ok(())
}

fn check_receipt(input: &mut Input<'_>) {
    let count = input.below(MAX_RECEIPTS) + 1;
    let tag = input.byte();
    let items: Vec<Vec<u8>> = (0..count).map(|i| receipt(tag, i)).collect();
    let trie = ordered_trie(&items);
    let root = trie.root();
    assert_eq!(root, ordered_root(&items, NodeFormat::Rskip107));
    let mut index = input.below(count) as u64;
    let mut nodes = proof(&trie, &rootlight::trie::index_key(index), true);
    present(&mut nodes, input.byte() | 2);
    let mut item = items[index as usize].clone();
    assert_eq!(prove_receipt(root, index, &nodes, &item), Ok(()));
    assert_eq!(receipt_index(root, &nodes, &item), Ok(index));

    let model = Model { trie, map: BTreeMap::new() };
    spoil(&mut nodes, &model, input);
    match input.byte() % 4 {
        0 => index = input.short() as u64,
        1 => change(&mut item, input),
        2 => item = items[input.below(count)].clone(),
        _ => {}
    }
    let is_truth = |index: u64| usize::try_from(index).ok().and_then(|i| items.get(i)) == Some(&item);
    let len = size(&nodes) + item.len();
    if with_limit(len, || prove_receipt(root, index, &nodes, &item)).is_ok() {
        assert!(is_truth(index));
    }
    if let Ok(found) = with_limit(len, || receipt_index(root, &nodes, &item)) {
        assert!(is_truth(found));
    }
}

/// Something in a receipt's place: different for every index, short or long.
fn receipt(tag: u8, index: usize) -> Vec<u8> {
    let len = 2 + (usize::from(tag) * 7 + index * usize::from(tag % 5)) % 60;
    let mut item = vec![tag; len];
    item[..2].copy_from_slice(&(index as u16).to_be_bytes());
    item
}

/// Nodes of any bytes, each made the child of the one before it: what a proof of one key shows, the look-up over the
/// same nodes shows too, and the other way round.
fn check_made_up(input: &mut Input<'_>) {
    let (nodes, root) = linked(input);
    let wanted = input.take(16).to_vec();
    let raw = |node: &Vec<u8>| unwrap_node(node).ok().map(<[u8]>::to_vec);
    let by_hash: BTreeMap<B256, Bytes> =
        nodes.iter().filter_map(raw).map(|node| (keccak256(&node), node.into())).collect();
    let looked_up = lookup(&by_hash, root, &wanted);
    match (with_limit(size(&nodes), || verify_path(root, &wanted, &nodes)), &looked_up) {
        (Ok(Leaf::Absent), Ok(Lookup::Absent)) => {}
        (Ok(Leaf::Inline(value)), Ok(Lookup::Found(found))) => assert_eq!(value, &found[..]),
        (Ok(Leaf::Long { hash, len }), Ok(Lookup::FoundLong { hash: other, len: other_len })) => {
            assert_eq!((hash, len), (other, *other_len));
        }
        (Ok(leaf), other) => panic!("{leaf:?} is proven, {other:?} looked up"),
        (Err(_), _) => {}
    }
    let none: [&[u8]; 0] = [];
    if let Ok(proven) = with_limit(size(&nodes), || verify_multiproof(root, &[&wanted], &nodes, &none)) {
        assert_eq!(lookup(&proven, root, &wanted), looked_up);
    }
    let Ok(way) = prove(&by_hash, root, &wanted) else {
        assert!(looked_up.is_err());
        return;
    };
    assert!(verify_path(root, &wanted, &way).is_ok());
    assert!(verify_multiproof(root, &[&wanted], &way, &none).is_ok());
    let _ = receipt_index(root, &nodes, &wanted);
}

/// Nodes from the input, last first; into each one the hash of its successor is written at a chosen place.
fn linked(input: &mut Input<'_>) -> (Vec<Vec<u8>>, B256) {
    let count = input.below(MAX_NODES) + 1;
    let mut nodes: Vec<Vec<u8>> = Vec::new();
    let mut below = B256::ZERO;
    for _ in 0..count {
        let len = input.below(300);
        let mut node = input.take(len).to_vec();
        let at = input.below(node.len());
        if let Some(place) = node.get_mut(at..at + 32).filter(|_| !nodes.is_empty()) {
            place.copy_from_slice(below.as_slice());
        }
        below = keccak256(&node);
        nodes.push(node);
    }
    nodes.reverse();
    (nodes, below)
}
