//! Nodes of many proofs put together: what hangs together is kept, says what the trie says, and is bounded by what was
//! given.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, keccak256};
use rootlight::trie::limits::MAX_PATH_BITS;
use rootlight::trie::{
    Bits, Child, PartialTrie, Lookup, Node, NodeSource, ProvenNodes, Value, connected, lookup, lookup_value,
    parse_node, verify_multiproof,
};

use crate::input::{Input, change};
use crate::limit::with_limit;
use crate::model::{Model, key, proof};

/// Most levels of nodes that name the same child twice.
const MAX_LEVELS: usize = 600;

/// First byte: nodes of a trie with some left out, repeated and changed, or nodes whose two children are one.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => check_repeated(&mut input),
        _ => check_parts(&mut input),
    }
}

/// Nodes and long values of a trie.
fn stored(model: &Model) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let long: Vec<&Bytes> = model.map.values().filter(|value| value.len() > 32).collect();
    let is_long = |bytes: &[u8]| long.iter().any(|value| &value[..] == bytes);
    let (mut nodes, mut values) = (Vec::new(), Vec::new());
    model.trie.for_each_stored(&mut |_, bytes| match is_long(&bytes) && parse_node(&bytes).is_err() {
        true => values.push(bytes.to_vec()),
        false => nodes.push(bytes.to_vec()),
    });
    values.extend(long.into_iter().filter(|value| parse_node(value).is_ok()).map(|value| value.to_vec()));
    (nodes, values)
}

fn check_parts(input: &mut Input<'_>) {
    let model = Model::build(input);
    let root = model.trie.root();
    let (mut nodes, mut values) = stored(&model);
    let none: [&[u8]; 0] = [];
    let whole = connected(root, &nodes, &values).expect("nodes of a trie");
    for (key, value) in &model.map {
        assert_eq!(lookup_value(&whole, root, key), Ok(Some(value.clone())));
    }

    // What proves some keys hangs together too.
    let keys: Vec<Vec<u8>> = (0..input.below(8)).map(|_| key(input, &model.map)).collect();
    let wanted: Vec<Vec<u8>> = keys.iter().flat_map(|key| proof(&model.trie, key, false)).collect();
    let proven = verify_multiproof(root, &keys, &wanted, &none).expect("honest proofs");
    assert_eq!(connected(root, &wanted, &none).as_ref(), Ok(&proven));
    assert!(proven.len() <= wanted.len());

    for _ in 0..input.below(8) {
        let list = if input.byte() % 4 == 0 { &mut values } else { &mut nodes };
        let (at, other) = (input.below(list.len()), input.below(list.len()));
        match input.byte() % 6 {
            0 | 1 if !list.is_empty() => drop(list.remove(at)),
            2 if !list.is_empty() => list.swap(at, other),
            3 if !list.is_empty() => list.insert(at, list[other].clone()),
            4 => list.push(input.take(60).to_vec()),
            _ => list.get_mut(at).into_iter().for_each(|bytes| change(bytes, input)),
        }
    }
    let given: usize = nodes.iter().chain(&values).map(|bytes| bytes.len() + 1).sum();
    let Ok(part) = with_limit(given, || connected(root, &nodes, &values)) else { return };
    assert!(part.total_bytes() <= given);
    check_part(&model, &part, input);
    let mut both = proven.clone();
    both.merge(part.clone()).expect("far below the limit");
    assert!(both.len() <= proven.len() + part.len() && both.len() >= part.len());
    for key in &keys {
        assert_eq!(lookup(&both, root, key).ok(), lookup(&proven, root, key).ok());
    }
}

/// A part of a trie's nodes never contradicts the whole trie.
fn check_part(model: &Model, part: &ProvenNodes, input: &mut Input<'_>) {
    let root = model.trie.root();
    let chosen = key(input, &model.map);
    for key in model.map.keys().chain([&chosen]) {
        let truth = model.map.get(key);
        match (lookup(part, root, key), truth) {
            (Err(_), _) | (Ok(Lookup::Absent), None) => {}
            (Ok(Lookup::Found(found)), Some(value)) => assert_eq!(&found, value),
            (Ok(Lookup::FoundLong { hash, len }), Some(value)) => {
                assert_eq!((hash, len as usize), (keccak256(value), value.len()));
            }
            (found, truth) => panic!("{found:?} is not {truth:?}"),
        }
        if let Ok(found) = lookup_value(part, root, key) {
            assert_eq!(found.as_ref(), truth);
        }
    }
    let held = PartialTrie::new(part, root, &|| false).expect("nodes of a trie");
    held.trie().for_each(&mut |key, value| assert_eq!(model.map.get(key), Some(value)));
    if held.is_whole_below(&chosen) {
        for (key, value) in model.map.iter().filter(|(key, _)| key.starts_with(&chosen)) {
            assert_eq!(held.trie().get(key), Some(value));
        }
    }
}

/// Nodes that stand below each other, each of which has the one before it as its left and right child: a trie with
/// more keys than can be counted. It is read in as many steps as there are nodes, or refused.
fn check_repeated(input: &mut Input<'_>) {
    let mut nodes: Vec<Vec<u8>> = vec![vec![0x40, input.byte()]];
    let mut root = keccak256(&nodes[0]);
    let mut bits_below = 0;
    for _ in 0..input.below(MAX_LEVELS) {
        let choice = input.byte();
        let child = Some(Child::Hash(&root));
        let bits = [input.byte(); 4];
        let node = Node {
            path: Bits::first(&bits, usize::from(choice >> 4)),
            left: child,
            right: child.filter(|_| choice & 1 == 0),
            children_size: 1,
            value: if choice & 2 == 0 { Value::None } else { Value::Inline(&bits) },
        };
        bits_below += node.path.len() + 1;
        nodes.push(node.to_bytes());
        root = keccak256(nodes.last().expect("just pushed"));
    }
    let count = nodes.len();
    let none: [&[u8]; 0] = [];
    let given: usize = nodes.iter().map(Vec::len).sum();
    let proven = with_limit(given, || connected(root, &nodes, &none)).expect("nodes");
    assert_eq!(proven.len(), count);
    let looks = core::cell::Cell::new(0);
    let interrupted = || {
        looks.set(looks.get() + 1);
        false
    };
    let held = with_limit(given, || PartialTrie::new(&proven, root, &interrupted).map(drop));
    assert!(looks.get() <= 4 * count, "{} looks at {count} nodes", looks.get());
    let by_hash: BTreeMap<B256, Bytes> =
        nodes.into_iter().map(|node| (keccak256(&node), node.into())).collect();
    assert!(by_hash.keys().all(|hash| proven.node(hash).is_some()));
    assert_eq!(held.is_ok(), bits_below <= MAX_PATH_BITS, "{bits_below} bits");
}
