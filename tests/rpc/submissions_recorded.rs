//! Bitcoin blocks that the reference node accepted as work, in all three forms and with coinbases of many shapes. A
//! header that is sealed with one of them is the header that the node recorded.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use alloy_primitives::{B256, hex};
use rootlight::consensus::{HeaderCandidate, Network};
use rootlight::dev::Submission;
use serde_json::Value;

use crate::support::{bytes, shared};

fn decoded(method: &str, params: &[Value]) -> Submission {
    let text = |position: usize| params[position].as_str().unwrap();
    let hashes = |position: usize| -> Vec<B256> {
        text(position).split_whitespace().map(|hash| hash.parse().unwrap()).collect()
    };
    // Bitcoin displays hashes in reverse byte order.
    let displayed = |mut hash: B256| {
        hash.reverse();
        hash
    };
    match method {
        "mnr_submitBitcoinBlock" => Submission::block(&bytes(text(0))),
        "mnr_submitBitcoinBlockTransactions" => {
            let hashes: Vec<B256> = hashes(3).into_iter().map(displayed).collect();
            Submission::transactions(&bytes(text(1)), &bytes(text(2)), &hashes)
        }
        "mnr_submitBitcoinBlockPartialMerkle" => {
            let count = u32::from_str_radix(text(4).trim_start_matches("0x"), 16).unwrap();
            Submission::partial(&bytes(text(1)), &bytes(text(2)), &hashes(3), count)
        }
        other => panic!("{other}"),
    }
    .unwrap()
}

#[test]
fn accepted_submissions_become_the_recorded_headers() {
    let Some(folder) = shared() else { return };
    let read = |name: &str| {
        let text = read_to_string(folder.join("vectors/chain").join(name)).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines
    };
    let network = Network::regtest();
    let mut headers = BTreeMap::new();
    for line in read("headers_raw.jsonl") {
        let Some(raw) = line["response"]["result"].as_str() else { continue };
        let header = HeaderCandidate::decode(&hex::decode(raw).unwrap(), &network).unwrap().into_header();
        headers.insert(header.hash().to_string(), header);
    }
    // Raw headers lack the proof of the coinbase, which block objects have.
    let mut blocks = BTreeMap::new();
    for line in read("blocks.jsonl") {
        let block = &line["response"]["result"];
        let Some(hash) = block["hash"].as_str() else { continue };
        let part = |name: &str| bytes(block[format!("bitcoinMergedMining{name}")].as_str().unwrap());
        let parts = ["Header", "CoinbaseTransaction", "MerkleProof"].map(part);
        blocks.insert(hash.to_owned(), parts);
    }
    let mut compared = BTreeMap::new();
    for line in read("mnr.jsonl") {
        let method = line["request"]["method"].as_str().unwrap();
        let hash = line["response"]["result"]["blockHash"].as_str();
        // Blocks that did not stay on the chain were not recorded by their numbers.
        let Some(hash) = hash else { continue };
        let (Some(header), Some(parts)) = (headers.get(hash), blocks.get(hash)) else { continue };
        let submission = decoded(method, line["request"]["params"].as_array().unwrap());
        let rules = network.rules(header.header().number);
        let sealed = submission.work().seal(header.header().clone(), rules).unwrap();
        let mined = sealed.header();
        let mined = [&mined.bitcoin_header, &mined.coinbase_tx, &mined.merkle_proof];
        assert_eq!((mined, sealed.hash()), (parts.each_ref(), header.hash()), "{}", line["label"]);
        *compared.entry(method.to_owned()).or_insert(0) += 1;
    }
    let compared: Vec<i32> = compared.into_values().collect();
    assert!(compared.len() == 3 && compared.iter().sum::<i32>() > 150, "{compared:?}");
}
