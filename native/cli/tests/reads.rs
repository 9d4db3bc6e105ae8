//! Each message of a caller is read once, whatever answers it. This file is a program of its own, because the counter of
//! messages is one of the process.

mod common;
#[cfg(feature = "cluster")]
#[allow(dead_code)]
#[path = "cluster/servers.rs"]
mod servers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::future::BoxFuture;
use futures::{SinkExt as _, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::dev::Mining;
use rootlight::light::UpstreamRequest;
use rootlight::rpc::Message as Request;
use rootlight_limits::priority::SHORT_JSON;
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::service::Service;
use rootlight_server::{AdmissionRules, KeyAccess};
use rootlight_upstream::{ReservedResults, Upstream, unreserved};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Held by each test, so that no message of another one is counted.
static ALONE: Mutex<()> = Mutex::const_new(());

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a message may be read again after its answer.
const LATER: Duration = Duration::from_millis(200);

/// Most calls of a batch in these tests.
const BATCH: usize = 4;

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// A development chain, which light clients ask without messages.
struct Chain(Arc<LocalService>);

impl Upstream for Chain {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(common::answers(&*self.0, requests)))
    }

    fn name(&self) -> &str {
        "chain"
    }
}

impl Chain {
    /// A chain whose first blocks are final.
    async fn new() -> Self {
        let chain = Self(dev_chain(Mining::Instant, LocalOptions::default()));
        chain.ask("hardhat_mine", json!(["0x82"])).await;
        chain
    }

    /// Asks the chain without a message.
    async fn ask(&self, method: &'static str, params: Value) -> Value {
        let result = common::answered(&*self.0, UpstreamRequest::new(method, params.to_string())).await;
        serde_json::from_str(result.unwrap().get()).unwrap()
    }

    /// A transaction that the chain's first funded account has signed.
    async fn signed(&self) -> Value {
        let nonce = self.ask("eth_getTransactionCount", json!([ALICE, "latest"])).await;
        let transfer = json!({"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": nonce});
        self.ask("eth_signTransaction", json!([transfer])).await
    }

    /// The checkpoint and network that light clients of this chain start from.
    async fn start(&self) -> (Network, Checkpoint) {
        let genesis = self.ask("eth_getBlockByNumber", json!(["0x0", false])).await["hash"].clone();
        let network = Network::regtest();
        let start = start_checkpoint(Some(&format!("0:{}", genesis.as_str().unwrap())), &network).unwrap();
        (network, start)
    }
}

/// A client that counts what it sends, and compares that with what was read.
struct Client {
    server: RunningServer,
    /// The key in the path, if the server needs one.
    path: String,
    before: usize,
    sent: usize,
}

impl Client {
    async fn new(service: Arc<dyn Service>, admission: AdmissionRules, path: String) -> Self {
        let mut config = config();
        (config.limits.batch, config.admission) = (BATCH, admission);
        Self { server: start_service(config, service).await, path, before: Request::reads(), sent: 0 }
    }

    /// Checks that each message was read once.
    fn check(&self, message: &str) {
        let shown = message.get(..100).unwrap_or(message);
        assert_eq!(Request::reads() - self.before, self.sent, "read and sent after {shown}");
    }

    async fn post_to(&mut self, path: &str, message: &str) -> Value {
        let request = client().post(self.server.url(path)).header(CONTENT_TYPE, "application/json");
        let response = request.body(message.to_owned()).send().await.unwrap();
        let text = response.text().await.unwrap();
        self.sent += 1;
        self.check(message);
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn post(&mut self, message: &str) -> Value {
        let path = self.path.clone();
        self.post_to(&path, message).await
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.post(&call(method, params)).await["result"].take()
    }
}

fn call(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn send(&mut self, client: &mut Client, message: &str) {
        self.0.send(Message::text(message)).await.unwrap();
        client.sent += 1;
    }

    /// The next answer, or the next notification.
    async fn next(&mut self, is_news: bool) -> Value {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
            let Message::Text(text) = next.expect("in time").expect("open").unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if (message["method"] == "eth_subscription") == is_news {
                return message;
            }
        }
    }

    async fn ask(&mut self, client: &mut Client, message: &str) -> Value {
        self.send(client, message).await;
        let answer = self.next(false).await;
        client.check(message);
        answer
    }

    /// Sends a message without an answer.
    async fn notify(&mut self, client: &mut Client, message: &str) {
        self.send(client, message).await;
        let started = Instant::now();
        while Request::reads() - client.before < client.sent {
            assert!(started.elapsed() < PATIENCE, "not read: {message}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Messages that any service answers, most of them with an error.
fn messages() -> Vec<String> {
    let one = call("eth_chainId", json!([]));
    let batch = |calls: &[&str]| format!("[{}]", calls.join(","));
    let mut all = vec![
        batch(&[&one, &one, r#"{"id":2,"method":"eth_blockNumber"}"#]),
        batch(&[&one, "5", "[]", r#"{"id":3,"method":"no_such"}"#]),
        batch(&[one.as_str(); BATCH + 1]),
        batch(&[&one, r#"{"method":"eth_chainId"}"#]),
        common::call_of(SHORT_JSON + 1),
    ];
    let plain =
        ["", "{", "nonsense", "[]", "5", "[1,2", r#"{"id":{}}"#, r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#];
    all.extend(plain.map(str::to_owned));
    for (method, params) in [
        ("eth_chainId", json!([])),
        ("eth_blockNumber", json!([])),
        ("eth_getBalance", json!([ALICE, "0x1"])),
        // Front ends keep the answer of the first one.
        ("eth_getBalance", json!([ALICE, "0x1"])),
        ("eth_getBlockByNumber", json!(["latest", true])),
        ("eth_getBlockByNumber", json!(["0xffffffff", true])),
        ("eth_getLogs", json!([{"fromBlock": "0x1", "toBlock": "latest"}])),
        ("eth_call", json!([{"to": ALICE, "data": "0x"}, "latest"])),
        ("eth_getBalance", json!([ALICE])),
        ("eth_getBalance", json!([])),
        ("eth_getBalance", json!(["0x1", "0x2", "0x3", "0x4"])),
        ("eth_getBalance", json!(["nonsense", "latest"])),
        ("eth_getFilterChanges", json!(["0x123"])),
        ("eth_sendRawTransaction", json!(["0x00"])),
        ("eth_sign", json!([ALICE, "0x00"])),
        ("eth_compileSolidity", json!(["contract A {}"])),
        ("rpc.discover", json!([])),
        ("no_such_method", json!([])),
    ] {
        all.push(call(method, params));
    }
    all
}

const NOTIFICATIONS: [&str; 2] = [
    r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#,
    r#"[{"jsonrpc":"2.0","method":"eth_chainId"},{"method":"eth_getBalance","params":[]}]"#,
];

/// Says everything to a service that a caller may say.
async fn run_session(chain: &Chain, client: &mut Client) {
    for message in messages().iter().map(String::as_str).chain(NOTIFICATIONS) {
        client.post(message).await;
    }
    poll_filters(chain, client).await;
    let sent = call("eth_sendRawTransaction", json!([chain.signed().await]));
    assert!(client.post(&sent).await["result"].is_string());
    let mut socket = Socket(connect_async(client.server.ws(&client.path)).await.unwrap().0);
    for message in messages() {
        socket.ask(client, &message).await;
    }
    for message in NOTIFICATIONS {
        socket.notify(client, message).await;
    }
    subscribe(chain, client, &mut socket).await;
    tokio::time::sleep(LATER).await;
    client.check("everything");
}

async fn poll_filters(chain: &Chain, client: &mut Client) {
    let blocks = client.call("eth_newBlockFilter", json!([])).await;
    let logs = client.call("eth_newFilter", json!([{}])).await;
    let pending = client.call("eth_newPendingTransactionFilter", json!([])).await;
    assert!([&blocks, &logs, &pending].iter().all(|id| id.is_string()));
    chain.ask("evm_mine", json!([])).await;
    let (started, mut found) = (Instant::now(), 0);
    while found == 0 {
        assert!(started.elapsed() < PATIENCE, "the filter reports no block");
        found = client.call("eth_getFilterChanges", json!([blocks])).await.as_array().map_or(0, Vec::len);
    }
    client.call("eth_getFilterLogs", json!([logs])).await;
    for id in [blocks, logs, pending] {
        client.call("eth_getFilterChanges", json!([id])).await;
        assert_eq!(client.call("eth_uninstallFilter", json!([id])).await, true);
        assert_eq!(client.call("eth_uninstallFilter", json!([id])).await, false);
    }
}

async fn subscribe(chain: &Chain, client: &mut Client, socket: &mut Socket) {
    let mut ids = Vec::new();
    for params in [json!(["newHeads"]), json!(["logs", {}]), json!(["newPendingTransactions"])] {
        ids.push(socket.ask(client, &call("eth_subscribe", params)).await["result"].take());
    }
    assert!(ids.iter().all(Value::is_string), "{ids:?}");
    for _ in 0..2 {
        chain.ask("evm_mine", json!([])).await;
        socket.next(true).await;
        client.check("news of a block");
    }
    let sent = call("eth_sendRawTransaction", json!([chain.signed().await]));
    socket.ask(client, &sent).await;
    for id in ids {
        let ended = socket.ask(client, &call("eth_unsubscribe", json!([id]))).await;
        assert_eq!(ended["result"], true);
    }
}

/// Says what only a server with keys refuses.
async fn exceed(database: &KeyDatabase, client: &mut Client) {
    let key = |change| format!("/{}", database.create(&change).unwrap().0.reveal());
    let number = call("eth_blockNumber", json!([]));
    for path in ["/", "/wrong"] {
        assert_eq!(client.post_to(path, &number).await["error"]["code"], -32016, "{path}");
    }
    let few = key(KeyChange { methods: Some("eth_chainId".into()), ..KeyChange::default() });
    let slow = key(KeyChange { per_second: Some(1), burst: Some(1), ..KeyChange::default() });
    let contract = key(KeyChange { contracts: Some(ALICE.into()), ..KeyChange::default() });
    assert_eq!(client.post_to(&few, &number).await["error"]["code"], -32016);
    let elsewhere = call("eth_call", json!([{"to": "0x0000000000000000000000000000000001000006"}, "latest"]));
    assert_eq!(client.post_to(&contract, &elsewhere).await["error"]["code"], -32016);
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.push(client.post_to(&slow, &number).await["error"]["code"].clone());
    }
    assert!(codes.contains(&json!(-32005)), "{codes:?}");
    let mut socket = Socket(connect_async(client.server.ws(&few)).await.unwrap().0);
    assert_eq!(socket.ask(client, &number).await["error"]["code"], -32016);
}

/// Talks to a service without keys, then with keys.
async fn talk_to(chain: &Chain, service: Arc<dyn Service>) {
    let started = Instant::now();
    while !service.health().ready {
        assert!(started.elapsed() < PATIENCE, "no head in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut open = Client::new(service.clone(), AdmissionRules::default(), "/".into()).await;
    run_session(chain, &mut open).await;
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let entry = AdmissionRules { keys: Some(KeyAccess::embedded(&database)), ..AdmissionRules::default() };
    let path = format!("/{}", database.create(&KeyChange::default()).unwrap().0.reveal());
    let mut keyed = Client::new(service, entry, path).await;
    run_session(chain, &mut keyed).await;
    exceed(&database, &mut keyed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_development_chain_reads_each_message_once() {
    let _alone = ALONE.lock().await;
    let chain = Chain::new().await;
    talk_to(&chain, chain.0.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_reads_each_message_once() {
    let _alone = ALONE.lock().await;
    let chain = Chain::new().await;
    let (network, start) = chain.start().await;
    let upstream = Arc::new(Chain(chain.0.clone()));
    let light = LightService::start(network, start, vec![upstream], LightOptions::default());
    talk_to(&chain, Arc::new(light)).await;
}

#[cfg(feature = "cluster")]
#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_reads_each_message_once() {
    use rootlight_cluster::serve::{FrontEnd, FrontEndParts, NewBlocks};

    let _alone = ALONE.lock().await;
    let Some(servers) = servers::Servers::single(&[]) else { return };
    let chain = Chain::new().await;
    let (network, start) = chain.start().await;
    let (backends, new_blocks) = NewBlocks::watch(vec![Arc::new(Chain(chain.0.clone()))]);
    let options = LightOptions { host_announces_sent: true, ..LightOptions::default() };
    let front_end = FrontEnd::start(FrontEndParts {
        light: Arc::new(LightService::start(network, start, backends, options)),
        new_blocks,
        store: servers.connect("reads").await,
        heads_store: servers.connect("reads").await,
        values_store: servers.connect("reads").await,
        access: None,
        secret: alloy_primitives::B256::repeat_byte(7),
        chain: 33,
        name: "f0".into(),
        answer_cache_bytes: 16 << 20,
    });
    talk_to(&chain, Arc::new(front_end)).await;
}
