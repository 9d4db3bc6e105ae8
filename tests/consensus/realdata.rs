//! Real headers of mainnet and the test network obey all rules, and changed ones are refused for the expected
//! reason.

use crate::support;

use std::path::Path;
use std::sync::Arc;

use rootlight::consensus::fork_detection::ANCESTORS_NEEDED;
use rootlight::consensus::pow::MergedMiningProof;
use rootlight::consensus::{
    ChainError, Checkpoint, ForkDetection, Genesis, HeadChange, HeaderCandidate, HeaderChain, Network,
    Origin, PowError, Seal, checkpoint, verify_child, verify_merged_mining, verify_standalone,
};
use rootlight::types::json::header_from_json;
use rootlight::types::{B256, SealedHeader, U256};
use serde_json::Value;
use support::{bytes, shared};

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .unwrap()
}

fn hash(value: &Value) -> B256 {
    value.as_str().unwrap().parse().unwrap()
}

fn candidate(value: &Value, network: &Network) -> HeaderCandidate {
    HeaderCandidate::decode(&bytes(value["rlp"].as_str().unwrap()), network).unwrap()
}

/// The 1,200 consecutive mainnet headers from 4,479,841 on.
fn run1200(shared: &Path, network: &Network) -> Vec<HeaderCandidate> {
    let file = json(&shared.join("realdata/headers/mainnet_4479841_iris_run1200.json"));
    let headers = file["headers"].as_array().unwrap();
    let decode = |value: &Value| {
        let candidate = candidate(value, network);
        assert_eq!(candidate.header().hash(), hash(&value["hash"]), "{}", value["number"]);
        candidate
    };
    headers.iter().map(decode).collect()
}

fn chain_from(network: &Arc<Network>, first: &HeaderCandidate) -> HeaderChain {
    let header = first.header().clone();
    let checkpoint = Checkpoint { number: header.number, hash: header.hash(), total_difficulty: None };
    HeaderChain::from_checkpoint(network.clone(), &checkpoint, header).unwrap()
}

#[test]
fn twelve_hundred_consecutive_headers_are_accepted() {
    let Some(shared) = shared() else { return };
    let network = Arc::new(Network::mainnet());
    let headers = run1200(&shared, &network);
    assert_eq!(headers.len(), 1_200);
    let mut chain = chain_from(&network, &headers[0]);
    let mut work = U256::ZERO;
    for (index, candidate) in headers.iter().enumerate().skip(1) {
        // The clock is the header's own time, so that no header is too early.
        let now = Some(candidate.header().timestamp);
        let inserted = chain.insert(candidate.clone(), now).unwrap();
        assert_eq!(inserted.change, HeadChange::Extended);
        let evidence = inserted.header.evidence();
        assert_eq!(evidence.origin, Origin::Mined(Seal::MergedMining));
        // The seven commitments reach back 385 to 448 blocks.
        assert!(index < ANCESTORS_NEEDED as usize || evidence.fork_detection.is_complete(), "header {index}");
        assert!(index > 384 || !evidence.fork_detection.is_complete(), "header {index}");
        work += candidate.header().difficulty.value();
    }
    let last = headers.last().unwrap().header();
    assert_eq!(chain.head().hash(), last.hash());
    assert_eq!(chain.view().header_work(&last.hash()), Some(work));
    assert_eq!(chain.total_difficulty(&last.hash()), None);
    for candidate in &headers {
        let header = candidate.header();
        assert_eq!(chain.by_number(header.number).unwrap().hash(), header.hash());
    }
}

#[test]
fn ancestors_below_a_checkpoint_complete_the_fork_detection_data() {
    let Some(shared) = shared() else { return };
    let network = Arc::new(Network::mainnet());
    let headers = run1200(&shared, &network);
    let start = 600;
    let mut chain = chain_from(&network, &headers[start]);
    chain.insert(headers[start + 1].clone(), None).unwrap();
    for candidate in headers[start - 449..start].iter().rev() {
        let header = chain.prepend(candidate.header().clone()).unwrap();
        assert_eq!(header.evidence().origin, Origin::HashLinked);
    }
    let inserted = chain.insert(headers[start + 2].clone(), None).unwrap();
    assert!(inserted.header.evidence().fork_detection.is_complete());
    let partial = chain.by_number(headers[start + 1].header().number).unwrap().evidence().fork_detection;
    assert!(!partial.is_complete() && partial != ForkDetection::NotRequired);
    assert_eq!(chain.recheck_fork_detection(), Ok(1));
    assert!(
        chain.by_number(headers[start + 1].header().number).unwrap().evidence().fork_detection.is_complete()
    );
    // Only the parent of the lowest header can be prepended.
    let wrong = chain.prepend(headers[0].header().clone()).unwrap_err();
    assert!(matches!(wrong, ChainError::NotTheParent { .. }) && wrong.is_misbehaviour());
}

#[test]
fn single_headers_of_earlier_eras_are_accepted() {
    let Some(shared) = shared() else { return };
    let network = Network::mainnet();
    let file = json(&shared.join("realdata/headers/mainnet_powhsm_single_blocks.json"));
    for value in file["headers"].as_array().unwrap() {
        let candidate = candidate(value, &network);
        assert_eq!(candidate.header().number, value["number"].as_u64().unwrap());
        assert_eq!(verify_standalone(&candidate, &network, None), Ok(Seal::MergedMining));
    }
}

/// Checks headers from node JSON; consecutive ones are also checked as parent and child. Returns their
/// number.
fn json_headers(path: &Path, network: &Network) -> usize {
    let file = json(path);
    let mut previous: Option<SealedHeader> = None;
    let mut count = 0;
    for value in file["headers"].as_array().unwrap() {
        let claimed = value.get("hash").filter(|h| h.is_string()).map(hash);
        let header = header_from_json(&value["json"].to_string(), claimed, &|n| network.header_shape(n))
            .unwrap_or_else(|e| panic!("{}: {e}", value["number"]));
        let candidate = HeaderCandidate::from(header.clone());
        assert_eq!(
            verify_standalone(&candidate, network, None),
            Ok(Seal::MergedMining),
            "{}",
            value["number"]
        );
        if let Some(parent) = previous.filter(|parent| parent.number + 1 == header.number) {
            assert_eq!(verify_child(&candidate, &parent, network, None), Ok(Seal::MergedMining));
        }
        previous = Some(header);
        count += 1;
    }
    count
}

#[test]
fn headers_from_json_of_both_networks_are_accepted() {
    let Some(shared) = shared() else { return };
    let (mainnet, testnet) = (Network::mainnet(), Network::testnet());
    let headers = shared.join("realdata/headers");
    assert_eq!(json_headers(&headers.join("mainnet_reed_vetiver_json.json"), &mainnet), 5);
    assert_eq!(json_headers(&headers.join("testnet_7394238_7394247_reed_v1_run10.json"), &testnet), 10);
    assert_eq!(json_headers(&headers.join("testnet_explorer_json_headers.json"), &testnet), 12);
    assert_eq!(json_headers(&headers.join("testnet_devportal_json.json"), &testnet), 1);
}

#[test]
fn merge_mining_proofs_of_every_era_are_accepted() {
    let Some(shared) = shared() else { return };
    let network = Network::mainnet();
    let file = json(&shared.join("realdata/proofs/mainnet_merge_mining_proofs.json"));
    let (mut trees, mut branches) = (0, 0);
    for value in file["proofs"].as_array().unwrap() {
        let field = |name: &str| bytes(value[name].as_str().unwrap());
        let (bitcoin_header, merkle_proof, coinbase) =
            (field("btcHeader"), field("merkleProof"), field("coinbase"));
        let proof = MergedMiningProof {
            bitcoin_header: &bitcoin_header,
            merkle_proof: &merkle_proof,
            coinbase: &coinbase,
        };
        let number = value["number"].as_u64().unwrap();
        let rules = network.rules(number);
        let committed = hash(&value["hashForMergedMining"]);
        let bitcoin = proof.check_work(U256::from(1), rules).unwrap();
        assert_eq!(proof.check_commitment(&bitcoin, &committed, rules), Ok(()), "{number}");
        assert!(proof.check_commitment(&bitcoin, &B256::ZERO, rules).is_err());
        // Since Orchid (RSKIP-92), which is active from this height on, a proof is the list of siblings and no partial tree.
        if number < 729_000 {
            trees += 1;
        } else {
            branches += 1;
        }
    }
    assert_eq!((trees, branches), (3, 149));
}

/// Whether an error corresponds to the recorded reason of a refusal.
fn fits(why: &str, error: &PowError) -> bool {
    let text = error.to_string();
    match why {
        "fork detection data / tag not found" => {
            text.contains("fork-detection data")
                || text.contains("no RSKBLOCK: tag")
                || text.contains("fork detection")
        }
        "bitcoin hash above target" => text.contains("above the target"),
        "btc header size 79" => text.contains("79 bytes, expected 80"),
        "btc header size 81" => text.contains("81 bytes, expected 80"),
        "btc header size None" => text.contains("0 bytes, expected 80"),
        "merkle root mismatch" => text.contains("Merkle root"),
        "proof length not a multiple of 32" => text.contains("not a multiple of 32"),
        "proof longer than 960" => text.contains("at most 960"),
        "not the last tag" => text.contains("not the last"),
        "more than 128 bytes after tag" => text.contains("at most 128"),
        "tag position 107 >= 64" => text.contains("tag at byte 107"),
        _ => false,
    }
}

#[test]
fn mutations_are_refused_for_the_recorded_reason() {
    let Some(shared) = shared() else { return };
    let network = Network::mainnet();
    let file = json(&shared.join("realdata/negative/mainnet_mutations.json"));
    let mut refused = 0;
    for value in file["vectors"].as_array().unwrap() {
        let name = value["name"].as_str().unwrap();
        let candidate = candidate(value, &network);
        assert_eq!(candidate.header().hash(), hash(&value["hash"]), "{name}");
        let result = verify_merged_mining(candidate.header(), &network);
        match value["why"].as_str() {
            None => assert_eq!(result, Ok(Seal::MergedMining), "{name}"),
            Some(why) => {
                assert!(verify_standalone(&candidate, &network, None).is_err(), "{name}");
                let error = result.expect_err(name);
                assert!(fits(why, &error), "{name}: {why}: {error}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 36);
}

#[test]
fn a_header_with_any_byte_changed_is_refused_by_the_chain() {
    let Some(shared) = shared() else { return };
    let network = Arc::new(Network::mainnet());
    let file = json(&shared.join("realdata/headers/mainnet_4479841_iris_run1200.json"));
    let rlp = bytes(file["headers"][1]["rlp"].as_str().unwrap());
    let chain = chain_from(&network, &candidate(&file["headers"][0], &network));
    let mut parsed = 0;
    for at in 0..rlp.len() {
        for flip in [1u8, 0x80] {
            let mut changed = rlp.to_vec();
            changed[at] ^= flip;
            let Ok(candidate) = HeaderCandidate::decode(&changed, &network) else { continue };
            parsed += 1;
            let mut chain = chain.clone();
            let refused = chain.insert(candidate, None);
            assert!(refused.is_err(), "byte {at} ^ {flip:#x}: {refused:?}");
        }
    }
    assert!(parsed > rlp.len());
}

#[test]
fn genesis_files_give_the_genesis_hashes_of_every_network() {
    let Some(shared) = shared() else { return };
    let files = shared.join("realdata/genesis_files");
    for (file, network) in [
        ("rsk-mainnet.json", Network::mainnet()),
        ("orchid-testnet.json", Network::testnet()),
        ("orchid-testnet.json", Network::testnet2()),
        ("devnet-genesis.json", Network::devnet()),
        ("rsk-dev.json", Network::regtest()),
    ] {
        let genesis = Genesis::from_json(&std::fs::read_to_string(files.join(file)).unwrap()).unwrap();
        assert_eq!(genesis.header(&network).hash(), network.genesis_hash, "{}", network.name);
        let chain = HeaderChain::from_genesis(Arc::new(network.clone()), genesis.header(&network)).unwrap();
        assert_eq!(
            chain.total_difficulty(&network.genesis_hash),
            Some(genesis.header(&network).difficulty.value())
        );
    }
    // The state root stated for the test network equals the one computed from its allocation.
    let testnet = std::fs::read_to_string(files.join("orchid-testnet.json")).unwrap();
    let genesis = Genesis::from_json(&testnet).unwrap();
    assert_eq!(Some(genesis.computed_state(&Network::testnet()).root()), genesis.state_root);
}

#[test]
fn built_in_checkpoints_are_the_verified_ones() {
    let Some(shared) = shared() else { return };
    let file = json(&shared.join("realdata/checkpoints.json"));
    for name in ["mainnet", "testnet"] {
        let stated = file[name].as_array().unwrap();
        let built_in = checkpoint::built_in(&Network::by_name(name).unwrap());
        assert!(built_in.is_sorted_by_key(|known| known.checkpoint.number));
        for checkpoint in built_in.iter().map(|known| known.checkpoint) {
            let row = stated.iter().find(|row| row["number"].as_u64() == Some(checkpoint.number)).unwrap();
            assert_eq!(hash(&row["hash"]), checkpoint.hash, "{}", checkpoint.number);
            assert_ne!(row["verified"], Value::Bool(false), "{}", checkpoint.number);
            if let Some(total) = row["totalDifficulty"].as_str() {
                assert_eq!(Some(support::u256(total)), checkpoint.total_difficulty, "{}", checkpoint.number);
            }
        }
        let verified = stated.iter().filter(|row| row["verified"] != Value::Bool(false)).count();
        assert_eq!(built_in.len(), verified, "{name}");
    }
}
