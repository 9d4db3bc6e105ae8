//! Compares the trie with recorded data: tries built by the reference node, state and receipt proofs of a
//! recorded chain, complete states rebuilt from their keys and values, and real testnet and mainnet data.
//!
//! `tests/vectors/trie.json` is a trimmed copy of the recorded tries. Everything else is read from
//! `$ROOTLIGHT_SHARED` (default `../shared`); tests are skipped with a notice if it does not exist.

use crate::support::shared;
use rootlight::trie::*;
use rootlight::types::{B256, Bytes, U256, keccak256};
use serde_json::Value;
use std::collections::BTreeMap;

/// The text of a shared file, or `None` with a notice.
fn read(path: &str) -> Option<String> {
    let path = shared()?.join(path);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: {} is not here", path.display());
    }
    text
}

fn json(path: &str) -> Option<Value> {
    read(path).map(|text| serde_json::from_str(&text).unwrap())
}

fn lines(path: &str) -> Option<Vec<Value>> {
    read(path).map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn bytes(value: &Value) -> Vec<u8> {
    hex(value.as_str().unwrap())
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text.trim_start_matches("0x")).unwrap()
}

fn hash(value: &Value) -> B256 {
    B256::from_slice(&bytes(value))
}

fn list(value: &Value) -> Vec<Vec<u8>> {
    value.as_array().unwrap().iter().map(bytes).collect()
}

/// State keys, computed here so that these tests depend on the trie only.
fn account_key(address: &[u8]) -> Vec<u8> {
    [&[0], &keccak256(address)[..10], address].concat()
}

fn slot_key(address: &[u8], slot: &[u8]) -> Vec<u8> {
    let zeros = slot.iter().take_while(|byte| **byte == 0).count().min(31);
    [&account_key(address)[..], &[0], &keccak256(slot)[..10], &slot[zeros..]].concat()
}

fn stripped(value: &[u8]) -> Vec<u8> {
    value.iter().copied().skip_while(|byte| *byte == 0).collect()
}

/// RLP of an account: the nonce is unsigned, the balance has a sign bit (zero is one byte 00).
fn account_value(nonce: &str, balance: &str) -> Vec<u8> {
    let nonce: u64 = nonce.parse().unwrap();
    let balance: U256 = balance.parse().unwrap();
    let mut signed = stripped(&balance.to_be_bytes::<32>());
    if signed.first().is_none_or(|first| first & 0x80 != 0) {
        signed.insert(0, 0);
    }
    let mut payload = alloy_rlp::encode(nonce);
    payload.extend(alloy_rlp::encode(signed.as_slice()));
    let mut out = Vec::new();
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend(payload);
    out
}

/// Builds the trie of a recorded case from its operations.
fn build(ops: &Value) -> Trie {
    let mut trie = Trie::new();
    for op in ops.as_array().unwrap() {
        let text = |at: usize| op[at].as_str().unwrap();
        let address = hex(text(1));
        let account = account_key(&address);
        match text(0) {
            "acc" => trie.put(&account, account_value(text(2), text(3))),
            "del" => {
                trie.delete_subtree(&account);
            }
            "slot" => trie.put(&slot_key(&address, &hex(text(2))), stripped(&hex(text(3)))),
            "bytes" => trie.put(&slot_key(&address, &hex(text(2))), hex(text(3))),
            "code" => trie.put(&[&account[..], &[0x80]].concat(), hex(text(2))),
            other => panic!("operation {other}"),
        }
        if matches!(text(0), "slot" | "bytes" | "code") {
            trie.put(&[&account[..], &[0]].concat(), vec![1]);
        }
    }
    trie
}

/// Checks a recorded proof in every accepted form.
fn check_proof(root: B256, key: &[u8], value: Option<&[u8]>, nodes: &[Vec<u8>]) {
    let long = value.filter(|value| value.len() > 32);
    let proven = verify_proof(root, key, nodes, long).unwrap();
    assert_eq!(proven.value(), value);
    let reversed: Vec<Vec<u8>> = nodes.iter().rev().cloned().collect();
    assert_eq!(verify_proof(root, key, &reversed, long).unwrap(), proven);
    let wrapped: Vec<Vec<u8>> = nodes.iter().map(|node| alloy_rlp::encode(node.as_slice())).collect();
    assert_eq!(verify_proof(root, key, &wrapped, long).unwrap(), proven);
    let values: Vec<&[u8]> = long.into_iter().collect();
    let set = verify_multiproof(root, &[key], &reversed, &values).unwrap();
    assert_eq!(lookup_value(&set, root, key).unwrap().map(|value| value.to_vec()), value.map(<[u8]>::to_vec));
    for node in nodes {
        assert_eq!(parse_node(node).unwrap().to_bytes(), *node);
    }
    if !nodes.is_empty() {
        assert!(verify_path(root, key, &nodes[1..]).is_err());
        let twice = [nodes, &nodes[..1]].concat();
        assert!(verify_path(root, key, &twice).is_err());
    }
}

fn check_cases(cases: &Value) -> usize {
    let mut proofs = 0;
    for case in cases.as_array().unwrap() {
        let root = hash(&case["root"]);
        let trie = build(&case["ops"]);
        assert_eq!(trie.root(), root);
        assert_eq!(trie.orchid_root(false), hash(&case["orchid"]));
        for proof in case["proofs"].as_array().unwrap() {
            let key = bytes(&proof["key"]);
            let nodes = list(&proof["nodes"]);
            let value = proof["value"].as_str().map(hex);
            check_proof(root, &key, value.as_deref(), &nodes);
            assert_eq!(trie.get(&key).map(|value| value.to_vec()), value);
            let ours = trie.proof(&key);
            assert_eq!(ours.iter().map(|node| node.to_vec()).collect::<Vec<_>>(), nodes[..ours.len()]);
            assert!(nodes.len() <= ours.len() + 1);
            proofs += 1;
        }
    }
    proofs
}

/// All tries and all 1,023 proofs of the reference node.
#[test]
fn tries_and_proofs_equal_the_reference() {
    let Some(vectors) = json("vectors/trie_vectors.json") else { return };
    assert_eq!(check_cases(&vectors["cases"]), 1_023);
}

/// The smaller ones of these tries, which are part of the repository.
#[test]
fn a_sample_of_tries_and_proofs_equals_the_reference() {
    let vectors: Value = serde_json::from_str(include_str!("../vectors/trie.json")).unwrap();
    assert_eq!(check_cases(&vectors["cases"]), 273);
}

/// State proofs of accounts, code, storage and markers of the recorded chain.
#[test]
fn state_proofs_of_the_chain() {
    let Some(proofs) = lines("vectors/chain/state_proofs.jsonl") else { return };
    assert_eq!(proofs.len(), 576);
    for proof in proofs {
        let (root, key, nodes) = (hash(&proof["root"]), bytes(&proof["key"]), list(&proof["nodes"]));
        let value = proof["value"].as_str().map(hex);
        check_proof(root, &key, value.as_deref(), &nodes);
        let outcome = proof["outcome"].as_str().unwrap();
        assert_eq!(value.is_some(), outcome == "present", "{outcome}");
        let set: BTreeMap<B256, Bytes> =
            nodes.iter().map(|node| (keccak256(node), node.clone().into())).collect();
        let found = lookup_node(&set, root, &key).unwrap();
        assert_eq!(found.is_some(), matches!(outcome, "present" | "node exists, no value"), "{outcome}");
        if let Some(found) = found {
            assert_eq!(found.hash, keccak256(nodes.last().unwrap()));
        }
        for (node, info) in nodes.iter().zip(proof["info"].as_array().unwrap()) {
            assert_eq!(keccak256(node), hash(&info["hash"]));
            assert_eq!(parse_node(node).unwrap().path.len() as u64, info["sharedPathBits"].as_u64().unwrap());
        }
    }
}

/// Rebuilds complete states from keys and values, and compares the root and every node, embedded ones
/// included.
#[test]
fn states_rebuilt_from_keys_and_values() {
    for block in [0, 1, 10, 122] {
        let Some(entries) = lines(&format!("vectors/chain/state_full_kv_{block}.jsonl")) else { return };
        let Some(nodes) = lines(&format!("vectors/chain/state_full_nodes_{block}.jsonl")) else { return };
        let mut trie = Trie::new();
        for entry in entries.iter().skip(1) {
            trie.put(&bytes(&entry["key"]), bytes(&entry["value"]));
        }
        assert_eq!(trie.root(), hash(&entries[0]["root"]), "block {block}");
        let mut ours = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| {
            ours.insert(hash, bytes);
        });
        let mut stored = 0;
        for node in &nodes {
            let message = bytes(&node["message"]);
            let embedded = node["embedded"].as_bool().unwrap();
            assert_eq!(ours.contains_key(&hash(&node["hash"])), !embedded);
            if !embedded {
                assert_eq!(ours[&hash(&node["hash"])], message);
                stored += 1;
            }
            assert_eq!(parse_node(&message).unwrap().to_bytes(), message);
            let bits = node["pathBits"].as_str().unwrap();
            if bits.len() % 8 == 0 {
                let key: Vec<u8> = (0..bits.len() / 8)
                    .map(|at| u8::from_str_radix(&bits[at * 8..at * 8 + 8], 2).unwrap())
                    .collect();
                assert!(trie.node_hash(&key).is_none_or(|found| found == hash(&node["hash"])));
            }
        }
        let long = entries.iter().skip(1).filter(|entry| bytes(&entry["value"]).len() > 32);
        let mut values: Vec<B256> = long.map(|entry| keccak256(bytes(&entry["value"]))).collect();
        values.sort();
        values.dedup();
        assert_eq!(ours.len(), stored + values.len(), "block {block}");
        let mut listed = Vec::new();
        trie.for_each(&mut |key, value| listed.push((key.to_vec(), value.to_vec())));
        let mut expected: Vec<_> =
            entries.iter().skip(1).map(|entry| (bytes(&entry["key"]), bytes(&entry["value"]))).collect();
        expected.sort();
        assert_eq!(listed, expected);
    }
}

/// Collects all keys and values below a node by walking its descendants.
fn walk(set: &BTreeMap<B256, Bytes>, node: &[u8], above: &[bool], out: &mut Vec<(Vec<bool>, Vec<u8>)>) {
    let node = parse_node(node).unwrap();
    let mut key = above.to_vec();
    key.extend((0..node.path.len()).map(|at| node.path.get(at).unwrap()));
    match node.value {
        rootlight::trie::Value::None => {}
        rootlight::trie::Value::Inline(value) => out.push((key.clone(), value.to_vec())),
        rootlight::trie::Value::Long { hash, len } => {
            let value = set[hash].to_vec();
            assert_eq!(value.len(), len as usize);
            out.push((key.clone(), value));
        }
    }
    for (child, bit) in [(node.left, false), (node.right, true)] {
        let mut key = key.clone();
        key.push(bit);
        match child {
            None => {}
            Some(Child::Hash(hash)) => walk(set, &set[hash], &key, out),
            Some(Child::Embedded(bytes)) => walk(set, bytes, &key, out),
        }
    }
}

fn packed(bits: &[bool]) -> Vec<u8> {
    assert_eq!(bits.len() % 8, 0);
    bits.chunks(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | u8::from(*bit))).collect()
}

/// Rebuilds the trie under a root from a store of nodes.
fn rebuild(set: &BTreeMap<B256, Bytes>, root: B256) -> Trie {
    let mut entries = Vec::new();
    if root != EMPTY_ROOT {
        walk(set, &set[&root], &[], &mut entries);
    }
    let mut trie = Trie::new();
    for (key, value) in entries {
        trie.put(&packed(&key), value);
    }
    trie
}

/// Every stored node of the recorded chain parses and encodes to the same bytes. The states of a sample of
/// blocks are rebuilt key by key and have the same root.
#[test]
fn stored_nodes_of_the_chain() {
    let Some(stored) = lines("vectors/chain/state_nodes.jsonl") else { return };
    let Some(blocks) = lines("vectors/chain/blocks.jsonl") else { return };
    let mut set = BTreeMap::new();
    for entry in stored {
        let bytes = Bytes::from(bytes(&entry["value"]));
        assert_eq!(keccak256(&bytes), hash(&entry["hash"]));
        set.insert(hash(&entry["hash"]), bytes);
    }
    let mut rebuilt = 0;
    for block in blocks.iter().take(648).step_by(9) {
        let root = hash(&block["response"]["result"]["stateRoot"]);
        assert_eq!(rebuild(&set, root).root(), root);
        rebuilt += 1;
    }
    assert_eq!(rebuilt, 72);
}

/// Receipt proofs of both recorded chains, with the raw receipt as the value.
#[test]
fn receipt_proofs_of_the_chains() {
    for (chain, count) in [("chain", 1_111), ("chain_v0", 1_264)] {
        let path = |name: &str| format!("vectors/{chain}/{name}.jsonl");
        let Some(proofs) = lines(&path("receipt_nodes")) else { return };
        let Some(blocks) = lines(&path("blocks")) else { return };
        let mut roots: BTreeMap<String, (B256, Vec<String>)> = BTreeMap::new();
        let mut side = if chain == "chain" { lines(&path("side_blocks")).unwrap() } else { Vec::new() };
        side.extend(lines(&path("blocks_byhash")).unwrap());
        for block in blocks.iter().chain(&side) {
            let block = &block["response"]["result"];
            let (Some(hash_text), Some(txs)) = (block["hash"].as_str(), block["transactions"].as_array())
            else {
                continue;
            };
            let ids = txs.iter().map(|tx| tx["hash"].as_str().or(tx.as_str()).unwrap().to_string()).collect();
            roots.insert(hash_text.to_string(), (hash(&block["receiptsRoot"]), ids));
        }
        let receipts: BTreeMap<String, Vec<u8>> = lines(&path("receipts_raw"))
            .unwrap()
            .iter()
            .filter(|entry| entry["response"]["result"].is_string())
            .map(|entry| {
                let id = entry["request"]["params"][0].as_str().unwrap().to_string();
                (id, bytes(&entry["response"]["result"]))
            })
            .collect();
        let (mut checked, mut seen) = (0, 0);
        for proof in &proofs {
            seen += 1;
            let block = proof["request"]["params"][0].as_str().unwrap();
            let id = proof["request"]["params"][1].as_str().unwrap();
            let (Some((root, ids)), Some(receipt)) = (roots.get(block), receipts.get(id)) else { continue };
            let nodes = list(&proof["response"]["result"]);
            let index = ids.iter().position(|other| other == id).unwrap() as u64;
            // A transaction can also be in a side block, with another receipt. The recorded raw receipt is
            // then not the one proven.
            if keccak256(receipt) != leaf_hash(&nodes[0]) {
                continue;
            }
            prove_receipt(*root, index, &nodes, receipt).unwrap();
            assert_eq!(receipt_index(*root, &nodes, receipt), Ok(index));
            assert!(prove_receipt(*root, index + 1, &nodes, receipt).is_err());
            checked += 1;
        }
        assert_eq!(seen, count);
        println!("{chain}: {checked} of {seen} proofs checked");
        assert!(checked * 100 >= seen * 95, "{checked} of {seen}");
    }
}

fn leaf_hash(node: &[u8]) -> B256 {
    match parse_node(node).unwrap().value {
        rootlight::trie::Value::Long { hash, .. } => *hash,
        other => panic!("{other:?}"),
    }
}

/// Rebuilds the complete state of the real testnet block 1 from its nodes.
#[test]
fn state_of_testnet_block_1() {
    let Some(block) = json("realdata/state/testnet_block1.json") else { return };
    let root = hash(&block["stateRoot"]);
    let mut set = BTreeMap::new();
    for stored in list(&block["nodes"]).into_iter().chain(list(&block["values"])) {
        set.insert(keccak256(&stored), Bytes::from(stored));
    }
    let trie = rebuild(&set, root);
    assert_eq!(trie.root(), root);
    let mut ours = BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| {
        ours.insert(hash, bytes);
    });
    // The file also lists embedded nodes.
    assert!(ours.iter().all(|(hash, bytes)| set.get(hash) == Some(bytes)));
    let mut keys = Vec::new();
    trie.for_each(&mut |key, _| keys.push(key.to_vec()));
    let nodes: Vec<Bytes> = set.values().cloned().collect();
    let proven = verify_multiproof(root, &keys, &nodes, &[] as &[Bytes]).unwrap();
    assert_eq!(proven.len(), ours.len());
}

/// The 37 recorded results of a strict check of receipt proofs.
#[test]
fn receipt_proofs_with_verdicts() {
    let Some(file) = json("realdata/proofs/powhsm_receipt_proofs.json") else { return };
    let proofs = file["proofs"].as_array().unwrap();
    assert_eq!(proofs.len(), 37);
    for proof in proofs {
        let nodes = list(&proof["nodes"]);
        let receipt = bytes(&proof["receipt"]);
        // Most entries state no root. The root is then the hash of the last node.
        let root = match proof["receiptsRoot"].as_str() {
            Some(root) => B256::from_slice(&hex(root)),
            None => keccak256(nodes.last().unwrap()),
        };
        let outcome = receipt_index(root, &nodes, &receipt);
        let found = match outcome {
            Ok(_) => "proves",
            Err(ReceiptProofError::KeyNotWholeBytes { .. }) => "key is not whole bytes",
            Err(ReceiptProofError::Proof(ProofError::LongValueLength { .. })) => {
                "leaf length differs from the receipt"
            }
            Err(_) => "receipt hash not under the root",
        };
        let verdict = proof["verdict"].as_str().unwrap();
        if proof["file"].as_str().unwrap().starts_with("604-") {
            // Refused as recorded, but for an earlier reason: the varint of the root's children size is not
            // minimal.
            let rule = NodeRule::VarintNotMinimal(NodeField::ChildrenSize, 0x7856_3412);
            let error = NodeError { part: NodePart::Itself, rule };
            assert_eq!(outcome, Err(ProofError::Node(error).into()));
            assert_ne!(verdict, "proves");
            continue;
        }
        assert_eq!(found, verdict, "{}", proof["name"]);
    }
}

/// Account and storage proofs of a draft of `eth_getProof`: leaf first and RLP-wrapped. It has no proofs of
/// absence, only an empty list, which must not be accepted as one.
#[test]
fn proofs_of_the_draft_of_eth_getproof_are_verified() {
    let Some(file) = json("vectors/getproof_draft.json") else { return };
    let root = hash(&file["block"]["stateRoot"]);
    let mut present = 0;
    for proof in file["proofs"].as_array().unwrap() {
        let result = &proof["resp"]["result"];
        let address = bytes(&result["address"]);
        let nodes = list(&result["accountProof"]);
        let key = account_key(&address);
        if nodes.is_empty() {
            assert_eq!(verify_proof(root, &key, &nodes, None), Err(ProofError::Missing { hash: root }));
        } else {
            let nonce = quantity(&result["nonce"]).to_string();
            let balance = quantity(&result["balance"]).to_string();
            let proven = verify_proof(root, &key, &nodes, None).unwrap();
            assert_eq!(proven.value(), Some(&account_value(&nonce, &balance)[..]));
            present += 1;
        }
        for slot in result["storageProof"].as_array().unwrap() {
            let nodes = list(&slot["proof"]);
            let key = slot_key(&address, &bytes(&slot["key"]));
            let value = quantity(&slot["value"]);
            if nodes.is_empty() {
                assert_eq!(value.to_string(), "0");
                assert!(verify_proof(root, &key, &nodes, None).is_err());
            } else {
                let proven = verify_proof(root, &key, &nodes, None).unwrap();
                assert_eq!(proven.value(), Some(&stripped(&value.to_be_bytes::<32>())[..]));
                present += 1;
            }
        }
    }
    println!("{present} proofs checked");
    assert!(present >= 6);
}

fn quantity(value: &Value) -> U256 {
    U256::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Known data of the mainnet genesis: the old state root is that of an orchid trie with the secure flag on.
/// Its keys are hashes of addresses, its values are RLP([nonce, balance, storage root, code hash]).
#[test]
fn the_old_state_root_of_the_mainnet_genesis_is_computed() {
    let bridge = hex("0000000000000000000000000000000001000006");
    let short = account_value("0", "21000000000000000000000000");
    let mut payload = short[1..].to_vec();
    payload.extend(alloy_rlp::encode(EMPTY_ROOT));
    payload.extend(alloy_rlp::encode(keccak256([])));
    let mut value = Vec::new();
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut value);
    value.extend(payload);
    let mut trie = Trie::new();
    trie.put(keccak256(bridge).as_slice(), value);
    let root = "9fa70f12726ac738640a86754741bb3f5680520ccc7e6ae9d95ace566a67fe01";
    assert_eq!(trie.orchid_root(true), B256::from_slice(&hex(root)));
    assert_ne!(trie.orchid_root(false), trie.orchid_root(true));
}
