//! `eth_subscribe` over real sockets: on a development chain, and on a light client whose upstream has no
//! subscriptions.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use common::{RunningServer, client, config, start_service};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use reqwest::header::CONTENT_TYPE;
use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::engine::LocalNode;
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight::local::MAX_EVENTS;
use rootlight::types::{Block, BlockBody};
use rootlight_limits::caller_id::CallerId;
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::ServerLimits;
use rootlight_server::service::Service;
use rootlight_upstream::{ReservedResults, Upstream, UpstreamError, unreserved};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Methods that the upstream does not have.
const SERVICES: [&str; 4] = ["eth_subscribe", "eth_newFilter", "eth_getFilterChanges", "eth_getLogs"];

/// Deploys a contract that logs 42 under topic 7 whenever it is called.
const LOGS_42: &str = "0x600d80600b6000396000f3602a600052600760206000a100";

/// A development chain that can be called directly or serve as an upstream.
struct SharedDevChain(Arc<LocalService>);

impl SharedDevChain {
    fn new() -> Self {
        Self(common::dev_chain(Mining::Instant, LocalOptions::default()))
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, Value> {
        common::outcome(&*self.0, method, params).await
    }

    async fn get(&self, method: &str, params: Value) -> Value {
        self.ask(method, params).await.unwrap()
    }

    async fn transact(&self, mut transaction: Value) -> Value {
        transaction["from"] = self.get("eth_accounts", json!([])).await[0].take();
        transaction["gas"] = "0x30d40".into();
        self.get("eth_sendTransaction", json!([transaction])).await
    }

    /// Deploys the logging contract; returns its address.
    async fn contract(&self) -> Value {
        let hash = self.transact(json!({ "data": LOGS_42 })).await;
        self.get("eth_getTransactionReceipt", json!([hash])).await["contractAddress"].take()
    }
}

impl Upstream for SharedDevChain {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let mut results = Vec::new();
            for call in calls {
                let missing =
                    || UpstreamError::Rpc { code: -32601, message: "method not found".into(), data: None };
                results.push(match SERVICES.contains(&call.method) {
                    true => Err(missing()),
                    false => common::answered(&*self.0, call).await.map_err(|_| missing()),
                });
            }
            results
        }))
    }

    fn name(&self) -> &str {
        "dev"
    }
}

/// A WebSocket client that stores notifications.
struct NotifiedSocket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    notified: Vec<(String, Value)>,
}

impl NotifiedSocket {
    async fn connect(server: &RunningServer) -> Self {
        Self { stream: connect_async(server.ws("/")).await.unwrap().0, notified: Vec::new() }
    }

    /// Returns the next response; notifications are stored.
    async fn next(&mut self, limit: Duration) -> Option<Value> {
        loop {
            let message = tokio::time::timeout(limit, self.stream.next()).await.ok()??.unwrap();
            let Message::Text(text) = message else { continue };
            let mut value: Value = serde_json::from_str(&text).unwrap();
            if value["method"] != "eth_subscription" {
                return Some(value);
            }
            let id = value["params"]["subscription"].as_str().unwrap().to_owned();
            self.notified.push((id, value["params"]["result"].take()));
        }
    }

    async fn send(&mut self, message: &Value) -> Value {
        self.stream.send(Message::text(message.to_string())).await.unwrap();
        self.next(Duration::from_secs(20)).await.unwrap()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).await
    }

    async fn get(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Waits until this many notifications of a subscription have arrived, and takes them.
    async fn notified(&mut self, id: &Value, count: usize) -> Vec<Value> {
        let of = |notified: &(String, Value)| *id == notified.0;
        for _ in 0..400 {
            if self.notified.iter().filter(|notified| of(notified)).count() >= count {
                break;
            }
            assert_eq!(self.next(Duration::from_millis(50)).await, None);
        }
        let (mine, others) = std::mem::take(&mut self.notified).into_iter().partition(of);
        self.notified = others;
        let mine: Vec<(String, Value)> = mine;
        mine.into_iter().map(|(_, result)| result).collect()
    }
}

/// Returns the block numbers of logs, and whether the logs are marked as removed.
fn marks(logs: &[Value]) -> Vec<(&str, bool)> {
    logs.iter().map(|log| (log["blockNumber"].as_str().unwrap(), log["removed"].as_bool().unwrap())).collect()
}

fn numbers(heads: &[Value]) -> Vec<&str> {
    heads.iter().map(|head| head["number"].as_str().unwrap()).collect()
}

/// Checks notifications of new blocks, of logs and of a reorganisation, through a server in front of a
/// service.
async fn follows(dev: &SharedDevChain, contract: &Value, server: &RunningServer, first: u64) {
    let at = |offset: u64| format!("{:#x}", first + offset);
    let mut socket = NotifiedSocket::connect(server).await;
    let heads = socket.get("eth_subscribe", json!(["newHeads"])).await;
    let logs = socket.get("eth_subscribe", json!(["logs", {"address": contract, "topics": [null]}])).await;
    assert_eq!(heads.as_str().unwrap().len(), 34);
    let before = dev.get("evm_snapshot", json!([])).await;
    let bob = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
    for to in [contract, &json!(bob), contract] {
        dev.transact(json!({ "to": to })).await;
    }
    let seen = socket.notified(&heads, 3).await;
    assert_eq!(numbers(&seen), [at(1), at(2), at(3)]);
    let block = dev.get("eth_getBlockByNumber", json!([at(3), false])).await;
    assert_eq!(seen[2].as_object().unwrap().len(), 14);
    assert!(seen[2].as_object().unwrap().iter().all(|(name, value)| block[name] == *value));
    let seen = socket.notified(&logs, 2).await;
    assert_eq!(marks(&seen), [(&*at(1), false), (&*at(3), false)]);
    let from_node = dev.get("eth_getLogs", json!([{"fromBlock": at(1), "toBlock": at(3)}])).await;
    assert_eq!(json!(seen), from_node);

    // Another branch. A client may see any part of it between two polls.
    assert_eq!(dev.get("evm_revert", json!([before])).await, true);
    for to in [&json!(bob), contract, &json!(bob), contract] {
        dev.transact(json!({ "to": to })).await;
    }
    let seen = socket.notified(&logs, 4).await;
    assert_eq!(marks(&seen), [(&*at(1), true), (&*at(3), true), (&*at(2), false), (&*at(4), false)]);
    let seen = socket.notified(&heads, 4).await;
    assert_eq!(numbers(&seen), [at(1), at(2), at(3), at(4)]);

    assert_eq!(socket.get("eth_unsubscribe", json!([logs])).await, true);
    assert_eq!(socket.get("eth_unsubscribe", json!([logs])).await, false);
    dev.transact(json!({ "to": contract })).await;
    assert_eq!(numbers(&socket.notified(&heads, 1).await), [at(5)]);
    assert!(socket.notified(&logs, 0).await.is_empty());
}

#[tokio::test]
async fn a_development_chain_sends_notifications() {
    let dev = SharedDevChain::new();
    let contract = dev.contract().await;
    let server = start_service(config(), dev.0.clone()).await;
    follows(&dev, &contract, &server, 1).await;

    let mut socket = NotifiedSocket::connect(&server).await;
    let pending = socket.get("eth_subscribe", json!(["newPendingTransactions"])).await;
    let hash = dev.transact(json!({ "to": contract })).await;
    assert_eq!(socket.notified(&pending, 1).await, [hash]);
    let syncing = socket.get("eth_subscribe", json!(["syncing"])).await;
    assert!(socket.notified(&syncing, 0).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_sends_notifications_without_subscriptions_of_its_upstream() {
    let dev = Arc::new(SharedDevChain::new());
    let contract = dev.contract().await;
    let genesis = dev.get("eth_getBlockByNumber", json!(["0x0", false])).await;
    let network = Network::regtest();
    let start = format!("0:{}", genesis["hash"].as_str().unwrap());
    let checkpoint = start_checkpoint(Some(&start), &network).unwrap();
    let options = LightOptions {
        sync: SyncOptions { poll: 50, retry: 50, longest_retry: 100, ..SyncOptions::default() },
        ..LightOptions::default()
    };
    let light = Arc::new(LightService::start(network, checkpoint, vec![dev.clone()], options));
    light.settled(Duration::from_secs(20)).await;
    let server = start_service(config(), light.clone()).await;
    follows(&dev, &contract, &server, 1).await;

    // Transactions sent through the client are reported with the hash that the client computes.
    let mut socket = NotifiedSocket::connect(&server).await;
    let pending = socket.get("eth_subscribe", json!(["newPendingTransactions"])).await;
    let from = dev.get("eth_accounts", json!([])).await[1].take();
    let transaction =
        json!({"from": from, "to": from, "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x0"});
    let raw = dev.get("eth_signTransaction", json!([transaction])).await;
    let hash = socket.get("eth_sendRawTransaction", json!([raw])).await;
    assert_eq!(socket.notified(&pending, 1).await, [hash]);
}

#[tokio::test]
async fn subscriptions_are_refused_over_http() {
    let dev = SharedDevChain::new();
    let server = start_service(config(), dev.0.clone()).await;
    for (method, params) in [("eth_subscribe", json!(["newHeads"])), ("eth_unsubscribe", json!(["0x1"]))] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = client().post(server.url("/")).header(CONTENT_TYPE, "application/json").body(message);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], -32601);
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("notifications not supported") && text.contains("WebSocket"), "{text}");
    }
}

#[tokio::test]
async fn subscriptions_belong_to_their_connection_and_have_a_limit() {
    let dev = SharedDevChain::new();
    let limits = ServerLimits { subscriptions: 3, ..ServerLimits::default() };
    let server = start_service(rootlight_server::ServerConfig { limits, ..config() }, dev.0.clone()).await;
    let mut one = NotifiedSocket::connect(&server).await;
    let mut other = NotifiedSocket::connect(&server).await;
    let subscribe = |id: u32, kind: &str| json!({"jsonrpc": "2.0", "id": id, "method": "eth_subscribe", "params": [kind]});

    // Subscriptions in a batch with other calls.
    let batch = json!([
        subscribe(1, "newHeads"),
        {"jsonrpc": "2.0", "id": 2, "method": "eth_blockNumber", "params": []},
        subscribe(3, "blocks"),
        {"jsonrpc": "2.0", "method": "eth_subscribe", "params": ["newHeads"]},
        subscribe(4, "syncing"),
    ]);
    let answers = one.send(&batch).await;
    assert_eq!(answers.as_array().unwrap().len(), 4, "{answers}");
    assert_eq!(answers[1]["result"], "0x0");
    assert_eq!(answers[2]["error"]["code"], -32602);
    let (heads, syncing) = (answers[0]["result"].clone(), answers[3]["result"].clone());

    assert_eq!(
        other.get("eth_unsubscribe", json!([heads])).await,
        false,
        "the subscription of another connection"
    );
    assert_eq!(other.call("eth_unsubscribe", json!([])).await["error"]["code"], -32602);
    assert_eq!(one.get("eth_unsubscribe", json!([syncing])).await, true);

    for _ in 0..2 {
        one.get("eth_subscribe", json!(["newHeads"])).await;
    }
    let refused = one.send(&subscribe(9, "newHeads")).await;
    assert_eq!((refused["id"].clone(), refused["error"]["code"].clone()), (json!(9), json!(-32005)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("3 subscriptions"), "{refused}");
    assert!(other.get("eth_subscribe", json!(["newHeads"])).await.is_string(), "the limit is per connection");

    // The subscriptions of a closed connection are removed.
    drop(one);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getFilterChanges", "params": [heads]});
    let id = CallerId::new(std::net::Ipv4Addr::LOCALHOST.into());
    let subscriber = Arc::new(id.caller(None).for_socket(1));
    for _ in 0..200 {
        let body = dev
            .0
            .answer_message(&subscriber, common::read_message(message.to_string().as_bytes()))
            .await
            .into_text()
            .unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        if answer["error"]["message"] == "filter not found" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("kept");
}

/// A block of a node's canonical chain, as another node imports it.
fn block_of(node: &mut dyn LocalNode, number: u64) -> Block {
    let view = node.local();
    let header = view.headers().by_number(number).unwrap().clone();
    let stored = view.block(&header.hash()).unwrap();
    let body = BlockBody { transactions: stored.body.transactions().to_vec() };
    Block { header: header.header().clone(), body, uncles: Vec::new() }
}

/// Blocks of two branches and of the first one again join the chain while no subscription is polled.
#[tokio::test]
async fn a_switch_of_branches_and_back_between_two_polls_is_notified_in_full() {
    let dev = SharedDevChain::new();
    let server = start_service(config(), dev.0.clone()).await;
    let mut socket = NotifiedSocket::connect(&server).await;
    let heads = socket.get("eth_subscribe", json!(["newHeads"])).await;
    let notified = dev.0.with_node(|node| {
        let (mut own, mut other) = (node.copy(), node.copy());
        let now = node.now();
        let mine = |node: &mut Box<dyn LocalNode>, count: u64, at: u64| -> Vec<Block> {
            let first = node.local().head().number + 1;
            (0..count).for_each(|_| _ = node.dev().unwrap().mine(at).unwrap());
            (first..first + count).map(|number| block_of(&mut **node, number)).collect()
        };
        let (a1, b, a) = (mine(&mut own, 1, now), mine(&mut other, 2, now + 5), mine(&mut own, 2, now));
        let mut notified = Vec::new();
        for block in a1.iter().chain(&b).chain(&a) {
            node.import(block.clone(), None).unwrap();
        }
        let shown = |block: &Block| json!(block.header.hash().to_string());
        // The first branch is the canonical one at the beginning and again at the end.
        notified.extend(a1.iter().chain(&b).chain(&a1).chain(&a).map(shown));
        notified
    });
    let notified = notified.unwrap();
    let seen: Vec<Value> =
        socket.notified(&heads, notified.len()).await.iter().map(|head| head["hash"].clone()).collect();
    assert_eq!(seen, notified);
}

/// A subscriber that misses events must not believe that it has seen all: its socket is closed.
#[tokio::test]
async fn a_subscriber_that_missed_events_is_closed() {
    let dev = SharedDevChain::new();
    let server = start_service(config(), dev.0.clone()).await;
    let mut socket = NotifiedSocket::connect(&server).await;
    socket.get("eth_subscribe", json!(["newPendingTransactions"])).await;
    let many = |node: &mut dyn LocalNode| {
        for number in 0..=MAX_EVENTS {
            let hash = B256::left_padding_from(&number.to_be_bytes());
            node.dev().unwrap().local_mut().note_pending(hash, None);
        }
    };
    dev.0.with_node(many).unwrap();
    loop {
        let message = tokio::time::timeout(Duration::from_secs(20), socket.stream.next()).await;
        match message.expect("an end in time").expect("a close frame").unwrap() {
            Message::Close(Some(frame)) => {
                assert_eq!(u16::from(frame.code), 1013);
                assert!(frame.reason.as_str().contains("fell behind"), "{frame}");
                return;
            }
            Message::Text(text) => panic!("{text}"),
            _ => {}
        }
    }
}
