//! Compares the trie with an independent, simple model under random operations, and checks that damaged
//! proofs are refused.

use proptest::prelude::*;
use rootlight::trie::limits::MAX_EMBEDDED_BYTES;
use rootlight::trie::*;
use rootlight::types::{B256, Bytes, keccak256};
use std::collections::{BTreeMap, BTreeSet};

type ModelMap = BTreeMap<Vec<u8>, Vec<u8>>;

/// A node computed from sorted bit strings in the simplest way (RSKIP-107), without code of the library: its
/// serialization, the size of everything below it, and the orchid hash.
struct Plain {
    bytes: Vec<u8>,
    below: u64,
    long: u64,
    terminal: bool,
    orchid: B256,
}

fn bits_of(key: &[u8]) -> Vec<bool> {
    key.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

fn pack(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|chunk| chunk.iter().enumerate().fold(0, |all, (at, bit)| all | u8::from(*bit) << (7 - at)))
        .collect()
}

fn varint(value: u64) -> Vec<u8> {
    if value < 253 {
        vec![value as u8]
    } else if value < 0x1_0000 {
        [&[0xfd][..], &(value as u16).to_le_bytes()].concat()
    } else {
        [&[0xfe][..], &(value as u32).to_le_bytes()].concat()
    }
}

fn plain(entries: &[(Vec<bool>, Vec<u8>)], secure: bool) -> Plain {
    let first = &entries[0].0;
    let shared = (0..first.len())
        .take_while(|at| entries.iter().all(|(key, _)| key.get(*at) == Some(&first[*at])))
        .count();
    let path = first[..shared].to_vec();
    let value = entries.iter().find(|(key, _)| key.len() == shared).map(|(_, value)| value.clone());
    let children = [false, true].map(|side| {
        let side: Vec<_> = entries
            .iter()
            .filter(|(key, _)| key.get(shared) == Some(&side))
            .map(|(key, value)| (key[shared + 1..].to_vec(), value.clone()))
            .collect();
        (!side.is_empty()).then(|| plain(&side, secure))
    });
    let mut flags = 0x40;
    let mut rest = Vec::new();
    let mut orchid_rest = Vec::new();
    if !path.is_empty() {
        flags |= 0x10;
        match path.len() {
            1..=32 => rest.push(path.len() as u8 - 1),
            160..=382 => rest.push((path.len() - 128) as u8),
            len => rest.extend([&[0xff][..], &varint(len as u64)].concat()),
        }
        rest.extend(pack(&path));
    }
    let mut below = 0;
    for (child, present, embedded) in [(&children[0], 8, 2), (&children[1], 4, 1)] {
        let Some(child) = child else { continue };
        flags |= present;
        below += child.below + child.bytes.len() as u64 + child.long;
        if child.terminal && child.bytes.len() <= MAX_EMBEDDED_BYTES {
            flags |= embedded;
            rest.push(child.bytes.len() as u8);
            rest.extend(&child.bytes);
        } else {
            rest.extend(keccak256(&child.bytes));
        }
        orchid_rest.extend(child.orchid);
    }
    let terminal = children.iter().all(Option::is_none);
    if !terminal {
        rest.extend(varint(below));
    }
    let long = value.as_ref().map_or(0, |value| if value.len() > 32 { value.len() as u64 } else { 0 });
    if let Some(value) = &value {
        if long > 0 {
            flags |= 0x20;
            rest.extend(keccak256(value));
            rest.extend(&(value.len() as u32).to_be_bytes()[1..]);
            orchid_rest.extend(keccak256(value));
        } else {
            rest.extend(value);
            orchid_rest.extend(value);
        }
    }
    let present = u8::from(children[0].is_some()) | u8::from(children[1].is_some()) << 1;
    let head = [2, u8::from(secure) | u8::from(long > 0) << 1, 0, present, 0, path.len() as u8];
    let orchid = keccak256([&head[..], &pack(&path), &orchid_rest].concat());
    Plain { bytes: [vec![flags], rest].concat(), below, long, terminal, orchid }
}

fn check_against_plain(trie: &Trie, map: &ModelMap) {
    let entries: Vec<_> = map.iter().map(|(key, value)| (bits_of(key), value.clone())).collect();
    if entries.is_empty() {
        assert_eq!((trie.root(), trie.children_size()), (EMPTY_ROOT, 0));
        assert_eq!(trie.orchid_root(false), EMPTY_ROOT);
        assert!(trie.is_empty());
        return;
    }
    let model = plain(&entries, false);
    assert_eq!(trie.root(), keccak256(&model.bytes));
    assert_eq!(trie.children_size(), model.below);
    assert_eq!(trie.orchid_root(false), model.orchid);
    assert_eq!(trie.orchid_root(true), plain(&entries, true).orchid);
    let mut listed = ModelMap::new();
    trie.for_each(&mut |key, value| {
        listed.insert(key.to_vec(), value.to_vec());
    });
    assert_eq!(&listed, map);
}

fn stored(trie: &Trie) -> BTreeMap<B256, Bytes> {
    let mut all = BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| {
        assert_eq!(keccak256(&bytes), hash);
        all.insert(hash, bytes);
    });
    all
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteSubtree(Vec<u8>),
}

/// Short keys of few different bytes, so that they share prefixes and are prefixes of each other; sometimes a
/// long one.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x80), Just(0xff), any::<u8>()];
    prop_oneof![
        6 => prop::collection::vec(byte, 0..5),
        1 => prop::collection::vec(Just(0x5au8), 0..31),
        1 => prop::collection::vec(any::<u8>(), 18..31),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 1..12),
        2 => prop::collection::vec(any::<u8>(), 28..37),
        1 => prop::collection::vec(any::<u8>(), 250..300),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        1 => key().prop_map(|key| Op::Put(key, Vec::new())),
        2 => key().prop_map(Op::Delete),
        1 => key().prop_map(Op::DeleteSubtree),
    ];
    prop::collection::vec(op, 0..40)
}

fn apply(trie: &mut Trie, map: &mut ModelMap, op: &Op) {
    match op {
        Op::Put(key, value) => {
            trie.put(key, value.clone());
            if value.is_empty() {
                map.remove(key);
            } else {
                map.insert(key.clone(), value.clone());
            }
        }
        Op::Delete(key) => assert_eq!(trie.delete(key), map.remove(key).is_some()),
        Op::DeleteSubtree(prefix) => {
            let before = map.len();
            map.retain(|key, _| !key.starts_with(prefix));
            assert_eq!(trie.delete_subtree(prefix), map.len() < before);
        }
    }
}

fn run(ops: &[Op]) -> (Trie, ModelMap) {
    let (mut trie, mut map) = (Trie::new(), ModelMap::new());
    for op in ops {
        apply(&mut trie, &mut map, op);
    }
    (trie, map)
}

/// Keys to look up: all present ones, their neighbours, and others.
fn asked(map: &ModelMap, others: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<_> = others.iter().cloned().collect();
    for key in map.keys() {
        keys.insert(key.clone());
        keys.insert(key[..key.len().saturating_sub(1)].to_vec());
        keys.insert([&key[..], &[0]].concat());
        if let Some((last, head)) = key.split_last() {
            keys.insert([head, &[last ^ 1]].concat());
        }
    }
    keys
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// After random operations, root, sizes, values and order equal those of a newly built trie. Earlier
    /// versions are not changed by later operations.
    #[test]
    fn operations_agree_with_a_rebuilt_trie(ops in ops()) {
        let (mut trie, mut map) = (Trie::new(), ModelMap::new());
        let mut versions = Vec::new();
        for op in &ops {
            apply(&mut trie, &mut map, op);
            versions.push((trie.clone(), map.clone()));
        }
        for (trie, map) in versions.iter().step_by(7).chain(versions.last()) {
            check_against_plain(trie, map);
            let mut rebuilt = Trie::new();
            for (key, value) in map.iter().rev() {
                rebuilt.put(key, value.clone());
            }
            prop_assert_eq!(rebuilt.root(), trie.root());
            prop_assert_eq!(stored(&rebuilt), stored(trie));
        }
    }

    /// Proofs of present and absent keys verify in every form and order, and prove the value of the map.
    #[test]
    fn proofs_of_random_tries_verify(ops in ops(), others in prop::collection::vec(key(), 0..8)) {
        let (trie, map) = run(&ops);
        let (root, source) = (trie.root(), stored(&trie));
        for key in asked(&map, &others) {
            let value = map.get(&key).map(Vec::as_slice);
            let proof = trie.proof(&key);
            let long = value.filter(|value| value.len() > 32);
            prop_assert_eq!(verify_proof(root, &key, &proof, long).unwrap().value(), value);
            let reversed: Vec<_> =
                proof.iter().rev().map(|node| alloy_rlp::encode(&node[..])).collect();
            prop_assert_eq!(verify_proof(root, &key, &reversed, long).unwrap().value(), value);
            prop_assert_eq!(prove(&source, root, &key).unwrap(), proof);
            prop_assert_eq!(
                lookup_value(&source, root, &key).unwrap().map(|value| value.to_vec()),
                value.map(<[u8]>::to_vec)
            );
            prop_assert_eq!(trie.get(&key).map(|value| value.to_vec()), value.map(<[u8]>::to_vec));
            let node = lookup_node(&source, root, &key).unwrap();
            prop_assert_eq!(node.map(|node| node.hash), trie.node_hash(&key));
        }
    }

    /// A multi-proof of several keys, with its nodes shuffled and some of them repeated, contains exactly the
    /// nodes needed.
    #[test]
    fn multiproofs_of_random_tries_verify(
        ops in ops(), others in prop::collection::vec(key(), 1..8), seed in any::<u64>(),
    ) {
        let (trie, map) = run(&ops);
        let root = trie.root();
        let keys: Vec<Vec<u8>> = asked(&map, &others).into_iter().collect();
        let mut nodes: Vec<Bytes> = keys.iter().flat_map(|key| trie.proof(key)).collect();
        nodes.sort_by_key(|node| keccak256([&node[..], &seed.to_be_bytes()].concat()));
        let values: Vec<&Vec<u8>> = map.values().filter(|value| value.len() > 32).collect();
        let set = verify_multiproof(root, &keys, &nodes, &values).unwrap();
        prop_assert_eq!(set.len(), stored(&trie).len());
        for key in &keys {
            let found = lookup_value(&set, root, key).unwrap().map(|value| value.to_vec());
            prop_assert_eq!(found.as_ref(), map.get(key));
        }
        // Without any one node the proof is refused.
        nodes.sort();
        nodes.dedup();
        if !nodes.is_empty() {
            nodes.remove(seed as usize % nodes.len());
            prop_assert!(verify_multiproof(root, &keys, &nodes, &values).is_err());
        }
    }

    /// Parsing random bytes gives an error or a node that encodes to the same bytes.
    #[test]
    fn random_bytes_are_refused_or_encode_to_themselves(mut bytes in prop::collection::vec(any::<u8>(), 0..300), version in any::<bool>()) {
        if let (true, Some(flags)) = (version, bytes.first_mut()) {
            *flags = *flags & 0x3f | 0x40;
        }
        if let Ok(node) = parse_node(&bytes) {
            prop_assert_eq!(node.to_bytes(), bytes.clone());
            prop_assert_eq!(node.encoded_len(), bytes.len());
        }
        let _ = unwrap_node(&bytes);
        let root = keccak256(&bytes);
        let _ = verify_path(root, &bytes[..bytes.len().min(9)], std::slice::from_ref(&bytes));
        let _ = receipt_index(root, &[bytes], &[1]);
    }

    /// Parsing a changed node gives an error or a node that encodes to the same bytes.
    #[test]
    fn changed_nodes_are_refused_or_encode_to_themselves(
        ops in ops(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        for node in stored(&run(&ops).0).values() {
            let mut bytes = node.to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            if let Ok(node) = parse_node(&bytes) {
                prop_assert_eq!(node.to_bytes(), bytes);
            }
        }
    }
}

/// A trie with the shape of a state: keys of 31, 32 and more bytes, short and long values, markers.
fn state_like() -> (Trie, Vec<Vec<u8>>) {
    let mut trie = Trie::new();
    let mut keys = Vec::new();
    for index in 0u8..60 {
        let account = [&[0][..], &keccak256([index])[..30]].concat();
        trie.put(&account, vec![index; 7]);
        if index % 3 == 0 {
            trie.put(&[&account[..], &[0]].concat(), vec![1]);
            trie.put(&[&account[..], &[0x80]].concat(), vec![index; 90]);
            for slot in 0..4u8 {
                let key = [&account[..], &[0], &keccak256([index, slot])[..10], &[slot]].concat();
                trie.put(&key, vec![slot + 1; 1 + usize::from(slot) * 9]);
                keys.push(key);
            }
            keys.push([&account[..], &[0x80]].concat());
            keys.push([&account[..], &[0]].concat());
        }
        keys.push(account);
    }
    keys.extend((0u8..20).map(|index| [&[0][..], &keccak256([index, 1, 1])[..30]].concat()));
    (trie, keys)
}

/// Every change of a byte in a sample of proofs is refused. The proofs contain nodes and values, raw and
/// wrapped, with and without listed embedded nodes.
#[test]
fn every_changed_byte_is_refused() {
    let (trie, keys) = state_like();
    let root = trie.root();
    for (count, key) in keys.iter().step_by(23).enumerate() {
        let mut nodes: Vec<Vec<u8>> = trie.proof(key).iter().map(|node| node.to_vec()).collect();
        let mut copy = None;
        let last = nodes.last().unwrap().clone();
        let parsed = parse_node(&last).unwrap();
        for child in [parsed.left, parsed.right] {
            // The one on the way is accepted beside its parent, the other is not.
            if let Some(Child::Embedded(bytes)) = child {
                let listed = [&nodes[..], &[bytes.to_vec()]].concat();
                if verify_path(root, key, &listed).is_ok() {
                    copy = Some(bytes.to_vec());
                }
            }
        }
        nodes.extend(copy);
        if count % 2 == 1 {
            nodes.reverse();
        }
        if count % 3 == 1 {
            nodes = nodes.iter().map(|node| alloy_rlp::encode(&node[..])).collect();
        }
        let value = trie.get(key).filter(|value| value.len() > 32).map(|value| value.to_vec());
        let good = verify_proof(root, key, &nodes, value.as_deref()).unwrap();
        assert_eq!(good.value(), trie.get(key).map(|value| &value[..]));
        let values: Vec<Vec<u8>> = value.iter().cloned().collect();
        verify_multiproof(root, &[key], &nodes, &values).unwrap();
        for node in 0..nodes.len() {
            for at in 0..nodes[node].len() {
                let old = nodes[node][at];
                for change in 1..=255u8 {
                    let mut changed = nodes.clone();
                    changed[node][at] = old ^ change;
                    let result = verify_proof(root, key, &changed, value.as_deref());
                    assert!(result.is_err(), "key {count} node {node} byte {at} change {change:02x}");
                    if change == 0x80 || change == 1 {
                        assert!(verify_multiproof(root, &[key], &changed, &values).is_err());
                    }
                }
            }
        }
        for at in 0..value.as_ref().map_or(0, Vec::len) {
            let mut changed = value.clone().unwrap();
            changed[at] ^= 1;
            assert!(verify_proof(root, key, &nodes, Some(&changed)).is_err());
            assert!(verify_multiproof(root, &[key], &nodes, &[changed]).is_err());
        }
    }
}

/// The proof of a key proves nothing about another key, unless both have the same path.
#[test]
fn a_proof_does_not_verify_for_another_key() {
    let (trie, keys) = state_like();
    for key in &keys {
        let proof = trie.proof(key);
        for other in keys.iter().step_by(7) {
            if let Ok(proven) = verify_path(trie.root(), other, &proof) {
                assert_eq!(trie.proof(other), proof);
                assert_eq!(matches!(proven, Leaf::Absent), trie.get(other).is_none());
            }
        }
    }
}

/// Clones share nodes, and several threads can hash a trie at the same time.
#[test]
fn a_trie_can_be_hashed_by_several_threads() {
    let (trie, _) = state_like();
    let expected = state_like().0.root();
    let threads: Vec<_> =
        (0..4).map(|_| trie.clone()).map(|trie| std::thread::spawn(move || trie.root())).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
    assert_eq!(trie.root(), expected);
}
