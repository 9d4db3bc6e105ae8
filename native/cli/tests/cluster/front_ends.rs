//! Several front ends of one service in this process: the block that they show, and filters.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use futures::future::BoxFuture;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;
use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::UpstreamRequest;
use rootlight_cluster::serve::{FrontEnd, FrontEndParts, NewBlocks};
use rootlight_cluster::store::HotStore;
use rootlight_limits::caller_id::CallerId;
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::service::Service;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, unreserved};
use serde_json::{Value, json};

use crate::common::{self, outcome};
use crate::servers::{Servers, cluster};

pub(crate) const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// Deploys a contract that emits a log whenever it is called.
const LOGS: &str = "0x6005600c60003960056000f360006000a000";

/// Longest time until front ends have done something, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A chain of this process as a backend.
pub(crate) struct ChainBackend {
    chain: Arc<LocalService>,
    /// Counts the requests for proofs and receipts.
    asked: Arc<AtomicUsize>,
    before_proof: BeforeProof,
}

impl ChainBackend {
    pub(crate) fn new(chain: Arc<LocalService>) -> Self {
        Self { chain, asked: Arc::default(), before_proof: Arc::default() }
    }
}

/// An action that runs once, before the backend gives the next proof.
pub(crate) type BeforeProof = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Upstream for ChainBackend {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let mut results = Vec::new();
            for request in requests {
                let method = request.method;
                let is_fact = method == "eth_getProof" || method.contains("Receipt");
                self.asked.fetch_add(usize::from(is_fact), Ordering::SeqCst);
                if method == "eth_getProof"
                    && let Some(first) = self.before_proof.lock().unwrap().take()
                {
                    first();
                }
                results.push(common::answered(&*self.chain, request).await);
            }
            results
        }))
    }

    fn name(&self) -> &str {
        "chain"
    }
}

/// A chain, and front ends that share a store.
pub(crate) struct FrontEndsFixture {
    chain: Arc<LocalService>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) front_ends: Vec<Arc<FrontEnd>>,
    /// Requests of each front end for proofs and receipts.
    pub(crate) asked: Vec<Arc<AtomicUsize>>,
    pub(crate) before_proof: BeforeProof,
    /// The connection to the store by which each front end reports its head (`heads_store` of `FrontEndParts`). Tests read and change
    /// the store by it.
    pub(crate) stores: Vec<Arc<HotStore>>,
    contract: Value,
    next: AtomicUsize,
    pub(crate) prefix: String,
}

impl FrontEndsFixture {
    /// The value of a metric of a front end, by its name; that of a counter may lack `_total`.
    pub(crate) fn metric(&self, front_end: usize, name: &str) -> u64 {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.front_ends[front_end].register(&mut registry);
        encode_registry(&mut text, &registry).unwrap();
        let value = text.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?;
            rest.strip_prefix("_total ").or_else(|| rest.strip_prefix(' '))
        });
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    pub(crate) async fn new(name: &str, front_ends: usize) -> Option<Self> {
        Some(Self::with(cluster()?, name, front_ends).await)
    }

    pub(crate) async fn with(servers: Arc<Servers>, name: &str, front_ends: usize) -> Self {
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let deploy = json!([{"from": ALICE, "data": LOGS, "gas": "0x30d40"}]);
        let hash = outcome(&*chain, "eth_sendTransaction", deploy).await.unwrap();
        let receipt = outcome(&*chain, "eth_getTransactionReceipt", json!([hash])).await.unwrap();
        let contract = receipt["contractAddress"].clone();
        let prefix = format!("front-ends-{name}");
        let next = AtomicUsize::new(0);
        let (asked, before_proof, stores) = (Vec::new(), BeforeProof::default(), Vec::new());
        let mut fixture = Self {
            chain,
            servers,
            front_ends: Vec::new(),
            asked,
            before_proof,
            stores,
            contract,
            next,
            prefix,
        };
        for number in 0..front_ends {
            fixture.add(&format!("f{number}")).await;
        }
        for front_end in &fixture.front_ends {
            fixture
                .until("a head", async || outcome(&**front_end, "eth_blockNumber", json!([])).await.is_ok())
                .await;
        }
        fixture
    }

    async fn add(&mut self, name: &str) {
        // Three connections, as in the program, so that commands of one kind do not wait for those of another.
        let store = self.servers.connect(&self.prefix).await;
        let heads_store = self.servers.connect(&self.prefix).await;
        let values_store = self.servers.connect(&self.prefix).await;
        self.stores.push(heads_store.clone());
        let asked = Arc::<AtomicUsize>::default();
        self.asked.push(asked.clone());
        let backend: SharedUpstream = Arc::new(ChainBackend {
            chain: self.chain.clone(),
            asked,
            before_proof: self.before_proof.clone(),
        });
        let (backends, new_blocks) = NewBlocks::watch(vec![backend]);
        let network = Network::regtest();
        let genesis = self.of_chain("eth_getBlockByNumber", json!(["0x0", false])).await["hash"].clone();
        let start = start_checkpoint(Some(&format!("0:{}", genesis.as_str().unwrap())), &network).unwrap();
        let options = LightOptions { host_announces_sent: true, ..LightOptions::default() };
        let light = Arc::new(LightService::start(network, start, backends, options));
        let (secret, name) = (B256::repeat_byte(7), name.to_owned());
        let parts = FrontEndParts {
            light,
            new_blocks,
            store,
            heads_store,
            values_store,
            access: None,
            secret,
            chain: 33,
            name,
            answer_cache_bytes: 16 << 20,
        };
        self.front_ends.push(Arc::new(FrontEnd::start(parts)));
    }

    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            assert!(started.elapsed() < PATIENCE, "not in time: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks one front end after another.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.front_ends.len();
        let answer = outcome(&*self.front_ends[turn], method, params).await;
        answer.unwrap_or_else(|error| panic!("{method} at front end {turn}: {error}"))
    }

    pub(crate) async fn of_chain(&self, method: &str, params: Value) -> Value {
        outcome(&*self.chain, method, params).await.unwrap()
    }

    pub(crate) async fn log(&self) {
        let call = json!([{"from": ALICE, "to": self.contract, "gas": "0x186a0"}]);
        self.of_chain("eth_sendTransaction", call).await;
    }

    /// Waits until each front end shows the chain's head.
    pub(crate) async fn reached(&self) {
        let head = self.of_chain("eth_blockNumber", json!([])).await;
        for front_end in &self.front_ends {
            let shows =
                async || outcome(&**front_end, "eth_blockNumber", json!([])).await == Ok(head.clone());
            self.until("the head", shows).await;
        }
    }
}

pub(crate) fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// Asks front ends in turn for their heads until `last` is seen, as a caller with this key or without one. No answer is of an
/// earlier block than one that any caller had before the message was sent. Returns how many answers there were, and how often
/// the head was another one.
async fn watch_head(
    fixture: Arc<FrontEndsFixture>,
    key: Option<u32>,
    seen: Arc<AtomicU64>,
    (last, store_fails): (u64, bool),
) -> (u32, u32) {
    let id = CallerId::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let caller = Arc::new(key.map_or(id, |key| id.of_key(key)).caller(None));
    let (mut answers, mut heads, mut head) = (0, 0, 0);
    while head < last {
        for (method, params) in
            [("eth_blockNumber", json!([])), ("eth_getBlockByNumber", json!(["latest", false]))]
        {
            let turn = fixture.next.fetch_add(1, Ordering::Relaxed) % fixture.front_ends.len();
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let floor = seen.load(Ordering::SeqCst);
            let answer = fixture.front_ends[turn]
                .answer_message(&caller, common::read_message(message.to_string().as_bytes()))
                .await;
            let answer: Value = serde_json::from_str(&answer.into_text().unwrap()).unwrap();
            if answer.get("error").is_some() {
                // A front end that lags says so, which it does only if the store fails.
                assert!(store_fails && answer["error"]["code"] == -32002, "{answer} of front end {turn}");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            let result = &answer["result"];
            let now = number(if result.is_string() { result } else { &result["number"] });
            assert!(now >= floor, "block {floor}, then {now} of front end {turn}, key {key:?}");
            seen.fetch_max(now, Ordering::SeqCst);
            answers += 1;
            heads += u32::from(now > head);
            head = now;
        }
    }
    (answers, heads)
}

/// Callers with keys, two of them with the same one, and without.
const CALLERS: [Option<u32>; 6] = [None, None, None, Some(1), Some(1), Some(2)];

/// Watches the head by all callers while blocks are mined and something else goes on, which may be that the store fails.
async fn watch(
    fixture: FrontEndsFixture,
    (blocks, pause): (u64, Duration),
    store_fails: bool,
    mut before_block: impl AsyncFnMut(&FrontEndsFixture, u64),
) {
    let (fixture, seen) = (Arc::new(fixture), Arc::<AtomicU64>::default());
    let last = number(&fixture.of_chain("eth_blockNumber", json!([])).await) + blocks;
    let callers =
        CALLERS.map(|key| tokio::spawn(watch_head(fixture.clone(), key, seen.clone(), (last, store_fails))));
    for block in 0..blocks {
        before_block(&fixture, block).await;
        fixture.of_chain("evm_mine", json!([])).await;
        tokio::time::sleep(pause).await;
    }
    for caller in callers {
        let (answers, heads) = tokio::time::timeout(PATIENCE, caller).await.expect("in time").unwrap();
        let (least, least_heads) = if store_fails { (20, 3) } else { (100, 5) };
        assert!(answers >= least && heads >= least_heads, "{answers} answers, {heads} heads");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_one_front_end_after_another_never_sees_the_head_go_back() {
    let Some(fixture) = FrontEndsFixture::new("head", 3).await else { return };
    watch(fixture, (40, Duration::from_millis(60)), false, async |fixture, block| {
        if block == 21 {
            // The store forgets the heads that the front ends have reported.
            let key = format!("{}:heads:33", fixture.prefix);
            let server = fixture.servers.server_of(&key);
            assert_eq!(fixture.servers.ask(server, &format!("DEL {key}")), "1");
        }
    })
    .await;
}

/// The store stalls, loses everything, or forgets the reports of some front ends only. A front end's report of its head is the field
/// `m:NAME` of the hash `heads:CHAIN` (heads.lua); it counts for `LIFETIME` (head_agreement.rs), and the store stalls for
/// longer.
#[tokio::test(flavor = "multi_thread")]
async fn the_head_does_not_go_back_when_reports_end_and_the_store_is_emptied() {
    let Some(servers) = Servers::single(&[]) else { return };
    let fixture = FrontEndsFixture::with(Arc::new(servers), "ends", 3).await;
    watch(fixture, (60, Duration::from_millis(80)), true, async |fixture, block| {
        let key = format!("{}:heads:33", fixture.prefix);
        match block % 12 {
            1 => {
                fixture.servers.signal(0, "STOP");
                tokio::time::sleep(Duration::from_millis(2_000)).await;
                fixture.servers.signal(0, "CONT");
            }
            4 => drop(fixture.servers.ask(0, &format!("HDEL {key} m:f0 m:f1"))),
            6 => drop(fixture.servers.ask(0, &format!("HDEL {key} m:f2"))),
            9 => drop(fixture.servers.ask(0, "FLUSHALL")),
            _ => {}
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_is_shown_by_all_front_ends_at_once() {
    let Some(fixture) = FrontEndsFixture::new("reorganisation", 3).await else { return };
    let before = fixture.of_chain("evm_snapshot", json!([])).await;
    for _ in 0..3 {
        fixture.of_chain("evm_mine", json!([])).await;
    }
    fixture.reached().await;
    let old = fixture.ask("eth_getBlockByNumber", json!(["latest", false])).await;
    fixture.of_chain("evm_revert", json!([before])).await;
    for _ in 0..5 {
        fixture.log().await;
    }
    // From the first answer on the new branch on, no front end shows the old one.
    let mut turned = false;
    let started = Instant::now();
    let head = fixture.of_chain("eth_blockNumber", json!([])).await;
    loop {
        let front_end = &fixture.front_ends[fixture.next.fetch_add(1, Ordering::Relaxed) % 3];
        let block = outcome(&**front_end, "eth_getBlockByNumber", json!([old["number"], false])).await;
        // A front end that still shows a reverted block may answer with an error, because the chain no longer has the block's
        // transactions to prove. Such an error counts as the old branch.
        let is_new = block.is_ok_and(|block| block["hash"] != old["hash"]);
        assert!(is_new || !turned, "an earlier branch after a later one");
        turned |= is_new;
        if turned && fixture.ask("eth_blockNumber", json!([])).await == head {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "the new branch is not shown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_is_polled_at_any_front_end_and_outlives_the_one_that_made_it() {
    let Some(mut fixture) = FrontEndsFixture::new("filters", 3).await else { return };
    let logs = fixture.ask("eth_newFilter", json!([{"address": fixture.contract}])).await;
    let blocks = fixture.ask("eth_newBlockFilter", json!([])).await;
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([logs])).await, json!([]));
    assert_eq!(fixture.metric(0, "store_up"), 1);
    let (mut found, mut hashes) = (Vec::new(), Vec::new());
    for round in 0..12 {
        fixture.log().await;
        if round == 5 {
            // The front end that made the first filter goes away.
            drop(fixture.front_ends.remove(0));
        }
        found.extend(fixture.ask("eth_getFilterChanges", json!([logs])).await.as_array().unwrap().clone());
        hashes.extend(fixture.ask("eth_getFilterChanges", json!([blocks])).await.as_array().unwrap().clone());
    }
    fixture.reached().await;
    found.extend(fixture.ask("eth_getFilterChanges", json!([logs])).await.as_array().unwrap().clone());
    hashes.extend(fixture.ask("eth_getFilterChanges", json!([blocks])).await.as_array().unwrap().clone());
    let numbers: Vec<u64> = found.iter().map(|log| number(&log["blockNumber"])).collect();
    assert_eq!(numbers, (2..14).collect::<Vec<_>>(), "each log once");
    for (at, hash) in hashes.iter().enumerate() {
        let block = fixture.of_chain("eth_getBlockByNumber", json!([format!("{:#x}", at + 2), false])).await;
        assert_eq!(block["hash"], *hash);
    }
    assert_eq!(hashes.len(), 12);
    assert_eq!(fixture.ask("eth_uninstallFilter", json!([logs])).await, true);
    for _ in 0..2 {
        assert_eq!(fixture.ask("eth_uninstallFilter", json!([logs])).await, false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_of_one_filter_at_the_same_time_report_everything_once() {
    let Some(fixture) = FrontEndsFixture::new("polls", 3).await else { return };
    let fixture = Arc::new(fixture);
    let id = fixture.ask("eth_newBlockFilter", json!([])).await;
    let polls = (0..6).map(|_| {
        let (fixture, id) = (fixture.clone(), id.clone());
        tokio::spawn(async move {
            let mut found = Vec::new();
            for _ in 0..15 {
                found.extend(
                    fixture.ask("eth_getFilterChanges", json!([id])).await.as_array().unwrap().clone(),
                );
            }
            found
        })
    });
    let polls: Vec<_> = polls.collect();
    for _ in 0..10 {
        fixture.of_chain("evm_mine", json!([])).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let mut found = Vec::new();
    for poll in polls {
        found.extend(poll.await.unwrap());
    }
    fixture.reached().await;
    found.extend(fixture.ask("eth_getFilterChanges", json!([id])).await.as_array().unwrap().clone());
    let mut once = found.clone();
    once.sort_by_key(ToString::to_string);
    once.dedup();
    assert_eq!((found.len(), once.len()), (10, 10), "each block once");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_sent_at_one_front_end_are_pending_at_all() {
    let Some(fixture) = FrontEndsFixture::new("sent", 3).await else { return };
    let polled = fixture.ask("eth_newPendingTransactionFilter", json!([])).await;
    fixture.of_chain("evm_setAutomine", json!([false])).await;
    let mut sent = Vec::new();
    for nonce in 1..4 {
        let signed = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": format!("{nonce:#x}")}]);
        let raw = fixture.of_chain("eth_signTransaction", signed).await;
        sent.push(fixture.ask("eth_sendRawTransaction", json!([raw])).await);
    }
    let mut found = Vec::new();
    let started = Instant::now();
    while found.len() < 3 && started.elapsed() < PATIENCE {
        found.extend(fixture.ask("eth_getFilterChanges", json!([polled])).await.as_array().unwrap().clone());
    }
    assert_eq!(found, sent);
    assert_eq!(fixture.ask("eth_getFilterChanges", json!([polled])).await, json!([]));
}
