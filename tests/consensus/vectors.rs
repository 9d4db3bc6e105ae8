//! Checks the recorded chains of a reference node header by header, under the rules of every era: all rules,
//! uncles, total difficulties, branches, bodies and receipts.

use crate::support;

use std::sync::Arc;

use rootlight::consensus::bitcoin::reversed;
use rootlight::consensus::merkle::branch_root;
use rootlight::consensus::partial_merkle::partial_tree_root;
use rootlight::consensus::{
    ChainError, Genesis, HeadChange, HeaderCandidate, HeaderChain, Network, UncleError, VerifiedBody,
    VerifiedReceipts,
};
use rootlight::types::{B256, Header, Receipt, SealedHeader, U256};
use serde_json::Value;
use support::recording::{RecordedBlock, Recording, regtest_v0};
use support::{bytes, shared, u256};

/// The network of `chain`.
fn regtest() -> Network {
    Network::regtest()
}

fn genesis_chain(recording: &Recording) -> HeaderChain {
    let genesis = recording.blocks[0].header.clone();
    HeaderChain::from_genesis(Arc::new(recording.network.clone()), genesis).unwrap()
}

/// The chain of all canonical headers with their uncles.
fn full_chain(recording: &Recording) -> HeaderChain {
    let mut chain = genesis_chain(recording);
    for block in &recording.blocks[1..] {
        let inserted = chain.insert(block.header.clone().into(), None);
        let inserted = inserted.unwrap_or_else(|e| panic!("{}: {e}", recording.network.name));
        assert_eq!(inserted.change, HeadChange::Extended);
        assert!(inserted.header.evidence().fork_detection.is_complete(), "{}", block.header.number);
        assert_eq!(chain.attach_uncles(&block.header.hash(), block.uncles.clone(), None), Ok(None));
        let total = chain.total_difficulty(&block.header.hash());
        assert_eq!(total, block.total_difficulty, "block {}", block.header.number);
    }
    chain
}

/// Checks the bodies and receipts of all blocks that the chain has; returns how many blocks had all receipts.
fn check_contents(recording: &Recording, chain: &HeaderChain) -> usize {
    let mut checked = 0;
    for block in recording.blocks.iter().chain(&recording.side) {
        let Some(header) = chain.by_hash(&block.header.hash()) else { continue };
        let body = VerifiedBody::check(header, block.transactions.clone(), &recording.network).unwrap();
        if block.receipts.len() == body.transactions().len() {
            let receipts = block.receipts.values().cloned().collect();
            let receipts = VerifiedReceipts::check(header, receipts, &recording.network);
            let receipts = receipts.unwrap_or_else(|e| panic!("block {}: {e}", header.number));
            assert_eq!(receipts.matches(&body), Ok(()));
            checked += 1;
        }
    }
    checked
}

#[test]
fn every_block_of_the_recorded_chains_is_accepted() {
    let Some(shared) = shared() else { return };
    for (folder, network, blocks) in [("chain", regtest(), 677), ("chain_v0", regtest_v0(), 521)] {
        let recording = Recording::load(&shared.join("vectors").join(folder), network);
        assert_eq!(recording.blocks.len(), blocks, "{folder}");
        let chain = full_chain(&recording);
        let checked = check_contents(&recording, &chain);
        assert!(checked + 5 > blocks, "{folder}: receipts of {checked} blocks");
    }
}

#[test]
fn side_blocks_have_their_recorded_total_difficulties() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let mut chain = full_chain(&recording);
    let head = chain.head().hash();
    assert_eq!(recording.side.len(), 36);
    for block in &recording.side {
        let hash = block.header.hash();
        assert_eq!(chain.insert(block.header.clone().into(), None).unwrap().change, HeadChange::Side);
        assert_eq!(chain.attach_uncles(&hash, block.uncles.clone(), None), Ok(None));
        assert_eq!(chain.total_difficulty(&hash), block.total_difficulty);
        assert_eq!(chain.head().hash(), head);
    }
    // The reference node returns receipts of the canonical chain only, even for transactions that are also in
    // a side block.
    assert_eq!(check_contents(&recording, &chain), recording.blocks.len());
}

#[test]
fn chains_under_the_rules_of_every_era_are_accepted() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("vectors/eras");
    let eras: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("eras.json")).unwrap()).unwrap();
    let genesis = std::fs::read_to_string(shared.join("realdata/genesis_files/rsk-dev.json")).unwrap();
    let mut seen = 0;
    for (era, config) in eras.as_object().unwrap() {
        let path = folder.join(format!("chain_{era}"));
        if !path.is_dir() {
            continue;
        }
        let (forks, rules) = (&config["forkHeights"], &config["ruleHeights"]);
        let file = format!(r#"{{"name":"{era}","hardforks":{forks},"rules":{rules},"genesis":{genesis}}}"#);
        let network = Network::from_json(&file).unwrap();
        let recording = Recording::load(&path, network);
        assert!(recording.blocks.len() > 470, "{era}");
        let chain = full_chain(&recording);
        assert!(check_contents(&recording, &chain) > 470, "{era}");
        seen += 1;
    }
    assert_eq!(seen, 13);
}

#[test]
fn headers_of_the_execution_chains_are_accepted() {
    let Some(shared) = shared() else { return };
    for name in ["bridge_chain", "edge_chain", "peg_chain"] {
        let path = shared.join("vectors/execution").join(name);
        let recording = Recording::load(&path, regtest());
        let chain = full_chain(&recording);
        assert!(check_contents(&recording, &chain) > 100, "{name}");
    }
}

#[test]
fn uncles_arriving_late_give_the_same_total_difficulty() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let mut chain = genesis_chain(&recording);
    for block in &recording.blocks[1..] {
        chain.insert(block.header.clone().into(), None).unwrap();
    }
    let with_uncles: Vec<&RecordedBlock> = recording.blocks.iter().filter(|b| !b.uncles.is_empty()).collect();
    let last = recording.blocks.last().unwrap();
    let first_uncles = with_uncles[0].header.number;
    for block in &recording.blocks {
        let known = chain.total_difficulty(&block.header.hash()).is_some();
        assert_eq!(known, block.header.number < first_uncles, "block {}", block.header.number);
    }
    for block in &with_uncles {
        assert_eq!(chain.total_difficulty(&last.header.hash()), None);
        chain.attach_uncles(&block.header.hash(), block.uncles.clone(), None).unwrap();
    }
    for block in &recording.blocks {
        assert_eq!(chain.total_difficulty(&block.header.hash()), block.total_difficulty);
    }
}

#[test]
fn wrong_uncles_are_refused() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let mut chain = genesis_chain(&recording);
    for block in &recording.blocks[1..] {
        chain.insert(block.header.clone().into(), None).unwrap();
    }
    let block = recording.blocks.iter().find(|b| b.uncles.len() == 2).unwrap();
    let good = block.uncles.clone();
    let hash = block.header.hash();
    let swapped: Vec<Header> = good.iter().rev().cloned().collect();
    for wrong in [vec![], good[..1].to_vec(), swapped] {
        let error = chain.attach_uncles(&hash, wrong, None).unwrap_err();
        assert!(
            matches!(error, ChainError::Uncles { error: UncleError::Hash { .. }, .. })
                && error.is_misbehaviour()
        );
    }
    // Uncles of a block can only be attached after those of the blocks before it.
    let late = recording.blocks.iter().find(|b| b.header.number == 120).unwrap();
    let error = chain.attach_uncles(&late.header.hash(), late.uncles.clone(), None);
    assert!(error.is_ok() || !error.unwrap_err().is_misbehaviour());
}

#[test]
fn raw_headers_decode_to_the_same_chain() {
    let Some(shared) = shared() else { return };
    let network = Arc::new(regtest());
    let path = shared.join("vectors/chain/headers_raw.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let chain = full_chain(&recording);
    let mut seen = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(raw) = line["response"]["result"].as_str() else { continue };
        let header = Header::decode(&bytes(raw), &|n| network.header_shape(n)).unwrap().seal();
        if chain.view().is_canonical(header.number, &header.hash()) {
            seen += 1;
        }
        // Without coinbase and Merkle proof, a raw header has no proof of work.
        if header.number > 0 {
            let mut empty = HeaderChain::clone(&chain_at(&network, &chain, header.number - 1));
            assert!(empty.insert(HeaderCandidate::from(header), None).is_err());
        }
    }
    assert!(seen >= 677);
}

/// A chain that starts at a block of another one.
fn chain_at(network: &Arc<Network>, chain: &HeaderChain, number: u64) -> HeaderChain {
    let header: SealedHeader = chain.by_number(number).unwrap().sealed().clone();
    let checkpoint = rootlight::consensus::Checkpoint { number, hash: header.hash(), total_difficulty: None };
    HeaderChain::from_checkpoint(network.clone(), &checkpoint, header).unwrap()
}

#[test]
fn total_difficulty_is_known_from_a_checkpoint_on() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let base = &recording.blocks[119];
    let checkpoint = rootlight::consensus::Checkpoint {
        number: base.header.number,
        hash: base.header.hash(),
        total_difficulty: base.total_difficulty,
    };
    let network = Arc::new(recording.network.clone());
    let mut chain = HeaderChain::from_checkpoint(network, &checkpoint, base.header.clone()).unwrap();
    let next = &recording.blocks[120];
    chain.insert(next.header.clone().into(), None).unwrap();
    // The uncle of block 120 has height 118, so its parent is below the checkpoint.
    let error = chain.attach_uncles(&next.header.hash(), next.uncles.clone(), None).unwrap_err();
    assert!(!error.is_misbehaviour(), "{error}");
    for block in recording.blocks[110..119].iter().rev() {
        chain.prepend(block.header.clone()).unwrap();
    }
    for block in &recording.blocks[113..120] {
        chain.attach_uncles(&block.header.hash(), block.uncles.clone(), None).unwrap();
    }
    for block in &recording.blocks[120..140] {
        chain.insert(block.header.clone().into(), None).unwrap();
        chain.attach_uncles(&block.header.hash(), block.uncles.clone(), None).unwrap();
        assert_eq!(chain.total_difficulty(&block.header.hash()), block.total_difficulty);
    }
}

#[test]
fn partial_merkle_trees_of_the_reference_node_are_verified() {
    let Some(shared) = shared() else { return };
    let path = shared.join("vectors/trie_vectors.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["pmt"].as_array().unwrap();
    assert_eq!(cases.len(), 13);
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap();
        let internal = |name: &str| reversed(&format!("0x{}", text(name)).parse::<B256>().unwrap());
        let (leaf, root) = (internal("coinbaseDisplay"), internal("rootDisplay"));
        assert_eq!(partial_tree_root(&bytes(text("pmt")), leaf), Ok((root, true)), "{}", case["n"]);
        assert_eq!(branch_root(&bytes(text("rskip92")), leaf, true), Ok(root), "{}", case["n"]);
    }
}

#[test]
fn a_changed_body_or_receipt_is_refused() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors/chain"), regtest());
    let chain = full_chain(&recording);
    let block = recording.blocks.iter().find(|b| b.transactions.len() > 3).unwrap();
    let header = chain.by_hash(&block.header.hash()).unwrap();
    let transactions = block.transactions.clone();
    let receipts: Vec<Receipt> = block.receipts.values().cloned().collect();
    let (mut short, mut swapped) = (transactions.clone(), transactions.clone());
    short.pop();
    swapped.swap(0, 1);
    for wrong in [vec![], short, swapped] {
        assert!(VerifiedBody::check(header, wrong, &recording.network).is_err());
    }
    let mut more_gas = receipts.clone();
    more_gas[0].gas_used += 1;
    for wrong in [vec![], receipts[1..].to_vec(), more_gas] {
        assert!(VerifiedReceipts::check(header, wrong, &recording.network).is_err());
    }
    let body = VerifiedBody::check(header, transactions, &recording.network).unwrap();
    let other = chain.by_number(0).unwrap();
    let none = VerifiedReceipts::check(other, vec![], &recording.network).unwrap();
    assert!(none.matches(&body).is_err());
}

#[test]
fn the_genesis_of_the_recordings_is_computed_from_the_allocation() {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("realdata/genesis_files/rsk-dev.json")).unwrap();
    let genesis = Genesis::from_json(&text).unwrap();
    for network in [regtest(), regtest_v0()] {
        assert_eq!(genesis.header(&network).hash(), Network::regtest().genesis_hash);
    }
    assert_eq!(genesis.header(&regtest()).difficulty.value(), U256::from(1));
    assert_eq!(genesis.alloc.iter().map(|a| a.balance).max().unwrap(), u256("0xc9f2c9cd04674edea40000000"));
}

/// The state root includes contracts of the allocation: each has at least the storage-root marker.
#[test]
fn the_genesis_state_root_includes_contracts() {
    let file = |root: &str| {
        format!(
            r#"{{"alloc": {{"0x00000000000000000000000000000000000000aa": {{"balance": "1", "contract": {{}}}}}},
            "coinbase": "0x0000000000000000000000000000000000000000", "difficulty": "0x1", "extraData": "0x",
            "gasLimit": "0x67c280", "nonce": "0x00", "mixhash": "0x00", "timestamp": "0x0", "minimumGasPrice": "0x0",
            "parentHash": "0x0000000000000000000000000000000000000000000000000000000000000000"{root}}}"#
        )
    };
    let root_of = |text: &str| Genesis::from_json(text).unwrap().header(&regtest()).state_root;
    let plain = file("").replace(r#", "contract": {}"#, "");
    assert_ne!(root_of(&file("")), root_of(&plain), "a contract has a marker");
    let root = r#", "stateRoot": "0x0101010101010101010101010101010101010101010101010101010101010101""#;
    assert_eq!(root_of(&file(root)), B256::repeat_byte(1));
}
