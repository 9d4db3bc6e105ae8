//! A light client that judges a development chain by the Bitcoin chain beside it.

use crate::common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::DevNode;
use rootlight::light::SyncOptions;
use rootlight_node::bitcoin_chain::{BitcoinServers, RegtestChain};
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, moment};
use rootlight_upstream::bitcoin::BitcoinSource;
use serde_json::{Value, json};

/// Bound for what takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// A development chain with its Bitcoin chain, one Bitcoin block for two of its blocks, and a server of each.
struct World {
    node: Arc<LocalService>,
    servers: BitcoinServers,
    server: common::RunningServer,
}

impl World {
    async fn new() -> Self {
        let bitcoin = Arc::new(RegtestChain::new(2));
        let entropy = Entropy::from_system().unwrap();
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::reference_on(Network::regtest()) };
        let mut node = DevNode::new(config, moment(&entropy)).unwrap();
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
        let network = Network::regtest();
        let start = start_checkpoint(Some("none"), &network).unwrap();
        let sync = SyncOptions { poll: 25, retry: 25, ..SyncOptions::default() };
        let upstream = rootlight_upstream::open(&self.server.url("/")).unwrap();
        let open = |url: &String| Arc::new(BitcoinSource::open(url).unwrap());
        let bitcoin = sources.iter().map(open).collect();
        let options = LightOptions { sync, max_age: 0, bitcoin, ..LightOptions::default() };
        match folder {
            Some(folder) => LightService::resume(network, start, vec![upstream], options, folder).unwrap(),
            None => LightService::start(network, start, vec![upstream], options),
        }
    }

    /// The source that offers coinbases.
    fn electrum(&self) -> String {
        self.servers.electrum()[0].clone()
    }
}

/// What the client says of Bitcoin once it says this about its chain.
async fn status(light: &LightService, verdict: &str) -> Value {
    let mut last = Value::Null;
    let said = tokio::time::timeout(PATIENCE, async {
        loop {
            last =
                common::outcome(light, "rootlight_syncStatus", json!([])).await.unwrap()["bitcoin"].clone();
            if last["verdict"] == verdict {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    if said.await.is_err() {
        panic!("expected {verdict}: {last:#}");
    }
    last
}

#[tokio::test]
async fn bitcoins_blocks_support_the_chain_whose_headers_they_name() {
    let world = World::new().await;
    world.mine(600).await;
    let light = world.light(&[world.electrum()], None);
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
    let world = World::new().await;
    world.mine(600).await;
    let light = world.light(&[world.servers.esplora()], None);
    let status = status(&light, "weak").await;
    assert_eq!(status["tags"]["withheld"], 72, "{status:#}");
    assert!(status["reason"].as_str().unwrap().contains("coinbases"), "{status:#}");
    let alone = world.light(&[], None);
    alone.settled(PATIENCE).await;
    let said = common::outcome(&alone, "rootlight_syncStatus", json!([])).await.unwrap();
    assert_eq!(said["bitcoin"], Value::Null);
}

#[tokio::test]
async fn sources_that_do_not_answer_or_lie_do_not_hide_the_honest_one() {
    let world = World::new().await;
    world.mine(600).await;
    // Another Bitcoin chain of the same network, with less work.
    let liar = World::new().await;
    liar.mine(100).await;
    let sources = ["tcp://127.0.0.1:1".into(), liar.electrum(), world.electrum()];
    let light = world.light(&sources, None);
    assert_eq!(status(&light, "held").await["tip"]["height"], 300);
    let alone = world.light(&["tcp://127.0.0.1:1".into()], None);
    let none = status(&alone, "unavailable").await;
    assert_eq!(none["tip"], Value::Null);
}

/// Miners who leave the chain: Bitcoin blocks without tags, then tags of another branch.
#[tokio::test]
async fn miners_who_leave_the_chain_are_noticed() {
    let world = World::new().await;
    world.mine(600).await;
    let light = world.light(&[world.electrum()], None);
    status(&light, "held").await;
    world.ask("rootlight_mineBitcoin", json!(["0x50", { "tag": "foreign" }])).await;
    world.mine(8).await;
    let contested = status(&light, "contested").await;
    assert!(contested["hiddenBranch"]["tags"].as_u64().is_some_and(|tags| tags >= 60), "{contested:#}");
}

#[tokio::test]
async fn the_chain_of_an_earlier_run_is_continued() {
    let world = World::new().await;
    world.mine(600).await;
    // Each run has a folder of its own, because a run that was dropped may hold its files for a moment.
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let file = |folder: &tempfile::TempDir| folder.path().join("bitcoin.headers");
    let light = world.light(&[world.electrum()], Some(first.path()));
    status(&light, "held").await;
    assert!(std::fs::metadata(file(&first)).unwrap().len() > 300 * 36);
    std::fs::copy(file(&first), file(&second)).unwrap();
    let again = world.light(&["tcp://127.0.0.1:1".into()], Some(second.path()));
    assert_eq!(status(&again, "weak").await["tip"]["height"], 300, "the coinbases are not stored");
    // A file that is damaged is not used.
    std::fs::write(file(&third), b"no headers").unwrap();
    let afresh = world.light(&[world.electrum()], Some(third.path()));
    assert_eq!(status(&afresh, "held").await["tip"]["height"], 300);
}
