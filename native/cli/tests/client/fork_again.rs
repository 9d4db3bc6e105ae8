//! Second runs on the same block, which find on disk what the first one has read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use data_encoding::HEXLOWER;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::{double_sha256, reversed};
use rootlight::consensus::mining::BitcoinWork;
use rootlight::light::UnprovenPolicy;
use rootlight::types::{B256, U256};
use rootlight_node::fork::{ForkBlock, ForkOptions};
use rootlight_node::local::LocalService;
use serde_json::{Value, json};

use super::fork::{Node, OTHER, TOKEN, forked, height, network, ok, on, open_with, tokens, trusted};
use crate::common::outcome;

/// Everything that a test reads of the blocks below.
async fn read(chain: &LocalService) -> Vec<Value> {
    let mut answers = Vec::new();
    for number in [10, 9, 3, 1] {
        let at = format!("{number:#x}");
        let block = ok(chain, "eth_getBlockByNumber", json!([at, true])).await;
        for method in ["eth_getBlockReceipts", "eth_getUncleCountByBlockNumber"] {
            answers.push(ok(chain, method, json!([at])).await);
        }
        answers.push(ok(chain, "eth_getBlockByHash", json!([block["hash"], false])).await);
        answers.push(block);
    }
    answers.push(ok(chain, "eth_getLogs", json!([{ "fromBlock": "0x1", "toBlock": "0xa" }])).await);
    answers
}

/// The transactions of block 3, read by their hashes alone.
async fn by_hash(chain: &LocalService, hashes: &[Value]) -> Vec<Value> {
    let mut answers = Vec::new();
    for hash in hashes {
        for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
            answers.push(ok(chain, method, json!([hash])).await);
        }
    }
    answers
}

async fn hashes(node: &Node) -> Vec<Value> {
    let block = ok(&node.chain, "eth_getBlockByNumber", json!(["0x3", false])).await;
    block["transactions"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_asks_nothing_about_blocks_below() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &[]);
    let (block, hashes) = (trusted(&node.chain, 10).await, hashes(&node).await);
    let chain = forked(&node, Some(folder.path()), block).await;
    let before = node.asked();
    let first = (by_hash(&chain, &hashes).await, read(&chain).await);
    assert_eq!(tokens(&chain, OTHER).await, 40);
    assert!(node.asked() > before);
    drop(chain);

    node.is_down.store(true, Ordering::SeqCst);
    let before = node.asked();
    let chain = forked(&node, Some(folder.path()), block).await;
    assert_eq!((by_hash(&chain, &hashes).await, read(&chain).await), first);
    assert_eq!((tokens(&chain, OTHER).await, node.asked() - before), (40, 0));
}

/// A transaction of a block that was read needs no look-up of its place, in the first run either.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_was_read_shows_its_transactions() {
    let node = Node::of(network().await, &[]);
    let hashes = hashes(&node).await;
    let chain = forked(&node, None, ForkBlock::Number(10)).await;
    ok(&chain, "eth_getBlockReceipts", json!(["0x3"])).await;
    let before = node.asked();
    assert!(by_hash(&chain, &hashes).await.iter().all(Value::is_object));
    assert_eq!(node.asked(), before);
}

/// Mines a block with a sibling, and blocks above them. Returns the height of the block that has the sibling as its uncle.
async fn mine_uncle(chain: &LocalService) -> u64 {
    let work = ok(chain, "mnr_getWork", json!([])).await;
    let hash: B256 = work["blockHashForMergedMining"].as_str().unwrap().parse().unwrap();
    for time in [1_800_000_000, 1_800_000_001] {
        let BitcoinWork { header, coinbase, .. } =
            BitcoinWork::new(&hash, time).solved(U256::from(1), 1_000).unwrap();
        let leaf = reversed(&double_sha256(&coinbase));
        let parts = [&header[..], &coinbase, leaf.as_slice()].map(|part| HEXLOWER.encode(part));
        ok(chain, "mnr_submitBitcoinBlockTransactions", json!(["0x", parts[0], parts[1], parts[2]])).await;
    }
    let number = height(chain).await + 1;
    ok(chain, "evm_mine", json!([{ "blocks": 3 }])).await;
    number
}

/// The uncles of a block, by each of the methods that tell about them.
async fn uncles(chain: &LocalService, number: u64) -> Vec<Value> {
    let at = format!("{number:#x}");
    let block = ok(chain, "eth_getBlockByNumber", json!([at, false])).await;
    let uncle = ok(chain, "eth_getUncleByBlockNumberAndIndex", json!([at, "0x0"])).await;
    assert_eq!((&block["uncles"][0], block["uncles"].as_array().unwrap().len()), (&uncle["hash"], 1));
    vec![ok(chain, "eth_getUncleByBlockHashAndIndex", json!([block["hash"], "0x0"])).await, uncle]
}

#[tokio::test(flavor = "multi_thread")]
async fn uncles_that_were_read_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let network = network().await;
    let number = mine_uncle(&network).await;
    let (node, block) = (Node::of(network.clone(), &[]), trusted(&network, number + 2).await);
    let chain = forked(&node, Some(folder.path()), block).await;
    let first = uncles(&chain, number).await;
    assert_eq!(first[0]["hash"], uncles(&network, number).await[0]["hash"]);
    drop(chain);

    let before = node.asked();
    let chain = forked(&node, Some(folder.path()), block).await;
    assert_eq!((uncles(&chain, number).await, node.asked() - before), (first.clone(), 0));
    drop(chain);

    // Kept uncles that are not those of the block's header are fetched again.
    let entry = |entries: &mut [Entry], change: fn(&mut Vec<u8>)| {
        let uncles = entries.iter_mut().find(|(key, _)| key.first() == Some(&UNCLES)).unwrap();
        change(&mut uncles.1);
    };
    let changes: [fn(&mut Vec<u8>); 2] =
        [|value| *value = vec![0xc0], |value| value.iter_mut().for_each(|byte| *byte ^= 1)];
    for change in changes {
        damage(folder.path(), |entries| entry(entries, change));
        let before = node.asked();
        let chain = forked(&node, Some(folder.path()), block).await;
        assert_eq!(uncles(&chain, number).await, first);
        assert!(node.asked() > before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_keeps_nothing_more_and_is_read_still() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &[]);
    let block = trusted(&node.chain, 10).await;
    let with = async |most_file_bytes| {
        let folder = Some(folder.path().into());
        let options = ForkOptions { folder, most_file_bytes, ..ForkOptions::new(Network::regtest()) };
        on(open_with(&[&node], UnprovenPolicy::Refuse, options, block).await.unwrap()).await.unwrap()
    };
    // A file is never empty, so that it is full at once. Whether the state and the blocks are on disk:
    for (most_file_bytes, are_kept) in
        [(1, [false; 2]), (1, [false; 2]), (u64::MAX, [false; 2]), (1, [true; 2])]
    {
        let chain = with(most_file_bytes).await;
        let before = node.asked();
        assert_eq!(tokens(&chain, OTHER).await, 40);
        let between = node.asked();
        read(&chain).await;
        assert_eq!([before == between, between == node.asked()], are_kept, "{most_file_bytes}");
    }
}

/// The first byte of the keys of uncles.
const UNCLES: u8 = 2;

const BLOCKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");

fn file(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "redb")).unwrap()
}

/// Replaces what was kept of blocks; `change` gets all entries.
fn damage(folder: &Path, change: impl Fn(&mut [Entry])) {
    let database = Database::create(file(folder)).unwrap();
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = {
        let read = database.begin_read().unwrap();
        let table = read.open_table(BLOCKS).unwrap();
        let all = table.iter().unwrap().map(Result::unwrap);
        all.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect()
    };
    change(&mut entries);
    let write = database.begin_write().unwrap();
    {
        let mut table = write.open_table(BLOCKS).unwrap();
        for (key, value) in entries {
            table.insert(&*key, &*value).unwrap();
        }
    }
    write.commit().unwrap();
}

/// A key of the file and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// Gives each entry the value of the one after it: heights of other blocks, contents of other blocks.
fn rotate(entries: &mut [Entry]) {
    assert!(entries.len() > 3, "the parts of a block, and its transactions");
    let mut values: Vec<Vec<u8>> = entries.iter().map(|(_, value)| value.clone()).collect();
    values.rotate_left(1);
    entries.iter_mut().zip(values).for_each(|((_, value), other)| *value = other);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_a_file_that_was_changed_are_read_again() {
    let node = Node::of(network().await, &[]);
    let (block, hashes) = (trusted(&node.chain, 10).await, hashes(&node).await);
    let read = async |chain: &Arc<LocalService>| (by_hash(chain, &hashes).await, read(chain).await);
    let changes: [fn(&mut [Entry]); 4] = [
        rotate,
        |entries| entries.iter_mut().for_each(|(_, value)| value.clear()),
        |entries| entries.iter_mut().for_each(|(_, value)| *value = vec![0xff; 100]),
        |entries| entries.iter_mut().for_each(|(_, value)| value.extend(u64::MAX.to_be_bytes())),
    ];
    for change in changes {
        let folder = tempfile::tempdir().unwrap();
        let chain = forked(&node, Some(folder.path()), block).await;
        let first = read(&chain).await;
        drop(chain);
        damage(folder.path(), change);
        let before = node.asked();
        let chain = forked(&node, Some(folder.path()), block).await;
        assert_eq!(read(&chain).await, first);
        assert!(node.asked() > before);
        drop(chain);
        // Without the network, nothing of the file is taken for the network's.
        damage(folder.path(), change);
        node.is_down.store(true, Ordering::SeqCst);
        let chain = forked(&node, Some(folder.path()), block).await;
        let error = outcome(&*chain, "eth_getBlockReceipts", json!(["0x3"])).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{error}");
        node.is_down.store(false, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_about_the_state_of_a_fork_name_it() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Number(10)).await;
    ok(&chain, "evm_mine", json!([])).await;
    let sent =
        ok(&node.chain, "eth_getBlockByNumber", json!(["0x3", false])).await["transactions"][0].clone();
    let call = json!({ "to": TOKEN, "gas": "0x186a0" });
    for (method, params, code) in [
        ("eth_getProof", json!([TOKEN, [], "latest"]), -32002),
        ("eth_getProof", json!([TOKEN, [], "0xa"]), -32002),
        ("rsk_getProof", json!([TOKEN, [], "latest"]), -32002),
        ("eth_getAccount", json!([OTHER, "latest"]), -32002),
        ("rootlight_getWitness", json!([call, "latest"]), -32002),
        ("debug_executionWitness", json!(["latest"]), -32002),
        ("eth_getProof", json!([TOKEN, [], "0x2"]), -32600),
        ("eth_getBalance", json!([OTHER, "0x2"]), -32600),
        ("eth_getStorageAt", json!([TOKEN, "0x0", "0x2"]), -32600),
        ("eth_call", json!([call, "0x2"]), -32600),
        ("debug_traceTransaction", json!([sent]), -32600),
        ("debug_traceBlockByNumber", json!(["0x3"]), -32600),
        ("debug_traceBlockByNumber", json!(["0xa"]), -32600),
        ("debug_traceCall", json!([call, "0x2"]), -32600),
        ("debug_storageRangeAt", json!(["0x3", 0, TOKEN, "0x", 5]), -32600),
        ("trace_block", json!(["0x3"]), -32600),
        ("trace_transaction", json!([sent]), -32600),
        ("trace_replayTransaction", json!([sent, ["trace"]]), -32600),
        ("trace_replayBlockTransactions", json!(["0x3", ["trace"]]), -32600),
        ("trace_filter", json!([{ "fromBlock": "0x3", "toBlock": "0x3" }]), -32600),
        ("ots_getInternalOperations", json!([sent]), -32600),
    ] {
        let error = outcome(&*chain, method, params).await.unwrap_err();
        let message = error["message"].as_str().unwrap();
        assert_eq!(error["code"], code, "{method}: {error}");
        assert!(message.contains("begins on block 10 of another network"), "{method}: {message}");
        assert!(message.contains("ask a node of that network"), "{method}: {message}");
    }
}
