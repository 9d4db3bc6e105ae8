//! One test for each strictness rule of trie proofs. Each input breaks only the rule in the test's name.

use crate::support;

use rootlight::trie::limits::*;
use rootlight::trie::*;
use rootlight::types::{B256, Bytes, keccak256};
use support::nodes::{accepted, cat, leaf};

const NONE: &[&[u8]] = &[];

// ---- proofs of one key ----

/// A trie with short and long values, embedded nodes, and keys that are prefixes of other keys.
fn sample() -> Trie {
    let mut trie = Trie::new();
    for index in 0u8..40 {
        let key = keccak256([index]);
        trie.put(&key[..8], vec![index + 1; 1 + usize::from(index)]);
        trie.put(&cat(&[&key[..8], &[0]]), vec![1]);
    }
    trie
}

/// Key, value and proof of entry `index` of the sample. Values from entry 32 on have more than 32 bytes.
fn entry(index: u8) -> (Trie, Vec<u8>, Bytes, Vec<Bytes>) {
    let trie = sample();
    let key = keccak256([index])[..8].to_vec();
    let value = trie.get(&key).unwrap().clone();
    let proof = trie.proof(&key);
    assert!(proof.len() >= 4);
    (trie, key, value, proof)
}

#[test]
fn proof_with_missing_nodes() {
    let (trie, key, _, proof) = entry(3);
    let last = proof.len() - 1;
    let hash = keccak256(&proof[last]);
    assert_eq!(verify_path(trie.root(), &key, &proof[..last]), Err(ProofError::Missing { hash }));
    assert_eq!(verify_path(trie.root(), &key, NONE), Err(ProofError::Missing { hash: trie.root() }));
}

#[test]
fn proof_under_another_root() {
    let (_, key, _, proof) = entry(3);
    let root = B256::repeat_byte(1);
    let found = verify_path(root, &key, &proof);
    assert!(matches!(found, Err(ProofError::HashMismatch { expected, .. }) if expected == root));
    let one = &proof[..1];
    let expected = ProofError::HashMismatch { index: 0, expected: root, found: keccak256(&one[0]) };
    assert_eq!(verify_path(root, &key, one), Err(expected));
}

#[test]
fn proof_with_a_node_of_another_key() {
    let (trie, key, _, proof) = entry(3);
    let (_, _, _, other) = entry(4);
    let mut mixed = proof.clone();
    let last = mixed.len() - 1;
    mixed[last] = other.last().unwrap().clone();
    let expected = ProofError::HashMismatch {
        index: last,
        expected: keccak256(&proof[last]),
        found: keccak256(&mixed[last]),
    };
    assert_eq!(verify_path(trie.root(), &key, &mixed), Err(expected));
}

#[test]
fn proof_with_an_unused_node() {
    let (trie, key, _, proof) = entry(3);
    let extra = Bytes::from(leaf(3));
    let after = [&proof[..], std::slice::from_ref(&extra)].concat();
    let unused = |index| Err(ProofError::UnusedNode { index });
    assert_eq!(verify_path(trie.root(), &key, &after), unused(proof.len()));
    let mut leaf_first: Vec<Bytes> = proof.iter().rev().cloned().collect();
    leaf_first.insert(0, extra.clone());
    assert_eq!(verify_path(trie.root(), &key, &leaf_first), unused(0));
    let absent = [0xffu8; 3];
    let mut proof = trie.proof(&absent);
    assert_eq!(verify_path(trie.root(), &absent, &proof), Ok(Leaf::Absent));
    proof.push(extra);
    assert_eq!(verify_path(trie.root(), &absent, &proof), unused(proof.len() - 1));
}

#[test]
fn proof_of_an_empty_trie() {
    assert_eq!(verify_path(EMPTY_ROOT, &[1], NONE), Ok(Leaf::Absent));
    assert_eq!(verify_path(EMPTY_ROOT, &[1], &[[0x80]]), Err(ProofError::UnusedNode { index: 0 }));
    let empty: &[&[u8]] = NONE;
    assert!(verify_multiproof(EMPTY_ROOT, &[[1]], empty, empty).unwrap().is_empty());
    let one = verify_multiproof(EMPTY_ROOT, &[[1]], &[leaf(2)], empty);
    assert_eq!(one, Err(ProofError::UnusedNode { index: 0 }));
}

/// A key that ends in an embedded node. The node is also listed, as in receipt proofs.
#[test]
fn embedded_node_listed_again() {
    let trie = sample();
    let key = cat(&[&keccak256([5])[..8], &[0]]);
    let mut proof = trie.proof(&key);
    let root = trie.root();
    let value = Ok(Leaf::Inline(&[1]));
    assert_eq!(verify_path(root, &key, &proof), value);
    let Some(Child::Embedded(inside)) = parse_node(&proof[proof.len() - 1]).unwrap().left else { panic!() };
    let inside = Bytes::copy_from_slice(inside);
    proof.push(inside.clone());
    assert_eq!(verify_path(root, &key, &proof), value);
    let reversed: Vec<_> = proof.iter().rev().cloned().collect();
    assert_eq!(verify_path(root, &key, &reversed), value);
    assert!(verify_multiproof(root, &[&key], &reversed, NONE).is_ok());
    let twice = [&proof[..], std::slice::from_ref(&inside)].concat();
    assert_eq!(verify_path(root, &key, &twice), Err(ProofError::UnusedNode { index: proof.len() }));

    // The listed node has another value than the one embedded in the parent.
    let last = proof.len() - 1;
    let mut forged = inside.to_vec();
    *forged.last_mut().unwrap() ^= 1;
    accepted(&forged);
    proof[last] = forged.into();
    assert_eq!(verify_path(root, &key, &proof), Err(ProofError::EmbeddedDiffers { index: last }));
    let set = verify_multiproof(root, &[&key], &proof, NONE);
    assert_eq!(set, Err(ProofError::UnusedNode { index: last }));
}

#[test]
fn node_that_does_not_parse() {
    let bad = leaf(33);
    let error = NodeError { part: NodePart::Itself, rule: NodeRule::InlineValueTooLong(33) };
    let refused = verify_path(keccak256(&bad), &[], std::slice::from_ref(&bad));
    assert_eq!(refused, Err(ProofError::Node(error)));
    let set = verify_multiproof(keccak256(&bad), &[[0u8; 0]], &[bad], NONE);
    assert_eq!(set, Err(ProofError::Node(error)));
}

#[test]
fn too_many_nodes() {
    let (trie, key, _, _) = entry(3);
    let many = vec![leaf(1); MAX_PROOF_NODES + 1];
    let max = MAX_PROOF_NODES;
    let expected = ProofError::TooManyNodes { count: max + 1, max };
    assert_eq!(verify_path(trie.root(), &key, &many), Err(expected));
    assert_eq!(receipt_index(trie.root(), &many, &[1]), Err(expected.into()));
    let max = MAX_MULTIPROOF_NODES;
    let many = vec![leaf(1); max + 1];
    let expected = ProofError::TooManyNodes { count: max + 1, max };
    assert_eq!(verify_multiproof(trie.root(), &[key], &many, NONE), Err(expected));
}

#[test]
fn key_longer_than_any() {
    let (trie, _, _, proof) = entry(3);
    let key = [0; MAX_KEY_BYTES + 1];
    let expected = ProofError::KeyTooLong { len: key.len(), max: MAX_KEY_BYTES };
    assert_eq!(verify_path(trie.root(), &key, &proof), Err(expected));
    assert_eq!(verify_multiproof(trie.root(), &[key], &proof, NONE), Err(expected));
}

#[test]
fn too_many_keys() {
    let keys = vec![[0u8; 1]; MAX_MULTIPROOF_KEYS + 1];
    let expected = ProofError::TooManyKeys { count: keys.len(), max: MAX_MULTIPROOF_KEYS };
    assert_eq!(verify_multiproof(EMPTY_ROOT, &keys, NONE, NONE), Err(expected));
}

#[test]
fn too_many_bytes_of_values() {
    let (trie, key, _, proof) = entry(35);
    let values = [vec![0; MAX_LONG_VALUE_BYTES + 1]];
    let expected = ProofError::TooManyBytes {
        what: "long values",
        bytes: MAX_LONG_VALUE_BYTES + 1,
        max: MAX_LONG_VALUE_BYTES,
    };
    assert_eq!(verify_multiproof(trie.root(), &[key], &proof, &values), Err(expected));
}

#[test]
fn too_large_node_is_refused_before_hashing() {
    let big = vec![0x40; MAX_NODE_BYTES + 1];
    let rule = NodeRule::TooLarge(MAX_NODE_BYTES + 1);
    let expected = Err(ProofError::Node(NodeError { part: NodePart::Itself, rule }));
    assert_eq!(unwrap_node(&big), expected.map(|(): ()| &[][..]));
    assert!(unwrap_node(&alloy_rlp::encode(big.as_slice())).is_err());
    assert!(unwrap_node(&big[1..]).is_ok());
}

#[test]
fn wrapping_must_be_one_rlp_string_in_its_shortest_form() {
    for len in [2usize, 3, 55, 56, 255, 256, MAX_NODE_BYTES] {
        let node = vec![0x40; len];
        let wrapped = alloy_rlp::encode(node.as_slice());
        assert_eq!(unwrap_node(&wrapped), Ok(&node[..]));
        assert_eq!(unwrap_node(&node), Ok(&node[..]));
        let bad = |bytes: &[u8]| {
            assert_eq!(unwrap_node(bytes), Err(ProofError::BadWrapping { len: bytes.len() }));
        };
        bad(&wrapped[..wrapped.len() - 1]);
        bad(&cat(&[&wrapped, &[0]]));
    }
    let bad = |head: &[u8], len: usize| {
        let bytes = cat(&[head, &vec![0x40; len]]);
        assert_eq!(unwrap_node(&bytes), Err(ProofError::BadWrapping { len: bytes.len() }));
    };
    bad(&[0x81], 1);
    bad(&[0xb8, 55], 55);
    bad(&[0xb9, 0, 255], 255);
    // Neither a node nor a string: it is returned unchanged and refused by the node parser.
    for bytes in [&[0x80u8][..], &[0xc0], &[0xf8, 2, 1, 1], &[0xb8], &[0xb9, 1], &[0xba, 0, 0, 2, 0x40, 7]] {
        assert!(unwrap_node(bytes).is_err() || parse_node(bytes).is_err());
        assert!(verify_path(keccak256(bytes), &[], &[bytes]).is_err());
    }
}

#[test]
fn long_value_rules() {
    let (trie, key, value, proof) = entry(35);
    let (root, hash) = (trie.root(), keccak256(&value));
    assert_eq!(verify_proof(root, &key, &proof, Some(&value)).unwrap().value(), Some(&value[..]));
    let missing = ProofError::LongValueMissing { hash, len: 36 };
    assert_eq!(verify_proof(root, &key, &proof, None), Err(missing));
    let found = keccak256([1]);
    let other = ProofError::LongValueHash { expected: hash, found };
    assert_eq!(verify_proof(root, &key, &proof, Some(&[1])), Err(other));
    let set = verify_multiproof(root, &[&key], &proof, &[[1]]);
    assert_eq!(set, Err(ProofError::UnusedValue { index: 0 }));
    // Without the value, the set still proves its hash and length.
    let set = verify_multiproof(root, &[&key], &proof, NONE).unwrap();
    assert_eq!(lookup(&set, root, &key), Ok(Lookup::FoundLong { hash, len: 36 }));
    assert_eq!(lookup_value(&set, root, &key), Err(WalkError::Missing(hash)));
}

#[test]
fn long_value_of_no_key() {
    let (trie, key, value, proof) = entry(3);
    let unused = ProofError::UnusedValue { index: 0 };
    assert_eq!(verify_proof(trie.root(), &key, &proof, Some(&value)), Err(unused));
    let set = verify_multiproof(trie.root(), &[&key], &proof, &[&value]);
    assert_eq!(set, Err(unused));
    let absent = [0xff; 3];
    let proof = trie.proof(&absent);
    assert_eq!(verify_proof(trie.root(), &absent, &proof, Some(&value)), Err(unused));
}

#[test]
fn long_value_of_another_length() {
    let value = [9; 40];
    let node = cat(&[&[0x60], keccak256(value).as_slice(), &[0, 0, 41]]);
    let (root, nodes) = (keccak256(&node), [node]);
    let expected = ProofError::LongValueLength { expected: 41, found: 40 };
    assert_eq!(verify_proof(root, &[], &nodes, Some(&value)), Err(expected));
    assert_eq!(verify_multiproof(root, &[[0u8; 0]], &nodes, &[value]), Err(expected));
    let mut source = std::collections::BTreeMap::new();
    source.insert(root, Bytes::from(nodes[0].clone()));
    source.insert(keccak256(value), Bytes::from(value));
    let error = WalkError::ValueLength { hash: keccak256(value), expected: 41, found: 40 };
    assert_eq!(lookup_value(&source, root, &[]), Err(error));
}

/// The key ends inside a path, ends at a node without value, continues beyond a leaf, or diverges from the
/// path.
#[test]
fn absence_is_proven_in_every_case() {
    let mut trie = Trie::new();
    trie.put(&[0b1010_1010, 1], vec![1]);
    trie.put(&[0b1010_1010, 0x80], vec![2]);
    trie.put(&[0b1010_1010, 1, 7], vec![3; 50]);
    for key in [&[][..], &[0b1010_1010], &[0b1010_1011], &[0b1010_1010, 2], &[0b1010_1010, 1, 7, 0], &[0]] {
        let proof = trie.proof(key);
        assert_eq!(verify_path(trie.root(), key, &proof), Ok(Leaf::Absent), "{key:?}");
        assert_eq!(trie.get(key), None);
    }
    // A node without a value exists nevertheless.
    let mut source = std::collections::BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| {
        source.insert(hash, bytes);
    });
    let at = lookup_node(&source, trie.root(), &[0b1010_1010]).unwrap().unwrap();
    assert_eq!((at.hash, at.value), (trie.root(), Lookup::Absent));
    assert_eq!(trie.node_hash(&[0b1010_1010]), Some(trie.root()));
    assert_eq!(lookup_node(&source, trie.root(), &[0b1010_1011]), Ok(None));
}

#[test]
fn sources_with_missing_or_invalid_nodes() {
    let trie = sample();
    let key = keccak256([3])[..8].to_vec();
    let mut source = std::collections::BTreeMap::new();
    let root = trie.root();
    assert_eq!(lookup(&source, root, &key), Err(WalkError::Missing(root)));
    assert_eq!(lookup(&source, EMPTY_ROOT, &key), Ok(Lookup::Absent));
    source.insert(root, Bytes::from_static(&[0]));
    let error = NodeError { part: NodePart::Itself, rule: NodeRule::Version(0) };
    assert_eq!(lookup(&source, root, &key), Err(WalkError::Bad { hash: root, error }));
    trie.for_each_stored(&mut |hash, bytes| {
        source.insert(hash, bytes);
    });
    assert_eq!(prove(&source, root, &key), Ok(trie.proof(&key)));
    assert_eq!(lookup(&source, root, &key), Ok(Lookup::Found(trie.get(&key).unwrap().clone())));
}

// ---- multi-proofs ----

#[test]
fn multiproof_without_a_node_of_one_key() {
    let (trie, key, _, proof) = entry(3);
    let (_, other, _, _) = entry(4);
    let result = verify_multiproof(trie.root(), &[&key, &other], &proof, NONE);
    assert!(matches!(result, Err(ProofError::Missing { .. })));
    let result = verify_multiproof(trie.root(), &[&key], &proof[1..], NONE);
    assert_eq!(result, Err(ProofError::Missing { hash: trie.root() }));
}

#[test]
fn multiproof_with_a_node_of_no_key() {
    let (trie, key, _, proof) = entry(3);
    let (_, _, _, other) = entry(4);
    let both = [&other[..], &proof[..]].concat();
    let result = verify_multiproof(trie.root(), &[&key], &both, NONE);
    assert!(matches!(result, Err(ProofError::UnusedNode { index }) if index < other.len()));
    // The embedded node of a key that is not in the list.
    let marker = cat(&[&keccak256([5])[..8], &[0]]);
    let parent = trie.proof(&marker);
    let Some(Child::Embedded(inside)) = parse_node(&parent[parent.len() - 1]).unwrap().left else { panic!() };
    let listed = [&proof[..], &[Bytes::copy_from_slice(inside)]].concat();
    let result = verify_multiproof(trie.root(), &[&key], &listed, NONE);
    assert_eq!(result, Err(ProofError::UnusedNode { index: proof.len() }));
}

#[test]
fn multiproof_of_no_key_proves_nothing() {
    let (trie, _, _, proof) = entry(3);
    let keys: &[&[u8]] = NONE;
    assert!(verify_multiproof(trie.root(), keys, NONE, NONE).unwrap().is_empty());
    let result = verify_multiproof(trie.root(), keys, &proof, NONE);
    assert!(matches!(result, Err(ProofError::UnusedNode { .. })));
}

#[test]
fn multiproofs_can_be_merged() {
    let (trie, key, value, proof) = entry(35);
    let (_, other, _, more) = entry(4);
    let mut set = verify_multiproof(trie.root(), &[&key], &proof, &[&value]).unwrap();
    let second = verify_multiproof(trie.root(), &[&other], &more, NONE).unwrap();
    set.merge(second).unwrap();
    assert_eq!(lookup_value(&set, trie.root(), &key), Ok(Some(value.clone())));
    assert_eq!(lookup_value(&set, trie.root(), &other), Ok(trie.get(&other).cloned()));
    let together = [&proof[..], &more[..]].concat();
    let once = verify_multiproof(trie.root(), &[key, other], &together, &[value]).unwrap();
    assert_eq!(set, once);
    assert_eq!(set.total_bytes(), once.total_bytes());
}

// ---- receipts ----

fn receipts(count: u64) -> (Trie, Vec<Vec<u8>>) {
    let receipts: Vec<Vec<u8>> = (0..count).map(|at| vec![at as u8; 270 + at as usize]).collect();
    (ordered_trie(&receipts), receipts)
}

#[test]
fn receipt_proofs_of_long_lists() {
    let (trie, receipts) = receipts(200);
    assert_eq!(ordered_root(&receipts, NodeFormat::Rskip107), trie.root());
    assert_eq!(ordered_root(&receipts, NodeFormat::Orchid), trie.orchid_root(false));
    assert_ne!(trie.root(), trie.orchid_root(false));
    for (index, receipt) in receipts.iter().enumerate() {
        let mut nodes = trie.proof(&index_key(index as u64));
        nodes.reverse();
        prove_receipt(trie.root(), index as u64, &nodes, receipt).unwrap();
    }
    assert_eq!(index_key(0), [0x80]);
    assert_eq!(index_key(127), [127]);
    assert_eq!(index_key(128), [0x81, 128]);
    assert_eq!(ordered_root(NONE, NodeFormat::Rskip107), EMPTY_ROOT);
    assert_eq!(ordered_root(NONE, NodeFormat::Orchid), EMPTY_ROOT);
}

#[test]
fn receipt_with_an_index_beyond_the_list() {
    let (trie, receipts) = receipts(5);
    let nodes = trie.proof(&index_key(7));
    let absent = Err(ReceiptProofError::Absent(7));
    assert_eq!(prove_receipt(trie.root(), 7, &nodes, &receipts[0]), absent);
}

#[test]
fn receipt_of_another_index() {
    let (trie, receipts) = receipts(5);
    let nodes = trie.proof(&index_key(3));
    let error =
        ProofError::LongValueHash { expected: keccak256(&receipts[3]), found: keccak256(&receipts[2]) };
    assert_eq!(prove_receipt(trie.root(), 3, &nodes, &receipts[2]), Err(error.into()));
}

/// A root is stored under its own hash even if it is short, and it is listed in proofs.
#[test]
fn short_root_is_not_embedded() {
    let mut trie = Trie::new();
    trie.put(&[5], vec![1]);
    let bytes = Bytes::from_static(&[0x50, 7, 5, 1]);
    assert_eq!(trie.proof(&[5]), std::slice::from_ref(&bytes));
    let mut stored = Vec::new();
    trie.for_each_stored(&mut |hash, bytes| stored.push((hash, bytes)));
    assert_eq!(stored, [(trie.root(), bytes)]);
}

/// All keys below a prefix are deleted, even if the prefix ends inside a path.
#[test]
fn subtree_deletion() {
    let mut trie = Trie::new();
    for key in [&[1, 2, 3][..], &[1, 2, 3, 4], &[1, 2, 9], &[1, 7]] {
        trie.put(key, vec![1]);
    }
    let whole = trie.clone();
    assert!(!trie.delete_subtree(&[1, 2, 3, 4, 5]) && !trie.delete_subtree(&[2]));
    assert_eq!(trie.root(), whole.root());
    assert!(trie.delete_subtree(&[1, 2, 3]) && trie.get(&[1, 2, 3, 4]).is_none());
    assert!(trie.delete_subtree(&[1, 2]) && trie.get(&[1, 2, 9]).is_none());
    assert!(trie.get(&[1, 7]).is_some() && trie.delete_subtree(&[1]));
    assert_eq!(trie.root(), EMPTY_ROOT);
    assert_eq!(whole.get(&[1, 2, 3, 4]).map(|value| &value[..]), Some(&[1u8][..]));
}

#[test]
fn receipt_short_enough_to_be_inside_the_node() {
    let trie = ordered_trie(&[[7u8; 20], [8; 20]]);
    let (root, nodes) = (trie.root(), trie.proof(&index_key(1)));
    assert_eq!(prove_receipt(root, 1, &nodes, &[8; 20]), Ok(()));
    let other = Err(ReceiptProofError::OtherValue);
    assert_eq!(prove_receipt(root, 1, &nodes, &[7; 20]), other);
    // The leaf must be listed to determine the index.
    assert_eq!(receipt_index(root, &nodes, &[8; 20]), Err(ReceiptProofError::KeyNotAnIndex));
    let Some(Child::Embedded(leaf)) = parse_node(&nodes[0]).unwrap().left else { panic!() };
    let listed = [Bytes::copy_from_slice(leaf), nodes[0].clone()];
    assert_eq!(receipt_index(root, &listed, &[8; 20]), Ok(1));
    assert_eq!(receipt_index(root, &listed, &[7; 20]), Err(ReceiptProofError::OtherValue));
}

#[test]
fn receipt_under_a_key_that_is_not_an_index() {
    let value = vec![5; 300];
    for (key, expected) in [
        (&[0x81, 0x05][..], ReceiptProofError::KeyNotAnIndex),
        (&[0x05, 0x05], ReceiptProofError::KeyNotAnIndex),
        (&[], ReceiptProofError::KeyNotAnIndex),
        (&[0x00], ReceiptProofError::KeyNotAnIndex),
        (&[0xc1, 0x05], ReceiptProofError::KeyNotAnIndex),
    ] {
        let mut trie = Trie::new();
        trie.put(key, value.clone());
        assert_eq!(receipt_index(trie.root(), &trie.proof(key), &value), Err(expected));
    }
    let odd = cat(&[&[0x70, 3, 0b1010_0000], keccak256(&value).as_slice(), &[0, 1, 44]]);
    let expected = Err(ReceiptProofError::KeyNotWholeBytes { bits: 4 });
    assert_eq!(receipt_index(keccak256(&odd), &[odd], &value), expected);
}

#[test]
fn receipt_nodes_that_are_not_linked() {
    let (trie, receipts) = receipts(20);
    let good = trie.proof(&index_key(9));
    let mut nodes: Vec<Bytes> = good.iter().rev().cloned().collect();
    let unlinked = |index| Err(ReceiptProofError::Unlinked { index });
    nodes[1] = Bytes::from(leaf(4));
    assert_eq!(receipt_index(trie.root(), &nodes, &receipts[9]), unlinked(1));
    let missing = ReceiptProofError::Proof(ProofError::Missing { hash: trie.root() });
    assert_eq!(receipt_index(trie.root(), NONE, &receipts[9]), Err(missing));
}

/// The nodes are linked, but under another root.
#[test]
fn receipt_under_another_root() {
    let (trie, receipts) = receipts(1);
    let nodes = trie.proof(&index_key(0));
    assert_eq!(receipt_index(trie.root(), &nodes, &receipts[0]), Ok(0));
    let root = B256::repeat_byte(3);
    let found = trie.root();
    let error = ProofError::HashMismatch { index: 0, expected: root, found };
    assert_eq!(receipt_index(root, &nodes, &receipts[0]), Err(error.into()));
}
