//! The development chain over JSON-RPC: all ways of mining, snapshots, direct changes, reorganisations.

use crate::fixture::block_of;
use crate::support;

use std::sync::Arc;

use rootlight::consensus::HeadChange;
use rootlight::consensus::bitcoin::{double_sha256, reversed};
use rootlight::consensus::mining::BitcoinWork;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::exec::Ancestry;
use rootlight::local::LocalChain;
use rootlight::types::{B256, U256};
use serde_json::{Value, json};
use support::dev::DevClient;
use support::u64_of;

pub(crate) const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub(crate) const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
pub(crate) const CAROL: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
pub(crate) const NOBODY: &str = "0x00000000000000000000000000000000000abcde";

fn config(mining: Mining) -> DevConfig {
    DevConfig { mining, ..DevConfig::new(&DevAccounts::default()) }
}

pub(crate) fn dev(mining: Mining) -> DevClient {
    DevClient::new(config(mining))
}

pub(crate) fn transfer(value: u64) -> Value {
    json!([{"from": ALICE, "to": BOB, "value": value}])
}

#[test]
fn accounts_are_funded_and_a_first_transaction_is_mined() {
    let mut dev = dev(Mining::Instant);
    let accounts = dev.get("eth_accounts", json!([]));
    assert_eq!((accounts[0].as_str(), accounts[1].as_str()), (Some(ALICE), Some(BOB)));
    assert_eq!(accounts.as_array().unwrap().len(), 20);
    assert_eq!(dev.get("eth_requestAccounts", json!([])), accounts);
    let ten_thousand = format!("{:#x}", U256::from(10_000u64) * U256::from(10u64).pow(U256::from(18)));
    assert_eq!(dev.get("eth_getBalance", json!([BOB, "latest"])), json!(ten_thousand));
    let hash = dev.get("eth_sendTransaction", transfer(5));
    let receipt = dev.get("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(
        (&receipt["status"], &receipt["from"], &receipt["blockNumber"]),
        (&json!("0x1"), &json!(ALICE), &json!("0x1"))
    );
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "latest"])), 1);
    assert_eq!(dev.get("eth_chainId", json!([])), json!("0x21"));
    assert_eq!(dev.get("eth_mining", json!([])), json!(true));
}

#[test]
fn another_node_accepts_and_executes_every_block() {
    let mut dev = dev(Mining::Manual);
    for round in 0..460u64 {
        // Transactions for parallel lists. The chain is long enough for all rounds of fork-detection data.
        if round % 40 == 0 {
            dev.get("eth_sendTransaction", transfer(round + 1));
            dev.get("eth_sendTransaction", json!([{"from": CAROL, "to": NOBODY, "value": 1}]));
        }
        dev.get("evm_mine", json!([]));
    }
    let DevConfig { network, genesis, .. } = config(Mining::Manual);
    let mut other = LocalChain::new(Arc::clone(&network), genesis.header, genesis.state, None).unwrap();
    for number in 1..=460 {
        let imported = other.import(block_of(&mut dev, number), None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(imported.change, HeadChange::Extended);
    }
    assert_eq!(other.head().hash(), dev.chain().view().head().hash());
    let tip = other.view().headers().by_number(460).unwrap();
    assert!(tip.evidence().fork_detection.is_complete());
    assert!(other.view().ancestry(tip.hash()).header(41).unwrap().edges.len() == 2, "two parallel lists");
}

/// Runtime code that makes a contract by CREATE2 and stores its address in slot 0. The made contract destroys itself
/// when it is called.
const FACTORY: &str = "696133ff5f526002601ef35f525f600a60165ff55f5500";

#[test]
fn a_contract_destroyed_and_created_again_in_one_block_is_accepted_by_another_node() {
    let mut dev = dev(Mining::Manual);
    let send = |dev: &mut DevClient, from: &str, to: Option<&Value>, data: String| {
        let mut transaction = json!({"from": from, "gas": "0x7a120", "data": data});
        if let Some(to) = to {
            transaction["to"] = to.clone();
        }
        dev.get("eth_sendTransaction", json!([transaction]))
    };
    // Initialisation code that returns the code after it.
    let hash = send(&mut dev, ALICE, None, format!("0x60178060095f395ff3{FACTORY}"));
    dev.get("evm_mine", json!([]));
    let factory = dev.get("eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
    send(&mut dev, ALICE, Some(&factory), "0x".into());
    dev.get("evm_mine", json!([]));
    let word = dev.get("eth_getStorageAt", json!([factory, "0x0", "latest"]));
    let child = json!(format!("0x{}", &word.as_str().unwrap()[26..]));
    assert_eq!(dev.get("eth_getCode", json!([child, "latest"])), json!("0x33ff"));

    let destroys = send(&mut dev, BOB, Some(&child), "0x".into());
    let creates = send(&mut dev, CAROL, Some(&factory), "0x".into());
    dev.get("evm_mine", json!([]));
    let mut status = |hash| dev.get("eth_getTransactionReceipt", json!([hash]))["status"].clone();
    assert_eq!((status(&destroys), status(&creates)), (json!("0x1"), json!("0x0")));
    assert_eq!(dev.get("eth_getCode", json!([child, "latest"])), json!("0x"));

    let DevConfig { network, genesis, .. } = config(Mining::Manual);
    let mut other = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    for number in 1..=3 {
        let block = block_of(&mut dev, number);
        if number == 3 {
            assert_eq!(block.header.edges, [2], "one parallel list holds both");
        }
        other.import(block, None).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(other.head().hash(), dev.chain().view().head().hash());
}

/// A Bitcoin block that commits to the work.
fn solve(work: &Value) -> BitcoinWork {
    let hash: B256 = work["blockHashForMergedMining"].as_str().unwrap().parse().unwrap();
    BitcoinWork::new(&hash, 1_800_000_000).solved(U256::from(1), 1_000).unwrap()
}

#[test]
fn external_miners_submit_in_three_ways_and_late_blocks_become_uncles() {
    let mut dev = dev(Mining::Manual);
    let hex = |bytes: &[u8]| hex::encode(bytes);
    let work = dev.get("mnr_getWork", json!([]));
    assert_eq!(work["target"], json!(format!("0x{}", "55".repeat(32))));
    assert_eq!((&work["notify"], &work["feesPaidToMiner"]), (&json!(true), &json!("0")));
    assert_eq!(dev.get("mnr_getWork", json!([]))["notify"], json!(false));
    let first = solve(&work);
    let block = [&first.header[..], &[1], &first.coinbase].concat();
    let submitted = dev.get("mnr_submitBitcoinBlock", json!([hex(&block)]));
    assert_eq!(submitted["blockImportedResult"], json!("0x494d504f525445445f42455354"));
    assert_eq!(submitted["blockIncludedHeight"], json!("0x1"));
    assert_eq!(
        dev.get("mnr_submitBitcoinBlock", json!([hex(&block)]))["blockImportedResult"],
        json!("0x4558495354")
    );
    // A second solution of the same work is too late for the chain, and the next block names it as an uncle.
    let named = work["blockHashForMergedMining"].as_str().unwrap().parse().unwrap();
    let late = BitcoinWork::new(&named, 1_800_000_001).solved(U256::from(1), 1_000).unwrap();
    let displayed = |hash: B256| hex(reversed(&hash).as_slice());
    let leaf = double_sha256(&late.coinbase);
    let params = json!(["0x", hex(&late.header), hex(&late.coinbase), displayed(leaf)]);
    let submitted = dev.get("mnr_submitBitcoinBlockTransactions", params);
    assert_eq!(submitted["blockImportedResult"], json!(format!("0x{}", hex(b"IMPORTED_NOT_BEST"))));
    let work = dev.get("mnr_getWork", json!([]));
    let next = solve(&work);
    let leaf = double_sha256(&next.coinbase);
    let params = json!(["0x", hex(&next.header), hex(&next.coinbase), hex(leaf.as_slice()), "1"]);
    dev.get("mnr_submitBitcoinBlockPartialMerkle", params);
    let head = dev.get("eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(head["number"], json!("0x2"));
    assert_eq!(head["uncles"], json!([submitted["blockHash"]]));
    assert_eq!(dev.get("eth_getBlocksByNumber", json!(["0x1"])).as_array().unwrap().len(), 2);
    let target = dev.get("eth_getWork", json!([]));
    assert_eq!(target[1], json!(format!("0x{}", "00".repeat(32))));
}

#[test]
fn invalid_submissions_get_the_errors_of_the_reference() {
    let mut dev = dev(Mining::Manual);
    let unknown = BitcoinWork::new(&B256::repeat_byte(0xab), 0);
    let block = hex::encode([&unknown.header[..], &[1], &unknown.coinbase].concat());
    let text = format!("Cannot publish block, could not find hash 0x{} in the cache", "ab".repeat(32));
    assert_eq!(dev.refused("mnr_submitBitcoinBlock", json!([block])), (-33000, text));
    let work = dev.get("mnr_getWork", json!([]));
    let mut wrong = solve(&work);
    // The first nonce whose hash is above the target.
    while rootlight::consensus::pow::meets_target(&double_sha256(&wrong.header), U256::from(1)) {
        wrong.header[79] = wrong.header[79].wrapping_add(1);
    }
    let block = hex::encode([&wrong.header[..], &[1], &wrong.coinbase].concat());
    let (code, text) = dev.refused("mnr_submitBitcoinBlock", json!([block]));
    assert!(
        code == -33000
            && text.starts_with("Invalid block supplied by miner: ")
            && text.ends_with("at height 1"),
        "{text}"
    );
    let (header, coinbase) = (hex::encode(wrong.header), hex::encode(&wrong.coinbase));
    let params = json!(["0x", header, coinbase, "", "1"]);
    let refused = dev.refused("mnr_submitBitcoinBlockPartialMerkle", params);
    assert_eq!(refused, (-33000, "The list of merkle hashes can't be empty".into()));
    for bytes in ["00", "zz"] {
        assert_eq!(dev.refused("mnr_submitBitcoinBlock", json!([bytes])).0, -32602);
    }
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
}

#[test]
fn a_snapshot_can_be_reverted_to_repeatedly() {
    let mut dev = dev(Mining::Instant);
    dev.get("eth_sendTransaction", transfer(1));
    assert_eq!(dev.get("evm_snapshot", json!([])), json!("0x1"));
    for _ in 0..2 {
        dev.get("eth_sendTransaction", transfer(2));
        dev.get("anvil_setBalance", json!([NOBODY, "0x7"]));
        dev.get("evm_increaseTime", json!([1000]));
        assert_eq!(dev.get("anvil_snapshot", json!([])), json!("0x2"));
        assert_eq!(dev.get("evm_revert", json!(["0x1"])), json!(true));
        assert_eq!(dev.number("eth_blockNumber", json!([])), 1);
        assert_eq!(dev.get("eth_getBalance", json!([NOBODY])), json!("0x0"));
        assert_eq!(dev.get("evm_revert", json!(["0x2"])), json!(false), "later snapshots are removed");
    }
    assert_eq!(dev.refused("evm_revert", json!(["zz"])), (-32602, "invalid snapshot id zz".into()));
    assert_eq!(dev.refused("evm_revert", json!([1])), (-32602, "invalid snapshot id 1".into()));
    dev.get("hardhat_reset", json!([]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
    assert_eq!(dev.get("evm_revert", json!(["0x1"])), json!(false));
    dev.get("eth_sendTransaction", transfer(1));
}

#[test]
fn a_revert_empties_the_pool() {
    let mut dev = dev(Mining::Manual);
    dev.get("evm_snapshot", json!([]));
    dev.get("eth_sendTransaction", transfer(1));
    dev.get("evm_revert", json!(["0x1"]));
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 0}));
}

#[test]
fn accounts_are_changed_directly() {
    let mut dev = dev(Mining::Instant);
    dev.get("hardhat_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    dev.get("hardhat_setNonce", json!([NOBODY, "0x5"]));
    // Returns storage cell 1.
    dev.get("hardhat_setCode", json!([NOBODY, "0x60015460005260206000f3"]));
    let cell = format!("0x{:064x}", 42);
    dev.get("hardhat_setStorageAt", json!([NOBODY, "0x1", cell]));
    assert_eq!(dev.get("eth_call", json!([{"to": NOBODY}, "latest"])), json!(cell));
    assert_eq!(dev.number("eth_getTransactionCount", json!([NOBODY])), 5);
    let proof = dev.get("eth_getProof", json!([NOBODY, ["0x1"], "latest"]));
    assert_eq!(
        (&proof["balance"], &proof["storageProof"][0]["value"]),
        (&json!("0xde0b6b3a7640000"), &json!("0x2a"))
    );
    // The next block starts from the changed state, and its header commits to it.
    dev.get("eth_sendTransaction", transfer(1));
    assert_eq!(dev.get("eth_getStorageAt", json!([NOBODY, "0x1", "latest"])), json!(cell));
    let native = "0x0000000000000000000000000000000000000001";
    assert_eq!(dev.refused("anvil_setCode", json!([native, "0x00"])).0, -32602);
}

#[test]
fn impersonated_accounts_send_transactions() {
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    let send = json!([{"from": NOBODY, "to": BOB, "value": "0x9"}]);
    assert_eq!(
        dev.refused("eth_sendTransaction", send.clone()).1,
        format!("Could not find account for address: {NOBODY}")
    );
    dev.get("hardhat_impersonateAccount", json!([NOBODY]));
    let hash = dev.get("eth_sendTransaction", send.clone());
    let transaction = dev.get("eth_getTransactionByHash", json!([hash]));
    assert_eq!((&transaction["from"], &transaction["blockNumber"]), (&json!(NOBODY), &json!("0x1")));
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash]))["from"], json!(NOBODY));
    let traces = dev.get("trace_transaction", json!([hash]));
    assert_eq!(traces[0]["action"]["from"], json!(NOBODY));
    dev.get("hardhat_stopImpersonatingAccount", json!([NOBODY]));
    dev.refused("eth_sendTransaction", send);
}

#[test]
fn the_clock_is_moved_and_set() {
    let mut dev = dev(Mining::Instant);
    let timestamp = |dev: &mut DevClient| {
        u64_of(dev.get("eth_getBlockByNumber", json!(["latest", false]))["timestamp"].as_str().unwrap())
    };
    dev.get("evm_mine", json!([]));
    assert_eq!(timestamp(&mut dev), dev.now);
    assert_eq!(dev.get("evm_increaseTime", json!([3600])), json!("0xe10"));
    dev.get("evm_mine", json!([]));
    assert_eq!(timestamp(&mut dev), dev.now + 3600);
    let next = dev.now + 10_000;
    dev.get("evm_setNextBlockTimestamp", json!([next]));
    let pending = dev.get("eth_getBlockByNumber", json!(["pending", false]));
    assert_eq!(u64_of(pending["timestamp"].as_str().unwrap()), next);
    dev.get("evm_mine", json!([]));
    assert_eq!(timestamp(&mut dev), next);
    let (code, text) = dev.refused("evm_setNextBlockTimestamp", json!([next]));
    assert!(code == -32000 && text.contains("lower than or equal"), "{text}");
    dev.get("evm_mine", json!([{"timestamp": next + 5, "blocks": 1}]));
    assert_eq!(timestamp(&mut dev), next + 5);
    dev.get("hardhat_mine", json!(["0x3", "0x3c"]));
    assert_eq!(timestamp(&mut dev), next + 6 + 120);
    assert_eq!(dev.number("eth_blockNumber", json!([])), 7);
    assert_eq!(dev.refused("evm_increaseTime", json!(["zz"])).1, "invalid number of seconds zz");
    assert_eq!(dev.refused("hardhat_mine", json!(["0xffffff"])).0, -32005);
}

#[test]
fn interval_mining_follows_the_clock() {
    let mut dev = dev(Mining::Interval(10));
    let start = dev.now;
    dev.get("eth_sendTransaction", transfer(1));
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 1, "queued": 0}));
    let mined: Vec<u64> = (0..35).filter(|second| dev.chain().tick(start + second).unwrap()).collect();
    assert_eq!(mined, [10, 20, 30]);
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE])), 1);
    dev.get("evm_setAutomine", json!([true]));
    assert!(!dev.chain().tick(start + 1_000).unwrap());
    dev.get("eth_sendTransaction", transfer(2));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 4);
    dev.get("evm_stopMining", json!([]));
    dev.get("eth_sendTransaction", transfer(3));
    assert_eq!(
        (dev.number("eth_blockNumber", json!([])), dev.get("eth_mining", json!([]))),
        (4, json!(false))
    );
    dev.get("evm_startMining", json!([]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 5, "waiting transactions are mined");
}

#[test]
fn the_pending_block_contains_the_pool() {
    let mut dev = dev(Mining::Manual);
    let filter = dev.get("eth_newPendingTransactionFilter", json!([]));
    let hash = dev.get("eth_sendTransaction", transfer(7));
    assert_eq!(dev.get("eth_getFilterChanges", json!([filter])), json!([hash]));
    let pending = dev.get("eth_getBlockByNumber", json!(["pending", false]));
    assert_eq!(
        (&pending["number"], &pending["hash"], &pending["nonce"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!((pending["transactions"].as_array().unwrap().len(), &pending["transactions"][0]), (2, &hash));
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "pending"])), 1);
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "latest"])), 0);
    assert_eq!(dev.get("eth_getTransactionByHash", json!([hash]))["from"], json!(ALICE));
    assert_eq!(dev.get("eth_pendingTransactions", json!([]))[0]["hash"], hash);
    let estimate = json!([{"from": ALICE, "to": BOB, "value": 1}, "pending"]);
    assert_eq!(dev.get("eth_estimateGas", estimate), json!("0x5208"));
    assert_eq!(dev.get("anvil_dropTransaction", json!([hash])), hash);
    assert_eq!(dev.get("anvil_dropTransaction", json!([hash])), Value::Null);
    assert_eq!(dev.get("hardhat_dropTransaction", json!([hash])), json!(false));
    assert_eq!(dev.get("eth_getTransactionByHash", json!([hash])), Value::Null);
}

#[test]
fn transactions_of_an_abandoned_branch_return_to_the_pool() {
    let (mut ours, mut theirs) = (dev(Mining::Manual), dev(Mining::Manual));
    let sent = ours.get("eth_sendTransaction", transfer(11));
    ours.get("evm_mine", json!([]));
    theirs.now += 5;
    theirs.get("evm_mine", json!([]));
    theirs.get("evm_mine", json!([]));
    let side = block_of(&mut theirs, 1);
    assert_eq!(ours.chain().import(side, None).unwrap().change, HeadChange::Side);
    let better = block_of(&mut theirs, 2);
    assert!(matches!(ours.chain().import(better, None).unwrap().change, HeadChange::Reorganised(_)));
    assert_eq!(ours.get("eth_getTransactionReceipt", json!([sent])), Value::Null);
    assert_eq!(ours.get("txpool_status", json!([])), json!({"pending": 1, "queued": 0}));
    ours.get("evm_mine", json!([]));
    assert_eq!(ours.get("eth_getTransactionReceipt", json!([sent]))["blockNumber"], json!("0x3"));
}

#[test]
fn the_calls_of_a_batch_run_in_order() {
    let mut dev = dev(Mining::Instant);
    let call = |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let batch = json!([
        call(1, "eth_blockNumber", json!([])),
        call(2, "evm_mine", json!([])),
        call(3, "eth_blockNumber", json!([])),
        {"jsonrpc": "2.0", "method": "evm_mine", "params": []},
        call(4, "eth_blockNumber", json!([])),
    ]);
    let answers = dev.send(&batch.to_string());
    let results: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["result"]).collect();
    assert_eq!(results, [&json!("0x0"), &Value::Null, &json!("0x1"), &json!("0x2")]);
}

#[test]
fn keys_are_made_imported_and_used() {
    let mut dev = dev(Mining::Instant);
    let account = dev.get("personal_newAccount", json!(["secret"]));
    dev.get("anvil_setBalance", json!([account, "0xde0b6b3a7640000"]));
    let send = json!({"from": account, "to": BOB, "value": 1});
    dev.get("eth_sendTransaction", json!([send]));
    dev.now += 1801;
    dev.refused("eth_sendTransaction", json!([send]));
    assert_eq!(dev.refused("personal_sendTransaction", json!([send, "wrong"])).0, -32602);
    dev.get("personal_sendTransaction", json!([send, "secret"]));
    let key = "0x".to_owned() + &"11".repeat(32);
    let imported = dev.get("personal_importRawKey", json!([key, "pw"]));
    assert_eq!(dev.get("personal_dumpRawKey", json!([imported])), json!(key));
    let raw = dev.get("eth_signTransaction", json!([{"from": ALICE, "to": BOB, "value": "0x3"}]));
    let sent = dev.get("eth_sendRawTransaction", json!([raw]));
    assert_eq!(dev.get("eth_getTransactionByHash", json!([sent]))["from"], json!(ALICE));
}

#[test]
fn a_restored_chain_knows_impersonated_senders() {
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_impersonateAccount", json!([NOBODY]));
    dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": NOBODY, "value": "0xde0b6b3a7640000"}]));
    dev.get("eth_sendTransaction", json!([{"from": NOBODY, "to": BOB, "value": 1}]));
    let DevConfig { network, genesis, .. } = config(Mining::Manual);
    let mut other = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    for number in 1..=2 {
        let block = block_of(&mut dev, number);
        let hash = block.header.hash();
        let view = dev.chain().view();
        let receipts = view.block(&hash).unwrap().receipts.receipts().to_vec();
        other.restore(block, receipts, view.state(&hash).cloned()).unwrap();
        assert_eq!(other.view().block(&hash).unwrap().senders, view.block(&hash).unwrap().senders);
    }
    // Imported as a block of another node, it is refused: its signatures are invalid.
    let DevConfig { network, genesis, .. } = config(Mining::Manual);
    let mut stranger = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    stranger.import(block_of(&mut dev, 1), None).unwrap();
    assert!(stranger.import(block_of(&mut dev, 2), None).is_err());
}

/// Initialisation code that emits one log with topic 7.
const LOGGER: &str = "0x60075f5fa100";

#[test]
fn log_ranges_may_start_at_the_pending_block() {
    let mut dev = dev(Mining::Instant);
    let deployment = json!([{"from": ALICE, "data": LOGGER, "gas": "0x30d40"}]);
    dev.get("eth_sendTransaction", deployment.clone());
    let mut logs = |filter: Value| dev.get("eth_getLogs", json!([filter])).as_array().unwrap().len();
    assert_eq!(logs(json!({"fromBlock": "latest"})), 1);
    assert_eq!(logs(json!({"fromBlock": "0x0", "toBlock": "pending"})), 1);
    for end in [json!("pending"), json!("latest"), json!("0x7")] {
        assert_eq!(logs(json!({"fromBlock": "pending", "toBlock": end})), 0, "{end}");
    }
    assert_eq!(logs(json!({"fromBlock": "pending"})), 0);
    let filter = dev.get("eth_newFilter", json!([{"fromBlock": "pending"}]));
    assert_eq!(dev.get("eth_getFilterChanges", json!([filter])), json!([]));
    dev.get("eth_sendTransaction", deployment);
    assert_eq!(dev.get("eth_getFilterChanges", json!([filter])).as_array().unwrap().len(), 1);
}

/// Spellings that the reference node accepts beside the specified ones.
#[test]
fn spellings_of_the_reference_are_accepted() {
    let mut dev = dev(Mining::Instant);
    dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": LOGGER, "gas": "0x30d40"}]));
    let mut logs = |filter: Value| dev.get("eth_getLogs", json!([filter])).as_array().unwrap().len();
    let topic = |last: &str| format!("0x{}{last}", "0".repeat(63));
    assert_eq!(logs(json!({"topics": topic("7")})), 1);
    assert_eq!(logs(json!({"topics": topic("8")})), 0);
    assert_eq!(logs(json!({"fromBlock": "EARLIEST", "toBlock": "Latest"})), 1);
    let both = |dev: &mut DevClient, method: &str, loose: Value, plain: Value| {
        let plain = dev.get(method, plain);
        assert_eq!(dev.get(method, loose), plain, "{method}");
        assert!(!plain.is_null());
    };
    both(&mut dev, "eth_getBlockByNumber", json!(["latest", 1]), json!(["latest", true]));
    both(&mut dev, "eth_getBlockByNumber", json!(["latest", 0]), json!(["latest", false]));
    both(&mut dev, "trace_block", json!(["LATEST"]), json!(["latest"]));
    both(&mut dev, "trace_filter", json!([{"count": "1", "after": "0"}]), json!([{"count": 1, "after": 0}]));
    for (method, params) in [
        ("eth_getBlockByNumber", json!(["latest", 2])),
        ("eth_getBlockByNumber", json!(["LATEST", false])),
        ("eth_getBalance", json!([ALICE, "LATEST"])),
        ("trace_block", json!(["LAST"])),
        ("trace_filter", json!([{"count": "0x1"}])),
        ("trace_filter", json!([{"count": "-1"}])),
    ] {
        assert_eq!(dev.refused(method, params.clone()).0, -32602, "{method} {params}");
    }
}
