//! Traces of older blocks from the index, against the chain's own.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::SyncOptions;
use rootlight_cluster::{ChainSource, IndexSource, with_index};
use rootlight_index::testkit::{PostgresServer, client_config, postgres};
use rootlight_index::{Database, Loader, LoaderOptions, Setup};
use rootlight_node::light::index::BlockIndex;
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::service::Service;
use rootlight_upstream::SharedUpstream;
use serde_json::{Value, json};

use crate::common::{self, outcome};
use crate::front_ends::{ChainBackend, number};
use crate::servers::wait_until;

/// Where the client starts; it also knows the 449 headers below.
const START: u64 = 560;
/// The oldest block that the client proves.
const LOWEST: u64 = START - 449;
/// Blocks with transactions, from block 1 on.
const BUSY: u64 = 60;

/// Calls a contract, creates one by each opcode, and goes on after failures.
const FACTORY: &str = "5f5f5ff0505f5f5f5ff55060fe5f5360015f5ff05000";

/// A chain with transactions of several accounts to several contracts, an index of it, and a client that starts above.
struct IndexedChain {
    chain: Arc<LocalService>,
    front: LightService,
    accounts: Vec<Value>,
    contracts: Vec<Value>,
    hashes: Vec<Value>,
    database: Database,
    start: String,
    _postgres: Arc<PostgresServer>,
}

fn options(index: Option<Arc<dyn BlockIndex>>) -> LightOptions {
    let sync =
        SyncOptions { poll: 50, retry: 50, longest_retry: 100, work_floor: 0, ..SyncOptions::default() };
    LightOptions { sync, max_age: 0, index, ..LightOptions::default() }
}

/// Deploys code of less than 32 bytes; returns the contract.
async fn deploy(chain: &LocalService, from: &Value, code: &str) -> Value {
    let length = code.len() / 2;
    let (push, offset) = (0x5f + length, 32 - length);
    let data = format!("0x{push:02x}{code}5f5260{length:02x}60{offset:02x}f3");
    let call = json!([{ "from": from, "data": data, "gas": "0x30d40" }]);
    let hash = outcome(chain, "eth_sendTransaction", call).await.unwrap();
    let receipt = outcome(chain, "eth_getTransactionReceipt", json!([hash])).await.unwrap();
    receipt["contractAddress"].clone()
}

impl IndexedChain {
    async fn new() -> Option<Self> {
        let postgres = postgres()?;
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let accounts =
            outcome(&*chain, "eth_accounts", json!([])).await.unwrap().as_array().unwrap()[..4].to_vec();
        let mut contracts = vec![deploy(&chain, &accounts[0], FACTORY).await];
        let callee = contracts[0].as_str().unwrap()[2..].to_owned();
        // A contract that calls the first one, one that destructs itself, two that fail.
        for code in [&format!("5f5f5f5f5f73{callee}5af100"), "33ff", "5f5ffd", "fe"] {
            contracts.push(deploy(&chain, &accounts[1], code).await);
        }
        let (mut hashes, mut turn) = (Vec::new(), 0_usize);
        while number(&outcome(&*chain, "eth_blockNumber", json!([])).await.unwrap()) < BUSY {
            turn += 1;
            let from = &accounts[turn % 3];
            let to = contracts.get(turn % 7).unwrap_or(&accounts[3]);
            let call = json!([{ "from": from, "to": to, "gas": "0x30d40", "gasPrice": "0x3938700" }]);
            // A transaction that fails is mined all the same, and reported as an error.
            let _ = outcome(&*chain, "eth_sendTransaction", call).await;
        }
        for at in 1..=BUSY {
            let block =
                outcome(&*chain, "eth_getBlockByNumber", json!([format!("{at:#x}"), false])).await.unwrap();
            hashes.extend(block["transactions"].as_array().unwrap().clone());
        }
        outcome(&*chain, "hardhat_mine", json!(["0x200"])).await.unwrap();
        let url = postgres.database().await;
        let database = Database::parse(&url, client_config()).unwrap();
        let hash = |block: Value| block["hash"].as_str().unwrap().to_owned();
        let genesis = hash(outcome(&*chain, "eth_getBlockByNumber", json!(["0x0", false])).await.unwrap());
        let above = hash(
            outcome(&*chain, "eth_getBlockByNumber", json!([format!("{START:#x}"), false])).await.unwrap(),
        );
        let start = format!("0:{genesis}");
        load(&chain, &database, &start).await;
        let network = Network::regtest();
        let index = IndexSource::open(&url, Arc::new(network.clone()), 8 << 20).await.unwrap();
        let backend: SharedUpstream = Arc::new(ChainBackend::new(chain.clone()));
        let begin = start_checkpoint(Some(&format!("{START}:{above}")), &network).unwrap();
        let front = LightService::start(
            network,
            begin,
            with_index(vec![backend], &index),
            options(Some(index.clone())),
        );
        front.settled(Duration::from_secs(60)).await;
        index.follow(front.proven_chain());
        Some(Self { chain, front, accounts, contracts, hashes, database, start, _postgres: postgres })
    }

    /// The whole answer of the client, and the result of the chain.
    async fn both(&self, method: &str, params: Value) -> (Value, Value) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = self.front.answer(message.to_string().into_bytes()).await.into_text().unwrap();
        (serde_json::from_str(&body).unwrap(), outcome(&*self.chain, method, params).await.unwrap())
    }

    async fn head(&self) -> u64 {
        number(&outcome(&*self.chain, "eth_blockNumber", json!([])).await.unwrap())
    }

    /// Waits until the client has the chain's head.
    async fn reached(&self) {
        let head = self.head().await;
        wait_until("the head", || async {
            outcome(&self.front, "eth_blockNumber", json!([])).await.is_ok_and(|found| number(&found) == head)
        })
        .await;
    }
}

async fn load(chain: &Arc<LocalService>, database: &Database, start: &str) {
    let network = Network::regtest();
    let upstreams: Vec<SharedUpstream> = vec![Arc::new(ChainBackend::new(chain.clone()))];
    let begin = start_checkpoint(Some(start), &network).unwrap();
    let light = LightService::start(network.clone(), begin, upstreams.clone(), options(None));
    light.settled(Duration::from_secs(60)).await;
    let source = ChainSource::new(light, upstreams, Arc::new(network.clone())).with_traces();
    let setup = Setup {
        partition_blocks: Some(150),
        first_block: None,
        wait: true,
        connections: 6,
        name: "test".into(),
    };
    let loader = Loader {
        database: database.clone(),
        network,
        setup,
        source: Arc::new(source),
        options: LoaderOptions { jobs: 2, once: true, traces: true, ..LoaderOptions::default() },
        observer: Arc::new(|_| {}),
    };
    loader.run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_of_older_blocks_are_those_of_the_chain() {
    let Some(fixture) = IndexedChain::new().await else { return };
    for block in 0..=BUSY {
        let at = json!([format!("{block:#x}")]);
        let (given, truth) = fixture.both("trace_block", at.clone()).await;
        assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "block {block}");
        let hash = fixture.both("eth_getBlockByNumber", json!([at[0], false])).await.1["hash"].clone();
        let (given, truth) = fixture.both("trace_block", json!([hash])).await;
        assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "{hash}");
        for (method, params) in [
            ("eth_getUncleCountByBlockNumber", at.clone()),
            ("eth_getUncleCountByBlockHash", json!([hash])),
            ("eth_getUncleByBlockNumberAndIndex", json!([at[0], "0x0"])),
        ] {
            let (given, truth) = fixture.both(method, params).await;
            assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "{method} {block}");
        }
    }
    let mut kinds = std::collections::BTreeSet::new();
    for hash in &fixture.hashes {
        let (given, truth) = fixture.both("trace_transaction", json!([hash])).await;
        assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "{hash}");
        for trace in truth.as_array().unwrap() {
            let failed = !trace["error"].is_null();
            kinds.insert((
                trace["type"].as_str().unwrap().to_owned(),
                trace["traceAddress"] == json!([]),
                failed,
            ));
        }
    }
    assert!(kinds.len() >= 6, "the chain has traces of few kinds: {kinds:?}");
    // Blocks that are proven here are executed here.
    let (given, truth) = fixture.both("trace_block", json!([format!("{START:#x}")])).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null));
}

/// Filters over blocks that the index has, against a plain scan by the chain itself.
#[test]
fn filters_of_traces_give_what_the_chain_gives() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let Some(fixture) = runtime.block_on(IndexedChain::new()) else { return };
    let head = runtime.block_on(fixture.head());
    let zero = json!("0x0000000000000000000000000000000000000000");
    let remasc = json!("0x0000000000000000000000000000000001000008");
    let senders: Vec<Value> = fixture.accounts.iter().cloned().chain([zero]).collect();
    let receivers: Vec<Value> =
        fixture.contracts.iter().chain(&fixture.accounts[3..]).cloned().chain([remasc]).collect();
    let some = |list: Vec<Value>| prop_oneof![2 => Just(Vec::new()), 1 => proptest::sample::subsequence(list.clone(), 1..=list.len().min(3))];
    let page = (
        prop_oneof![Just(None), (0..60_u64).prop_map(Some)],
        prop_oneof![Just(None), (0..60_u64).prop_map(Some)],
    );
    let cases = (some(senders), some(receivers), 0..LOWEST, 0..=head, page);
    let found = std::cell::Cell::new(0);
    TestRunner::new(Config { cases: 60, ..Config::default() })
        .run(&cases, |(senders, receivers, from, to, (after, count))| {
            let to = to.max(from);
            let mut filter = json!({ "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}") });
            for (name, list) in [("fromAddress", senders), ("toAddress", receivers)] {
                if !list.is_empty() {
                    filter[name] = json!(list);
                }
            }
            for (name, given) in [("after", after), ("count", count)] {
                if let Some(given) = given {
                    filter[name] = json!(given);
                }
            }
            let (given, truth) = runtime.block_on(fixture.both("trace_filter", json!([filter])));
            prop_assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "{}", filter);
            found.set(found.get() + u32::from(truth != json!([])));
            Ok(())
        })
        .unwrap();
    assert!(found.get() > 20, "only {} filters select traces", found.get());
    runtime.block_on(pages_and_newer_blocks(&fixture));
}

/// The newest blocks are not in the index yet: the client executes them, and pages go over both.
async fn pages_and_newer_blocks(fixture: &IndexedChain) {
    for turn in 0..3 {
        let call = json!([{ "from": fixture.accounts[turn], "to": fixture.contracts[1], "gas": "0x30d40", "gasPrice": "0x3938700" }]);
        outcome(&*fixture.chain, "eth_sendTransaction", call).await.unwrap();
    }
    fixture.reached().await;
    let to = json!({ "toAddress": fixture.contracts[1] });
    let all = fixture.both("trace_filter", json!([to])).await;
    assert_eq!((&all.0["result"], &all.0["level"]), (&all.1, &json!("unproven")));
    let count = all.1.as_array().unwrap().len();
    for (after, most) in [(0, count - 2), (3, count), (count - 4, 3), (count - 1, 1), (count, 5), (0, 0)] {
        let mut page = to.clone();
        (page["after"], page["count"]) = (json!(after), json!(most));
        let (given, truth) = fixture.both("trace_filter", json!([page])).await;
        assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "{page}");
    }
    // Ranges and pages beyond the limits are refused as by the chain.
    for (filter, text) in [
        (json!({ "fromBlock": "0x50", "toBlock": "0x4f" }), "greater than toBlock"),
        (json!({ "count": 10_001 }), "Count value too big"),
        (json!({ "after": 10_001 }), "After value too big"),
    ] {
        let refused = outcome(&fixture.front, "trace_filter", json!([filter])).await.unwrap_err();
        let truth = outcome(&*fixture.chain, "trace_filter", json!([filter])).await.unwrap_err();
        assert_eq!(refused, truth);
        assert!(
            refused["message"].as_str().unwrap().to_lowercase().contains(&text.to_lowercase()),
            "{refused}"
        );
    }
    // Traces that the index lacks are named.
    let client = fixture.database.connect().await.unwrap();
    client.batch_execute("UPDATE rootlight.ranges SET traces_next = 20 WHERE first_block = 0").await.unwrap();
    let lacks =
        outcome(&fixture.front, "trace_filter", json!([{ "fromBlock": "0x5", "toBlock": "0x16" }])).await;
    let lacks = lacks.unwrap_err();
    assert!(lacks["message"].as_str().unwrap().contains("no complete traces of blocks 5 to 22"), "{lacks}");
    let lacks = outcome(&fixture.front, "trace_block", json!(["0x14"])).await.unwrap_err();
    assert!(lacks["message"].as_str().unwrap().contains("older than"), "{lacks}");
    // The next run of the indexer cannot store what is there.
    client.batch_execute("DELETE FROM rootlight.traces WHERE block_number BETWEEN 20 AND 149").await.unwrap();
    load(&fixture.chain, &fixture.database, &fixture.start).await;
    let again = fixture.both("trace_filter", json!([to])).await;
    assert_eq!(again.0["result"], again.1);
}
