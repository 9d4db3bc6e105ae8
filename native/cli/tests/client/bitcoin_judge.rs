//! A light client that judges a development chain by the Bitcoin chain beside it.

use crate::common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::DevNode;
use rootlight::light::SyncOptions;
use rootlight::rpc::{Message, Reply};
use rootlight_node::bitcoin_chain::{BitcoinServers, RegtestChain};
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_server::{Operations, Server, ServerConfig};
use rootlight_upstream::bitcoin::{BitcoinSource, BitcoinSourceConfig};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Bound for what takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// A development chain with its Bitcoin chain, one Bitcoin block for two of its blocks, and a server of each.
struct JudgeFixture {
    node: Arc<LocalService>,
    servers: BitcoinServers,
    server: common::RunningServer,
}

impl JudgeFixture {
    async fn new() -> Self {
        let bitcoin = Arc::new(RegtestChain::new(2));
        let entropy = Entropy::from_system().unwrap();
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::reference_on(Network::regtest()) };
        let mut node = DevNode::new(config, host_input(&entropy)).unwrap();
        node.chain_mut().set_bitcoin(bitcoin.clone());
        let node = Arc::new(LocalService::new(Box::new(node), LocalOptions::default(), entropy, None));
        let servers = BitcoinServers::start(bitcoin).await.unwrap();
        let server = common::start_service(common::config(), node.clone()).await;
        Self { node, servers, server }
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        common::outcome(&*self.node, method, params).await.unwrap()
    }

    async fn mine(&self, blocks: u64) {
        // An interval of one second keeps the times below the clock.
        self.ask("hardhat_mine", json!([format!("{blocks:#x}"), "0x1"])).await;
    }

    /// A light client of the chain, which asks these sources of Bitcoin's.
    fn light(&self, sources: &[String], folder: Option<&Path>) -> LightService {
        self.light_that_asks_for(None, sources, folder.map(|folder| (folder, true)))
    }

    /// The same, started with this `--min-bitcoin`, with a folder that is the client's own or another program's.
    fn light_that_asks_for(
        &self,
        min_bitcoin: Option<u32>,
        sources: &[String],
        folder: Option<(&Path, bool)>,
    ) -> LightService {
        let open = |url: &String| Arc::new(BitcoinSource::open(url).unwrap());
        self.light_that_hears(min_bitcoin, sources.iter().map(open).collect(), folder)
    }

    fn light_that_hears(
        &self,
        min_bitcoin: Option<u32>,
        bitcoin: Vec<Arc<BitcoinSource>>,
        folder: Option<(&Path, bool)>,
    ) -> LightService {
        let network = Network::regtest();
        let start = start_checkpoint(Some("none"), &network).unwrap();
        let sync = SyncOptions { poll: 25, retry: 25, ..SyncOptions::default() };
        let upstream = rootlight_upstream::open(&self.server.url("/")).unwrap();
        let options = LightOptions { sync, max_age: 0, min_bitcoin, bitcoin, ..LightOptions::default() };
        match folder {
            Some((folder, true)) => {
                LightService::resume(network, start, vec![upstream], options, folder).unwrap()
            }
            Some((folder, false)) => {
                LightService::resume_reading(network, start, vec![upstream], options, folder)
            }
            None => LightService::start(network, start, vec![upstream], options),
        }
    }

    /// The source that offers coinbases.
    fn electrum(&self) -> String {
        self.servers.electrum()[0].clone()
    }
}

/// The client's status of Bitcoin's chain, once it has this verdict.
async fn status(light: &LightService, verdict: &str) -> Value {
    status_where(light, verdict, |status| status["verdict"] == verdict).await
}

/// Whether all 72 tags that are judged support the chain.
fn is_whole(status: &Value) -> bool {
    status["verdict"] == "held" && status["tags"]["own"] == 72
}

/// The report of Bitcoin, once the report is as expected.
async fn status_where(light: &LightService, expected: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let said = tokio::time::timeout(PATIENCE, async {
        loop {
            last =
                common::outcome(light, "rootlight_syncStatus", json!([])).await.unwrap()["bitcoin"].clone();
            if is(&last) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    if said.await.is_err() {
        panic!("expected {expected}: {last:#}");
    }
    last
}

/// What operators see: the answer to `GET /health`, and the metrics.
async fn observed(light: &Arc<LightService>) -> (Value, String) {
    let operations = Operations { metrics: Some("127.0.0.1:0".parse().unwrap()), ..Operations::default() };
    let config = ServerConfig { operations, ..common::config() };
    let server = Server::bind(config, light.clone()).await.unwrap();
    let url = format!("http://{}", server.metrics_address().unwrap());
    let running = tokio::spawn(server.run(std::future::pending()));
    let get = |path: &str| common::client().get(format!("{url}{path}")).send();
    let health = get("/health").await.unwrap().text().await.unwrap();
    let metrics = get("/metrics").await.unwrap().text().await.unwrap();
    running.abort();
    (serde_json::from_str(&health).unwrap(), metrics)
}

/// Waits until the metrics have these lines.
async fn metrics_with(light: &Arc<LightService>, lines: &[&str]) {
    let mut last = String::new();
    let seen = tokio::time::timeout(PATIENCE, async {
        loop {
            last = observed(light).await.1;
            if lines.iter().all(|line| last.contains(&format!("rootlight_bitcoin_{line}\n"))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    if seen.await.is_err() {
        panic!("expected {lines:?}: {last}");
    }
}

#[tokio::test]
async fn bitcoins_blocks_support_the_chain_whose_headers_they_name() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let light = fixture.light(&[fixture.electrum()], None);
    let status = status(&light, "held").await;
    assert_eq!(status["tip"]["height"], 300, "{status:#}");
    assert_eq!((&status["tags"]["own"], &status["tags"]["withheld"]), (&json!(72), &json!(0)), "{status:#}");
    let of = |number: u64| {
        let light = &light;
        async move {
            let params = json!([format!("{number:#x}")]);
            common::outcome(light, "rootlight_verification", params).await.unwrap()["bitcoin"].clone()
        }
    };
    // Blocks 562, 564 .. 598 are named by Bitcoin blocks with another one on top; 600 is named by the tip.
    assert_eq!(of(561).await["blocksAbove"], 19, "{:#}", of(561).await);
    assert_eq!(of(600).await["blocksAbove"], 0);
    assert_eq!(of(600).await["newestAge"], Value::Null);
}

#[tokio::test]
async fn without_coinbases_the_chain_is_weak_and_without_sources_nothing_is_said() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let light = fixture.light(&[fixture.servers.esplora()], None);
    let status = status(&light, "weak").await;
    assert_eq!(status["tags"]["withheld"], 72, "{status:#}");
    assert!(status["reason"].as_str().unwrap().contains("coinbases"), "{status:#}");
    let alone = fixture.light(&[], None);
    alone.settled(PATIENCE).await;
    let said = common::outcome(&alone, "rootlight_syncStatus", json!([])).await.unwrap();
    assert_eq!(said["bitcoin"], Value::Null);
}

#[tokio::test]
async fn sources_that_do_not_answer_or_lie_do_not_hide_the_honest_one() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    // Another Bitcoin chain of the same network, with less work.
    let liar = JudgeFixture::new().await;
    liar.mine(100).await;
    let sources = ["tcp://127.0.0.1:1".into(), liar.electrum(), fixture.electrum()];
    let light = fixture.light(&sources, None);
    assert_eq!(status(&light, "held").await["tip"]["height"], 300);
    let alone = fixture.light(&["tcp://127.0.0.1:1".into()], None);
    let none = status(&alone, "unavailable").await;
    assert_eq!(none["tip"], Value::Null);
}

/// Miners who leave the chain: Bitcoin blocks without tags, then tags of another branch.
#[tokio::test]
async fn miners_who_leave_the_chain_are_noticed() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let light = fixture.light(&[fixture.electrum()], None);
    status(&light, "held").await;
    fixture.ask("rootlight_mineBitcoin", json!(["0x50", { "tag": "foreign" }])).await;
    fixture.mine(8).await;
    let contested = status(&light, "contested").await;
    assert!(contested["hiddenBranch"]["tags"].as_u64().is_some_and(|tags| tags >= 60), "{contested:#}");
}

/// A light client that was shown Bitcoin's chain, and shows it to others.
async fn served(fixture: &JudgeFixture) -> (Arc<LightService>, common::RunningServer) {
    let light = Arc::new(fixture.light(&[fixture.electrum()], None));
    // Coinbases arrive in parts, and what is served later is asked for only later.
    status_where(&light, "held by 72 blocks", is_whole).await;
    let server = common::start_service(common::config(), light.clone()).await;
    (light, server)
}

#[tokio::test]
async fn another_rootlight_is_source_enough() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let (_light, server) = served(&fixture).await;
    for url in [server.url("/"), server.ws("/")] {
        let other = fixture.light(&[format!("rootlight+{url}")], None);
        let held = status(&other, "held").await;
        assert_eq!(held["tip"]["height"], 300, "{held:#}");
        assert_eq!((&held["tags"]["own"], &held["tags"]["withheld"]), (&json!(72), &json!(0)), "{held:#}");
        // And one more, which learns all from the one before.
        let last = common::start_service(common::config(), Arc::new(other)).await;
        let other = fixture.light(&[format!("rootlight+{}", last.url("/"))], None);
        assert_eq!(status(&other, "held").await["tags"]["own"], 72);
    }
}

#[tokio::test]
async fn a_development_chain_serves_its_bitcoin_chain_to_light_clients() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let url = format!("rootlight+{}", fixture.server.url("/"));
    let held = status(&fixture.light(std::slice::from_ref(&url), None), "held").await;
    assert_eq!(held["tip"]["height"], 300, "{held:#}");
    assert_eq!((&held["tags"]["own"], &held["tags"]["withheld"]), (&json!(72), &json!(0)), "{held:#}");
    let (source, direct) =
        (BitcoinSource::open(&url).unwrap(), BitcoinSource::open(&fixture.electrum()).unwrap());
    for (from, count) in [(0, 2_016), (298, 9), (301, 9)] {
        assert_eq!(source.headers(from, count).await, direct.headers(from, count).await, "{from}");
    }
    assert_eq!(source.tip().await, Ok(300));
    assert_eq!(source.coinbases(&[300, 1, 301]).await.unwrap().len(), 2);
}

/// Blocks of before the light client's own start are asked for from the lowest that is held; new ones as they come.
#[tokio::test]
async fn what_another_rootlight_serves_is_bitcoins_chain_as_it_grows() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let (light, server) = served(&fixture).await;
    let source = BitcoinSource::open(&format!("rootlight+{}", server.url("/"))).unwrap();
    let direct = BitcoinSource::open(&fixture.electrum()).unwrap();
    assert_eq!(source.tip().await, Ok(300));
    let headers = direct.headers(1, 400).await.unwrap();
    for (from, count, expected) in [(0, 2_016, 0..300), (1, 5, 0..5), (298, 9, 297..300), (301, 9, 0..0)] {
        assert_eq!(source.headers(from, count).await.as_deref(), Ok(&headers[expected]), "{from}");
    }
    let coinbases = source.coinbases(&[300, 225, 223, 222, 2, 301]).await.unwrap();
    let heights: Vec<u32> = coinbases.iter().map(|coinbase| coinbase.height).collect();
    assert_eq!(heights, [223, 225, 300], "those are kept that are judged, or would be beside a rival");
    for coinbase in &coinbases {
        assert!(coinbase.proof.is_cut && coinbase.proof.coinbase.len() < 200, "{coinbase:?}");
        let header = &headers[coinbase.height as usize - 1];
        assert!(coinbase.proof.as_proof().prove(coinbase.height, header).unwrap().tag().is_some());
    }
    // A block without a tag, and one on top of it.
    let other = fixture.light(&[format!("rootlight+{}", server.url("/"))], None);
    status(&other, "held").await;
    fixture.ask("rootlight_mineBitcoin", json!(["0x2"])).await;
    let untagged = async {
        while status(&other, "held").await["tags"]["none"] != 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, untagged).await.expect("the block without a tag was seen");
    assert!(!source.coinbases(&[301]).await.unwrap()[0].proof.is_cut, "no tag needs the whole coinbase");
    assert_eq!(status(&light, "held").await["tip"]["height"], 302);
}

/// What makes another result of one.
type Change = fn(&str) -> Value;

/// A client that answers as another one does, but for the result of one method, which is changed.
struct Changing {
    light: Arc<LightService>,
    method: &'static str,
    change: Change,
    /// How often the method was called.
    asked: AtomicUsize,
}

impl Service for Changing {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let mut outcomes = Vec::new();
            for call in message.calls() {
                let result = common::outcome(&*self.light, &call.method, json!(call.params)).await.unwrap();
                let result = match result.as_str().filter(|_| call.method == self.method) {
                    Some(text) => {
                        self.asked.fetch_add(1, Ordering::Relaxed);
                        (self.change)(text)
                    }
                    None => result,
                };
                outcomes.push(Ok(to_raw_value(&result).unwrap()));
            }
            ReservedReply::of(Reply::to(message, outcomes))
        })
    }
}

#[tokio::test]
async fn rootlights_that_lie_or_are_silent_do_not_hide_the_honest_one() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let (light, honest) = served(&fixture).await;
    // Letters of base64, so that the bytes are others.
    let changed = |text: &str| json!(text.replace('e', "f"));
    let (headers, tags) = ("rootlight_getBitcoinHeaders", "rootlight_getBitcoinTags");
    let lies: [(&str, Change, &str); 7] = [
        (headers, changed, "unavailable"),
        (headers, |_| Value::Null, "unavailable"),
        (headers, |_| json!({"headers": []}), "unavailable"),
        (headers, |text| json!(text.repeat(2)), "unavailable"),
        (tags, changed, "weak"),
        (tags, |_| Value::Null, "weak"),
        // No coinbase is there.
        (tags, |_| json!("AcA="), "weak"),
    ];
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut urls = vec![format!("rootlight+http://{}", silent.local_addr().unwrap())];
    let mut servers = Vec::new();
    for (method, change, verdict) in lies {
        let liar = Arc::new(Changing { light: light.clone(), method, change, asked: AtomicUsize::new(0) });
        let server = common::start_service(common::config(), liar.clone()).await;
        urls.push(format!("rootlight+{}", server.url("/")));
        servers.push(server);
        let alone = fixture.light(&[urls.last().unwrap().clone()], None);
        let twice = async {
            while liar.asked.load(Ordering::Relaxed) < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, twice).await.expect("its first answer was taken");
        let status = status(&alone, verdict).await;
        match verdict {
            // A coinbase may have none of the changed letters.
            "weak" => assert!(status["tags"]["withheld"].as_u64() > Some(60), "{status:#}"),
            _ => assert_eq!(status["tip"], Value::Null, "{status:#}"),
        }
    }
    assert_eq!(status(&fixture.light(&urls[..1], None), "unavailable").await["tip"], Value::Null);
    urls.push(format!("rootlight+{}", honest.url("/")));
    // Some coinbases have none of the changed letters: the honest source fills in the others after them.
    let all = fixture.light(&urls, None);
    assert_eq!(status_where(&all, "held by 72 blocks", is_whole).await["tip"]["height"], 300);
}

#[tokio::test]
async fn operators_see_what_bitcoin_says() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let light = Arc::new(fixture.light(&["tcp://127.0.0.1:1".into(), fixture.electrum()], None));
    let mut held = status(&light, "held").await;
    let (mut health, _) = observed(&light).await;
    for said in [&mut held, &mut health["bitcoin"]] {
        assert!(said["tip"]["age"].take().is_u64(), "{said:#}");
    }
    assert_eq!((&health["ready"], &health["bitcoin"]), (&json!(true), &held));
    let supported = [
        r#"verdict{verdict="held"} 1"#,
        r#"verdict{verdict="contested"} 0"#,
        r#"tags{class="own"} 72"#,
        "tip_block 300",
        "commitments 72",
        "hidden_branch_tags 0",
        "sources_up 1",
    ];
    metrics_with(&light, &supported).await;
    fixture.ask("rootlight_mineBitcoin", json!(["0x50", { "tag": "foreign" }])).await;
    fixture.mine(8).await;
    let left = [r#"verdict{verdict="held"} 0"#, r#"verdict{verdict="contested"} 1"#, "tip_block 384"];
    metrics_with(&light, &left).await;
    let metrics = observed(&light).await.1;
    let hidden = metrics.lines().find_map(|line| line.strip_prefix("rootlight_bitcoin_hidden_branch_tags "));
    assert!(hidden.is_some_and(|tags| tags.parse::<u32>().unwrap() >= 60), "{metrics}");
    let alone = Arc::new(fixture.light(&[], None));
    alone.settled(PATIENCE).await;
    let (health, metrics) = observed(&alone).await;
    assert!(health.get("bitcoin").is_none() && !metrics.contains("bitcoin"), "{health} {metrics}");
}

#[tokio::test]
async fn the_chain_of_an_earlier_run_is_continued() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    // Each run has a folder of its own, because a run that was dropped may hold its files for a moment.
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let file = |folder: &tempfile::TempDir| folder.path().join("bitcoin.headers");
    let light = fixture.light(&[fixture.electrum()], Some(first.path()));
    status_where(&light, "the whole evidence", is_whole).await;
    // The file is written again when the coinbases are there, which come first in it then.
    let written = tokio::time::timeout(PATIENCE, async {
        while std::fs::read(file(&first)).is_ok_and(|stored| stored.first() != Some(&3)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    written.await.expect("the coinbases are stored");
    assert!(std::fs::metadata(file(&first)).unwrap().len() > 300 * 36);
    std::fs::copy(file(&first), file(&second)).unwrap();
    let again = fixture.light(&["tcp://127.0.0.1:1".into()], Some(second.path()));
    assert_eq!(status_where(&again, "the stored evidence", is_whole).await["tip"]["height"], 300);
    // So does a program that reads what another one stores; it writes nothing.
    let stored = std::fs::read(file(&second)).unwrap();
    fixture.mine(4).await;
    let reading = fixture.light_that_asks_for(None, &[fixture.electrum()], Some((second.path(), false)));
    assert_eq!(status(&reading, "held").await["tip"]["height"], 302);
    assert_eq!(std::fs::read(file(&second)).unwrap(), stored);
    let alone =
        fixture.light_that_asks_for(None, &["tcp://127.0.0.1:1".into()], Some((second.path(), false)));
    assert_eq!(status_where(&alone, "the stored evidence", is_whole).await["tip"]["height"], 300);
    // A file that is damaged is not used.
    std::fs::write(file(&third), b"no headers").unwrap();
    let afresh = fixture.light(&[fixture.electrum()], Some(third.path()));
    assert_eq!(status(&afresh, "held").await["tip"]["height"], 302);
}

/// Waits until the client says this of Bitcoin.
async fn waits(light: &LightService, is_said: impl Fn(&Value) -> bool) {
    let mut last = Value::Null;
    let said = tokio::time::timeout(PATIENCE, async {
        while !is_said(&last) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            last =
                common::outcome(light, "rootlight_syncStatus", json!([])).await.unwrap()["bitcoin"].clone();
        }
    });
    if said.await.is_err() {
        panic!("{last:#}");
    }
}

/// Bitcoin's chain is followed to another branch. One that is almost as heavy is known, too, where the source that shows it has
/// fewer blocks.
#[tokio::test]
async fn other_branches_are_followed_and_shorter_ones_are_heard() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let recording = first.path().join("recording");
    let config = BitcoinSourceConfig { records: true, ..BitcoinSourceConfig::default() };
    let source = BitcoinSource::open_with(&fixture.electrum(), config).unwrap();
    assert_eq!(source.headers(0, 2_016).await.unwrap().len(), 301);
    source.write_recording(&recording).unwrap();
    let light = fixture.light(&[fixture.electrum()], Some(first.path()));
    status(&light, "held").await;
    let file = |folder: &tempfile::TempDir| folder.path().join("bitcoin.headers");
    let before = std::fs::read(file(&first)).unwrap();
    // Ten blocks take the place of eight.
    fixture.ask("rootlight_mineBitcoin", json!(["0xa", { "parent": 292 }])).await;
    fixture.mine(1).await;
    let deep = |said: &Value| said["reason"] == "Bitcoin was reorganised 10 blocks deep";
    waits(&light, |said| said["tip"]["height"] == 302 && deep(said)).await;
    let stored = tokio::time::timeout(PATIENCE, async {
        while std::fs::read(file(&first)).unwrap() == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    stored.await.expect("the other branch is stored");
    std::fs::copy(file(&first), file(&second)).unwrap();
    let shorter = Arc::new(BitcoinSource::replay(&recording).unwrap());
    let again = fixture.light_that_hears(None, vec![shorter], Some((second.path(), true)));
    waits(&again, deep).await;
}

/// Waits until these are the newest blocks about which clients answer: a verdict may be there before the newest header and coinbase.
async fn answers_to<const N: usize>(expected: [(&LightService, Option<u64>); N]) {
    for (light, newest) in expected {
        let reached = tokio::time::timeout(PATIENCE, async {
            while light.newest_allowed() != newest {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        if reached.await.is_err() {
            panic!("expected {newest:?}, not {:?}", light.newest_allowed());
        }
    }
}

/// The whole response to a request about a block, or about none.
async fn response(light: &LightService, method: &str, block: Option<u64>) -> Value {
    let params: Vec<Value> =
        block.into_iter().flat_map(|number| [json!(format!("{number:#x}")), json!(false)]).collect();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let text = light.answer(message.into_bytes()).await.into_text().unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn answers_are_marked_or_where_bitcoin_is_asked_for_refused() {
    let fixture = JudgeFixture::new().await;
    fixture.mine(600).await;
    let light = fixture.light(&[fixture.electrum()], None);
    let strict = fixture.light_that_asks_for(Some(2), &[fixture.electrum()], None);
    let weak = fixture.light(&[fixture.servers.esplora()], None);
    for (client, verdict) in [(&light, "held"), (&strict, "held"), (&weak, "weak")] {
        status(client, verdict).await;
    }
    let of = |height: Value| (height["result"].is_string(), height["bitcoin"].clone());
    assert_eq!(of(response(&light, "eth_blockNumber", None).await), (true, Value::Null));
    assert_eq!(of(response(&weak, "eth_blockNumber", None).await), (true, json!("weak")));
    assert!(light.trusted_chain().is_some() && weak.trusted_chain().is_none());
    // Of the Bitcoin blocks with another one on top the newest two name 598 and 596.
    answers_to([(&light, Some(600)), (&strict, Some(596))]).await;
    for (number, given) in [(596, true), (597, false), (600, false)] {
        let block = response(&strict, "eth_getBlockByNumber", Some(number)).await;
        assert_eq!(block["result"].is_object(), given, "{block}");
        let text = block["error"]["message"].as_str().unwrap_or_default();
        let is_refused =
            block["error"]["code"] == -32002 && text.contains("ask for block 596 or an older one");
        assert_eq!(is_refused, !given, "{block}");
    }
    fixture.ask("rootlight_mineBitcoin", json!(["0x50", { "tag": "foreign" }])).await;
    fixture.mine(8).await;
    for client in [&light, &strict] {
        status(client, "contested").await;
    }
    assert_eq!(of(response(&light, "eth_blockNumber", None).await), (true, json!("contested")));
    let refused = response(&strict, "eth_getBlockByNumber", Some(596)).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("contested")), "{refused}");
    assert!(response(&strict, "eth_chainId", None).await["result"].is_string());
    answers_to([(&strict, None), (&light, Some(608))]).await;
    assert!(light.health().ready && !strict.health().ready);
}
