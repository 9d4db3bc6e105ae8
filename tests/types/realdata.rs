//! Real mainnet and testnet headers, blocks and receipts. The tests are skipped if the data folder does not
//! exist.

use crate::support;

use std::fs;

use rootlight::types::json::{block_from_json, header_from_json, receipt_from_json, transaction_from_json};
use rootlight::types::{B256, Block, Header, HeaderForm, HeaderShape, Receipt, Transaction, U256};
use serde_json::Value;
use support::shapes::{mainnet, testnet};
use support::{bytes, shared};

type ShapeOf = fn(u64) -> HeaderShape;

fn read(name: &str) -> Option<Value> {
    let text = fs::read_to_string(shared()?.join("realdata").join(name)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn data(value: &Value) -> Vec<u8> {
    bytes(value.as_str().unwrap()).to_vec()
}

fn hash(value: &Value) -> B256 {
    B256::from_slice(&data(value))
}

/// Decodes and encodes a header, and checks that all ways to compute its hashes agree.
fn decode(rlp: &[u8], shape: ShapeOf) -> Header {
    let header = Header::decode(rlp, &shape).unwrap();
    assert_eq!(header.encode(HeaderForm::Full), rlp);
    let (sealed, mining_base) = Header::decode_sealed(rlp, &shape).unwrap();
    assert_eq!(sealed.header(), &header);
    assert_eq!(sealed.hash(), header.hash());
    assert_eq!(mining_base, header.mining_base_hash());
    header
}

#[test]
fn consecutive_mainnet_headers_have_their_hashes_and_parents() {
    let Some(file) = read("headers/mainnet_4479841_iris_run1200.json") else { return };
    let mut parent: Option<B256> = None;
    assert_eq!(list(&file, "headers").len(), 1200);
    for entry in list(&file, "headers") {
        let header = decode(&data(&entry["rlp"]), mainnet);
        assert_eq!(header.number, entry["number"].as_u64().unwrap());
        assert_eq!(header.hash(), hash(&entry["hash"]));
        assert!(parent.is_none_or(|parent| parent == header.parent_hash));
        // The last four bytes of fork-detection data are the block number.
        let fdd = header.fork_detection_data().unwrap();
        assert_eq!(u32::from_be_bytes(*fdd.last_chunk().unwrap()), header.number as u32);
        assert_eq!(header.hash_for_merged_mining().unwrap()[20..], fdd);
        parent = Some(header.hash());
    }
}

#[test]
fn mainnet_headers_of_older_eras_decode() {
    let Some(file) = read("headers/mainnet_powhsm_single_blocks.json") else { return };
    for entry in list(&file, "headers") {
        let header = decode(&data(&entry["rlp"]), mainnet);
        assert_eq!(header.number, entry["number"].as_u64().unwrap());
        assert_eq!(header.fork_detection_data().is_some(), header.number >= 1_591_000);
        assert!(header.hash_for_merged_mining().is_ok());
    }
}

#[test]
fn headers_are_rebuilt_from_the_json_of_all_node_versions() {
    let files: [(&str, ShapeOf, usize); 4] = [
        ("mainnet_reed_vetiver_json", mainnet, 5),
        ("testnet_7394238_7394247_reed_v1_run10", testnet, 10),
        ("testnet_devportal_json", testnet, 1),
        ("testnet_explorer_json_headers", testnet, 12),
    ];
    for (name, shape, count) in files {
        let Some(file) = read(&format!("headers/{name}.json")) else { return };
        assert_eq!(list(&file, "headers").len(), count);
        for entry in list(&file, "headers") {
            let json = entry["json"].to_string();
            let claimed = hash(&entry["json"]["hash"]);
            let header = header_from_json(&json, None, &shape).unwrap();
            assert_eq!(header.hash(), claimed);
            assert_eq!(header.number, entry["number"].as_u64().unwrap());
            let mining = &entry["json"]["hashForMergedMining"];
            if !mining.is_null() {
                assert_eq!(header.hash_for_merged_mining().unwrap(), hash(mining));
            }
            assert!(header_from_json(&json, Some(B256::ZERO), &shape).is_err());
            decode(&header.encode(HeaderForm::Full), shape);
        }
    }
}

#[test]
fn genesis_headers_have_their_hashes() {
    let Some(file) = read("genesis.json") else { return };
    for (name, shape) in [("mainnet", mainnet as ShapeOf), ("testnet", testnet)] {
        let rlp = data(&file[name]["headerRlpForHash"]);
        let header = Header::decode(&rlp, &shape).unwrap();
        assert_eq!(header.encode(HeaderForm::Hash), rlp);
        assert_eq!(header.encode(HeaderForm::Raw), rlp);
        assert_eq!(header.hash(), hash(&file[name]["hash"]));
        assert_eq!(header.difficulty.value(), U256::from(1 << 20));
    }
}

#[test]
fn testnet_blocks_are_rebuilt_with_transactions_and_receipts() {
    let Some(file) = read("blocks/testnet_full_blocks.json") else { return };
    let mut senders = 0;
    for entry in list(&file, "blocks") {
        let block = block_from_json(&entry["block"].to_string(), None, &testnet, 31).unwrap();
        assert_eq!(block.header.hash(), hash(&entry["block"]["hash"]));
        assert_eq!(block.uncles.len(), list(&entry["block"], "uncles").len());
        for json in list(entry, "transactions") {
            let tx = transaction_from_json(&json.to_string(), None, 31).unwrap();
            let raw = data(&json["raw"]);
            assert_eq!(tx.encode(), raw);
            assert_eq!(Transaction::decode(&raw).unwrap(), tx);
            assert_eq!(tx.recover_sender(31).unwrap().as_slice(), data(&json["from"]));
            assert_eq!(tx.chain_id().is_some(), json["eip155"].as_bool().unwrap());
            senders += usize::from(!tx.is_remasc());
            let receipt = receipt_from_json(&json["receipt"].to_string()).unwrap();
            let raw = data(&json["receipt"]["raw"]);
            assert_eq!(receipt.encode(), raw);
            assert_eq!(Receipt::decode(&raw).unwrap(), receipt);
            assert!(receipt.bloom_matches());
        }
    }
    assert_eq!(senders, 2);
}

#[test]
fn the_first_testnet_block_is_decoded() {
    let Some(file) = read("state/testnet_block1.json") else { return };
    let rlp = data(&file["block"]);
    let block = Block::decode(&rlp, &testnet).unwrap();
    assert_eq!(block.encode(), rlp);
    assert_eq!(block.header.hash(), hash(&file["hash"]));
    assert_eq!(block.header.state_root, hash(&file["stateRoot"]));
    assert_eq!(block.body.transactions, [Transaction::remasc(1)]);
}

#[test]
fn receipts_of_old_nodes_are_read() {
    let Some(file) = read("receipts/contract_parser_receipts.json") else { return };
    let mut checked = 0;
    for entry in list(&file, "receipts") {
        let mut receipt = receipt_from_json(&entry["receipt"].to_string()).unwrap();
        assert!(receipt.success);
        assert_eq!(Receipt::decode(&receipt.encode()).unwrap(), receipt);
        let shown_empty =
            entry["receipt"]["logs"].as_array().unwrap().iter().any(|log| log["data"] == "0x00");
        assert_eq!(receipt.read_zero_byte_data_as_empty(), shown_empty);
        if let Some(ok) = entry["bloomOk"].as_bool() {
            assert_eq!(receipt.bloom_matches(), ok);
            checked += 1;
        }
    }
    assert!(checked >= 5);
}

#[test]
fn proven_receipts_decode_and_encode_back() {
    let Some(file) = read("proofs/powhsm_receipt_proofs.json") else { return };
    let mut decoded = 0;
    for entry in list(&file, "proofs").iter().filter(|entry| entry["verdict"] == "proves") {
        let raw = data(&entry["receipt"]);
        let receipt = Receipt::decode(&raw).unwrap_or_else(|e| panic!("{}: {e}", entry["file"]));
        assert_eq!(receipt.encode(), raw);
        decoded += 1;
    }
    assert!(decoded > 0);
}

/// The changes break the proof of work, not the encoding, so each header encodes to the same bytes.
#[test]
fn mutated_headers_encode_to_the_same_bytes() {
    let Some(file) = read("negative/mainnet_mutations.json") else { return };
    for entry in list(&file, "vectors") {
        let header = Header::decode(&data(&entry["rlp"]), &mainnet).unwrap();
        assert_eq!(header.encode(HeaderForm::Full), data(&entry["rlp"]));
        if let Some(claimed) = entry["hash"].as_str() {
            assert_eq!(header.hash(), B256::from_slice(&bytes(claimed)), "{}", entry["name"]);
        }
    }
}

#[test]
fn documented_raw_headers_and_receipt_decode() {
    let Some(file) = read("rpc/devportal_samples.json") else { return };
    let mut seen = 0;
    for sample in list(&file, "samples") {
        let result = &sample["response"]["result"];
        match sample["method"].as_str().unwrap() {
            "rsk_getRawBlockHeaderByHash" | "rsk_getRawBlockHeaderByNumber" => {
                let raw = data(result);
                let header = Header::decode(&raw, &testnet).unwrap();
                assert_eq!(header.encode(HeaderForm::Raw), raw);
                if let Some(claimed) = sample["request"]["params"][0].as_str().filter(|p| p.len() == 66) {
                    assert_eq!(header.hash(), B256::from_slice(&bytes(claimed)));
                }
                seen += 1;
            }
            "rsk_getRawTransactionReceiptByHash" => {
                let raw = data(result);
                assert_eq!(Receipt::decode(&raw).unwrap().encode(), raw);
                seen += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, 3);
}
