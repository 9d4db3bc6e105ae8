//! Development chains that begin on a block of another one, which proves its state.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::light::{UnprovenPolicy, UpstreamRequest};
use rootlight_limits::budget::Reservation;
use rootlight_node::fork::{Fork, ForkBlock, ForkError, ForkOptions, ForkSource};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_upstream::{ReservedResults, Upstream, UpstreamError, UpstreamResult};
use serde_json::{Value, json};

use crate::common::{answered, dev_chain, outcome};

/// A token whose balances are in the slots with the owners' addresses. Call data: recipient and amount, a word each.
const TOKEN_CODE: &str = "0x602035335481811060 1a578190033355600035540160003555005b600080fd";
pub(super) const TOKEN: &str = "0x00000000000000000000000000000000000070cE";
/// Code with one log, without topics and data.
const LOG_CODE: &str = "0x60006000a000";
/// An account of the network with many tokens.
pub(super) const WHALE: &str = "0x000000000000000000000000000000000000ba1e";
pub(super) const OTHER: &str = "0x00000000000000000000000000000000000000aa";

/// A development chain as the upstream of a fork.
pub(super) struct Node {
    pub(super) chain: Arc<LocalService>,
    pub(super) asked: AtomicUsize,
    /// Whether it answers nothing.
    pub(super) is_down: AtomicBool,
    /// Whether it never answers.
    pub(super) is_silent: AtomicBool,
    /// Methods that the node does not have.
    pub(super) lacks: Vec<&'static str>,
    /// Replaces results of the node.
    pub(super) lie: Mutex<Option<Lie>>,
}

/// Makes a false response of a true one.
pub(super) type Lie = fn(&UpstreamRequest, UpstreamResult) -> UpstreamResult;

/// Methods that a stock public node has not.
pub(super) const PROOFS: [&str; 4] =
    ["eth_getProof", "rsk_getProof", "rootlight_getWitness", "rootlight_getHeaders"];

impl Node {
    pub(super) fn of(chain: Arc<LocalService>, lacks: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            chain,
            asked: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            lacks: lacks.to_vec(),
            lie: Mutex::new(None),
        })
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn answer(&self, request: UpstreamRequest) -> UpstreamResult {
        if self.is_silent.load(Ordering::SeqCst) {
            std::future::pending().await
        }
        if self.is_down.load(Ordering::SeqCst) {
            return Err(UpstreamError::Transport("no program listens there".into()));
        }
        if self.lacks.contains(&request.method) {
            return Err(UpstreamError::Rpc { code: -32601, message: "method not found".into(), data: None });
        }
        let asked = UpstreamRequest::new(request.method, request.params.clone());
        let result = answered(&*self.chain, request).await;
        let lie = *self.lie.lock().unwrap();
        lie.map_or_else(|| result.clone(), |lie| lie(&asked, result.clone()))
    }
}

impl Upstream for Node {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            // As over a network, no response is there at once: timers count milliseconds.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let mut results = Vec::new();
            for request in requests {
                results.push(self.answer(request).await);
            }
            (results, Reservation::default())
        })
    }

    fn name(&self) -> &str {
        "node"
    }
}

pub(super) async fn ok(service: &LocalService, method: &str, params: Value) -> Value {
    outcome(service, method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// A chain with the token, a transfer from the whale in block 3, and a few blocks above.
pub(super) async fn network() -> Arc<LocalService> {
    network_with(LocalOptions::default()).await
}

async fn network_with(options: LocalOptions) -> Arc<LocalService> {
    let chain = dev_chain(Mining::Instant, options);
    prepare(&chain).await;
    chain
}

pub(super) async fn prepare(chain: &LocalService) {
    let code = TOKEN_CODE.replace(' ', "");
    ok(chain, "anvil_setCode", json!([TOKEN, code])).await;
    ok(chain, "anvil_setStorageAt", json!([TOKEN, WHALE, word(1_000)])).await;
    // A state with some levels, of which no proof shows everything.
    for owner in 1..80_u64 {
        ok(
            chain,
            "anvil_setStorageAt",
            json!([TOKEN, format!("{:#042x}", 0x1000_0000 + owner), format!("0x{}", "7".repeat(64))]),
        )
        .await;
    }
    ok(chain, "anvil_setBalance", json!([WHALE, "0xde0b6b3a7640000"])).await;
    ok(chain, "evm_mine", json!([{ "blocks": 2 }])).await;
    ok(chain, "anvil_impersonateAccount", json!([WHALE])).await;
    let hash = transfer(chain, WHALE, OTHER, 40).await;
    assert_eq!(ok(chain, "eth_getTransactionReceipt", json!([hash])).await["status"], "0x1");
    ok(chain, "evm_mine", json!([{ "blocks": 20 }])).await;
}

pub(super) fn word(number: u64) -> String {
    format!("{number:#066x}")
}

fn address_word(address: &str) -> String {
    format!("{:0>64}", address.trim_start_matches("0x"))
}

/// Sends tokens; returns the transaction's hash.
pub(super) async fn transfer(chain: &LocalService, from: &str, to: &str, amount: u64) -> Value {
    let data = format!("0x{}{:064x}", address_word(to), amount);
    let sent = json!([{ "from": from, "to": TOKEN, "data": data, "gas": "0x186a0", "gasPrice": "0x1" }]);
    ok(chain, "eth_sendTransaction", sent).await
}

pub(super) async fn tokens(chain: &LocalService, of: &str) -> u64 {
    let value = ok(chain, "eth_getStorageAt", json!([TOKEN, of, "latest"])).await;
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

pub(super) async fn height(chain: &LocalService) -> u64 {
    let value = ok(chain, "eth_blockNumber", json!([])).await;
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

pub(super) async fn block_hash(chain: &LocalService, number: u64) -> String {
    let block = ok(chain, "eth_getBlockByNumber", json!([format!("{number:#x}"), false])).await;
    block["hash"].as_str().unwrap_or_default().to_owned()
}

pub(super) async fn trusted(chain: &LocalService, number: u64) -> ForkBlock {
    ForkBlock::Trusted(number, block_hash(chain, number).await.parse().unwrap())
}

pub(super) async fn open(
    nodes: &[&Arc<Node>],
    folder: Option<&Path>,
    unproven: UnprovenPolicy,
    block: ForkBlock,
) -> Result<Fork, ForkError> {
    let options = ForkOptions { folder: folder.map(Into::into), ..ForkOptions::new(Network::regtest()) };
    open_with(nodes, unproven, options, block).await
}

pub(super) async fn open_with(
    nodes: &[&Arc<Node>],
    unproven: UnprovenPolicy,
    options: ForkOptions,
    block: ForkBlock,
) -> Result<Fork, ForkError> {
    let upstreams = nodes.iter().map(|node| (*node).clone() as Arc<dyn Upstream>).collect();
    Fork::open(ForkSource::new(upstreams, unproven), options, vec!["http://node".into()], block).await
}

pub(super) async fn on(fork: Fork) -> Result<Arc<LocalService>, ForkError> {
    tokio::task::spawn_blocking(move || {
        let entropy = Entropy::from_system().unwrap();
        let base = fork.base();
        let config = || DevConfig::above(Network::regtest(), base.clone(), &DevAccounts::default());
        let node = fork.node(config, host_input(&entropy))?;
        let options = LocalOptions { fork: Some(Arc::new(fork)), ..LocalOptions::default() };
        Ok(Arc::new(LocalService::new(Box::new(node), options, entropy, None)))
    })
    .await
    .unwrap()
}

pub(super) async fn forked(node: &Arc<Node>, folder: Option<&Path>, block: ForkBlock) -> Arc<LocalService> {
    on(open(&[node], folder, UnprovenPolicy::Refuse, block).await.unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_reads_the_networks_state_and_changes_its_own() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Head).await;
    let head = height(&node.chain).await;
    assert_eq!(height(&chain).await, head);
    assert_eq!(block_hash(&chain, head).await, block_hash(&node.chain, head).await);
    assert_eq!((tokens(&chain, WHALE).await, tokens(&chain, OTHER).await), (960, 40));
    assert_eq!(ok(&chain, "eth_getBalance", json!([OTHER, "latest"])).await, "0x0");
    let accounts = ok(&chain, "eth_accounts", json!([])).await;
    let balance = ok(&chain, "eth_getBalance", json!([accounts[0], "latest"])).await;
    assert_eq!(balance, "0x21e19e0c9bab2400000", "10,000 RBTC");

    ok(&chain, "anvil_impersonateAccount", json!([WHALE])).await;
    let hash = transfer(&chain, WHALE, OTHER, 60).await;
    let receipt = ok(&chain, "eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!((&receipt["status"], height(&chain).await), (&json!("0x1"), head + 1));
    assert_eq!((tokens(&chain, WHALE).await, tokens(&chain, OTHER).await), (900, 100));
    assert_eq!(tokens(&node.chain, WHALE).await, 960, "the network is not changed");
    let trace = ok(&chain, "debug_traceTransaction", json!([hash, { "tracer": "callTracer" }])).await;
    assert_eq!(trace["to"].as_str().unwrap().to_lowercase(), TOKEN.to_lowercase());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_transfer_takes_at_most_three_exchanges_and_a_second_run_none() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &["rootlight_getWitness"]);
    let block = trusted(&node.chain, height(&node.chain).await).await;
    let run = async |chain: &LocalService| {
        ok(chain, "anvil_impersonateAccount", json!([WHALE])).await;
        transfer(chain, WHALE, OTHER, 60).await;
    };
    let chain = forked(&node, Some(folder.path()), block).await;
    let before = node.asked();
    run(&chain).await;
    let exchanges = node.asked() - before;
    assert!((1..=3).contains(&exchanges), "{exchanges}");
    assert_eq!(tokens(&chain, OTHER).await, 100);
    drop(chain);

    node.is_down.store(true, Ordering::SeqCst);
    let before = node.asked();
    let chain = forked(&node, Some(folder.path()), block).await;
    run(&chain).await;
    assert_eq!((tokens(&chain, OTHER).await, node.asked() - before), (100, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_linked_once_and_its_hash_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(10)).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (10, 40));
    drop(chain);
    node.is_down.store(true, Ordering::SeqCst);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(10)).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (10, 40));
    // Before the transfer.
    node.is_down.store(false, Ordering::SeqCst);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(2)).await;
    assert_eq!((tokens(&chain, WHALE).await, tokens(&chain, OTHER).await), (1_000, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_hash_is_linked_anew_where_the_chain_has_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(10)).await;
    let before = block_hash(&chain, 10).await;
    drop(chain);
    let anew = dev_chain(Mining::Instant, LocalOptions::default());
    ok(&anew, "anvil_setStorageAt", json!([TOKEN, OTHER, word(7)])).await;
    ok(&anew, "evm_mine", json!([{ "blocks": 12 }])).await;
    let node = Node::of(anew, &[]);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(10)).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (10, 7));
    assert_ne!(block_hash(&chain, 10).await, before);
    // The new hash is kept in its place.
    drop(chain);
    node.is_down.store(true, Ordering::SeqCst);
    let chain = forked(&node, Some(folder.path()), ForkBlock::Number(10)).await;
    assert_eq!(tokens(&chain, OTHER).await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_change_a_forks_state_time_and_snapshots() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Head).await;
    let saved = ok(&chain, "evm_snapshot", json!([])).await;
    ok(&chain, "anvil_setBalance", json!([OTHER, "0x7b"])).await;
    ok(&chain, "anvil_setStorageAt", json!([TOKEN, OTHER, word(7)])).await;
    ok(&chain, "anvil_setNonce", json!([OTHER, "0x5"])).await;
    assert_eq!(tokens(&chain, OTHER).await, 7);
    assert_eq!(ok(&chain, "eth_getBalance", json!([OTHER, "latest"])).await, "0x7b");
    assert_eq!(ok(&chain, "eth_getTransactionCount", json!([OTHER, "latest"])).await, "0x5");
    ok(&chain, "evm_increaseTime", json!([86_400])).await;
    ok(&chain, "evm_mine", json!([])).await;
    let time = async |number: u64| {
        let block = ok(&chain, "eth_getBlockByNumber", json!([format!("{number:#x}"), false])).await;
        u64::from_str_radix(block["timestamp"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    let head = height(&chain).await;
    assert!(time(head).await >= time(head - 1).await + 86_400);
    assert_eq!(ok(&chain, "evm_revert", json!([saved])).await, true);
    assert_eq!((tokens(&chain, OTHER).await, height(&chain).await), (40, head - 1));
    // Only what was changed has a trie here, so that nothing is proven above the fork.
    let proof = outcome(&*chain, "eth_getProof", json!([TOKEN, [], "latest"])).await.unwrap_err();
    assert_eq!(proof["code"], -32002, "{proof}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_begins_again_on_another_block() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Number(10)).await;
    ok(&chain, "anvil_setStorageAt", json!([TOKEN, OTHER, word(7)])).await;
    ok(&chain, "evm_mine", json!([])).await;
    ok(&chain, "hardhat_reset", json!([])).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (10, 40));
    let forking = json!([{ "forking": { "jsonRpcUrl": "http://node", "blockNumber": 2 } }]);
    ok(&chain, "hardhat_reset", forking).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (2, 0));
    ok(&chain, "evm_mine", json!([])).await;
    assert_eq!(height(&chain).await, 3);
    ok(&chain, "anvil_reset", json!([{ "forking": {} }])).await;
    let head = height(&node.chain).await;
    assert_eq!((height(&chain).await, tokens(&chain, OTHER).await), (head, 40));
    ok(&node.chain, "evm_mine", json!([])).await;
    ok(&chain, "anvil_reset", json!([{ "forking": {} }])).await;
    assert_eq!(height(&chain).await, head + 1, "the newest head, once more");
    let beyond = json!([{ "forking": { "blockNumber": "0x999" } }]);
    let error = outcome(&*chain, "anvil_reset", beyond).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("no block 2457"), "{error}");
    assert_eq!(height(&chain).await, head + 1);
    let alone = dev_chain(Mining::Instant, LocalOptions::default());
    let error =
        outcome(&*alone, "anvil_reset", json!([{ "forking": { "blockNumber": 2 } }])).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("--fork"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_names_no_other_upstream_where_others_are_served() {
    let node = Node::of(network().await, &[]);
    let options = ForkOptions { has_fixed_urls: true, ..ForkOptions::new(Network::regtest()) };
    let fork = open_with(&[&node], UnprovenPolicy::Refuse, options, ForkBlock::Number(10)).await.unwrap();
    let chain = on(fork).await.unwrap();
    let of = |url: &str| json!([{ "forking": { "jsonRpcUrl": url, "blockNumber": 2 } }]);
    // Where nothing answers, another error would come if it were asked.
    let error = outcome(&*chain, "hardhat_reset", of("http://127.0.0.1:9/")).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("the upstreams of its start alone"), "{error}");
    assert_eq!(height(&chain).await, 10);
    ok(&chain, "hardhat_reset", of("http://node")).await;
    assert_eq!(height(&chain).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_and_logs_below_the_fork_come_from_the_network() {
    let node = Node::of(network().await, &[]);
    let chain = forked(&node, None, ForkBlock::Number(10)).await;
    let same = async |method: &str, params: Value| {
        let here = ok(&chain, method, params.clone()).await;
        let there = ok(&node.chain, method, params).await;
        let strip = |mut value: Value| {
            // The work below the fork is not known.
            if let Some(members) = value.as_object_mut() {
                members.remove("totalDifficulty");
            }
            value
        };
        assert_eq!(strip(here), strip(there), "{method}");
    };
    for number in [10, 9, 3, 1] {
        let (at, hash) = (format!("{number:#x}"), block_hash(&node.chain, number).await);
        same("eth_getBlockByNumber", json!([at, true])).await;
        same("eth_getBlockByHash", json!([hash, false])).await;
        same("eth_getBlockReceipts", json!([at])).await;
        same("eth_getUncleCountByBlockNumber", json!([at])).await;
        let at_height = ok(&chain, "eth_getBlocksByNumber", json!([at])).await;
        assert_eq!(at_height[0]["hash"], json!(hash), "{at_height}");
    }
    let block = ok(&node.chain, "eth_getBlockByNumber", json!(["0x3", false])).await;
    for hash in block["transactions"].as_array().unwrap() {
        same("eth_getTransactionByHash", json!([hash])).await;
        same("eth_getTransactionReceipt", json!([hash])).await;
    }
    let all = json!([{ "fromBlock": "0x1", "toBlock": "0xa" }]);
    same("eth_getLogs", all).await;
    ok(&chain, "evm_mine", json!([{ "blocks": 3 }])).await;
    let logs = ok(&chain, "eth_getLogs", json!([{ "fromBlock": "0x1", "toBlock": "latest" }])).await;
    assert!(logs.is_array());
    let nothing = format!("0x{:064x}", 7);
    assert_eq!(ok(&chain, "eth_getTransactionByHash", json!([nothing])).await, Value::Null);
    assert_eq!(ok(&chain, "eth_getBlockByHash", json!([nothing, false])).await, Value::Null);
    let later = block_hash(&node.chain, 12).await;
    assert_eq!(ok(&chain, "eth_getBlockByHash", json!([later, false])).await, Value::Null, "above the fork");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_below_the_fork_are_found_by_their_address() {
    let node = Node::of(network().await, &[]);
    let there = &*node.chain;
    ok(there, "anvil_setCode", json!([OTHER, LOG_CODE])).await;
    let send = async |chain: &LocalService| {
        let sent = json!([{ "from": WHALE, "to": OTHER, "gas": "0x186a0", "gasPrice": "0x1" }]);
        ok(chain, "eth_sendTransaction", sent).await
    };
    send(there).await;
    ok(there, "evm_mine", json!([{ "blocks": 2 }])).await;
    let chain = forked(&node, None, ForkBlock::Head).await;
    ok(&chain, "anvil_impersonateAccount", json!([WHALE])).await;
    send(&chain).await;
    let logs = async |chain: &LocalService, from: u64, to: u64| {
        let range =
            json!([{ "address": OTHER, "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}") }]);
        ok(chain, "eth_getLogs", range).await.as_array().unwrap().clone()
    };
    let head = height(&chain).await;
    assert_eq!(logs(there, 1, head - 1).await.len(), 1);
    assert_eq!(logs(&chain, 1, head - 1).await, logs(there, 1, head - 1).await);
    assert_eq!(logs(&chain, 1, head).await.len(), 2, "below and above");
    assert_eq!(logs(&chain, head, head).await.len(), 1, "above alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_one_run_reads_do_not_evict_each_other() {
    let chain = dev_chain(Mining::Manual, LocalOptions::default());
    ok(&chain, "evm_mine", json!([{ "blocks": 5_000 }])).await;
    let node = Node::of(chain, &[]);
    let fork = open(&[&node], None, UnprovenPolicy::Refuse, ForkBlock::Head).await.unwrap();
    let reading = move || {
        let base = fork.base();
        let has =
            |number: u64| base.header(number).and_then(|header| base.contents(header.sealed())).is_some();
        let have = |numbers: Range<u64>| numbers.clone().filter(|number| has(*number)).count() as u64;
        // The second part is read once the first is there.
        let read = |first: Range<u64>, second: Range<u64>| {
            fork.run(|| {
                let all = first.end - first.start;
                if have(first.clone()) == all { all + have(second.clone()) } else { 0 }
            })
        };
        let before = read(1..1_500, 1..1);
        // The headers of this run and of the run before are more than the fork keeps.
        (before, read(1_500..3_500, 3_500..4_990), read(1..2_400, 2_400..4_800))
    };
    let read = tokio::task::spawn_blocking(reading).await.unwrap();
    assert_eq!(read, (Ok(1_499), Ok(3_490), Err(ForkError::TooMuch(4_096))));
}

#[tokio::test(flavor = "multi_thread")]
async fn remasc_pays_from_blocks_below_the_fork_as_the_network_does() {
    let node = Node::of(network().await, &[]);
    // The fees of the transfer in block 3 are distributed from block 13 on.
    let fork = open(&[&node], None, UnprovenPolicy::Refuse, ForkBlock::Number(10)).await.unwrap();
    assert_eq!(fork.base().first_rewarded_block(), 1);
    let chain = on(fork).await.unwrap();
    ok(&chain, "evm_mine", json!([{ "blocks": 5 }])).await;
    let remasc = json!(["0x0000000000000000000000000000000001000008", "latest"]);
    let at = json!(["0x0000000000000000000000000000000001000008", "0xf"]);
    let (here, there) =
        (ok(&chain, "eth_getBalance", remasc).await, ok(&node.chain, "eth_getBalance", at).await);
    assert_ne!(there, "0x0");
    assert_eq!(here, there);
}
