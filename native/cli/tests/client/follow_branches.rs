//! Follows a development chain that leaves its branch, or is ahead of the clock.

use crate::common;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::{ChainError, Network};
use rootlight::dev::{DevConfig, Mining};
use rootlight::engine::DevNode;
use rootlight::exec::GenesisBlock;
use rootlight::light::UpstreamRequest;
use rootlight::local::{ImportError, LocalChain};
use rootlight::types::B256;
use rootlight_node::follow::{Fetched, FollowError, FollowOptions, FollowTarget, follow};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::store::{ChainPersistence, ChainStore};
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, unreserved};
use serde_json::{Value, json};

/// Bound for what takes a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// A development chain as an upstream.
pub(crate) struct DevUpstream(LocalService);

impl DevUpstream {
    /// A chain that mines on request, with this genesis block.
    fn on(network: Network) -> Arc<Self> {
        Self::new(DevConfig::reference_on(network))
    }

    /// A chain of this configuration that mines on request.
    pub(crate) fn new(config: DevConfig) -> Arc<Self> {
        let entropy = Entropy::from_system().unwrap();
        let config = DevConfig { mining: Mining::Manual, ..config };
        let node = DevNode::new(config, host_input(&entropy)).unwrap();
        Arc::new(Self(LocalService::new(Box::new(node), LocalOptions::default(), entropy, None)))
    }

    pub(crate) async fn ask(&self, method: &str, params: &str) -> Value {
        let result = common::outcome(&self.0, method, serde_json::from_str(params).unwrap()).await;
        result.unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    pub(crate) async fn mine(&self, blocks: u64) {
        self.ask("hardhat_mine", &json!([format!("{blocks:#x}")]).to_string()).await;
    }

    pub(crate) async fn head(&self) -> (u64, String) {
        let block = self.ask("eth_getBlockByNumber", r#"["latest",false]"#).await;
        let number = u64::from_str_radix(&block["number"].as_str().unwrap()[2..], 16).unwrap();
        (number, block["hash"].as_str().unwrap().to_owned())
    }
}

impl Upstream for DevUpstream {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(common::answers(&self.0, calls)))
    }

    fn name(&self) -> &str {
        "dev"
    }
}

/// A chain on disk.
struct StoredChain(Mutex<(LocalChain, ChainPersistence)>);

impl StoredChain {
    fn open(folder: &std::path::Path, history: Option<u64>) -> Arc<Self> {
        let (network, genesis) = (Arc::new(Network::regtest()), GenesisBlock::regtest());
        let open = ChainStore::opener(folder, network.genesis_hash);
        let mut chain = LocalChain::new(network, genesis.header, genesis.state, history).unwrap();
        let persist = ChainPersistence::restore(open, &mut chain, history, false).unwrap();
        Arc::new(Self(Mutex::new((chain, persist))))
    }

    fn head_hash(&self) -> String {
        self.0.lock().unwrap().0.head().hash().to_string()
    }
}

impl FollowTarget for StoredChain {
    fn head(&self) -> u64 {
        self.0.lock().unwrap().0.head().number
    }

    fn knows(&self, block: &B256) -> bool {
        self.0.lock().unwrap().0.view().block(block).is_some()
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        let (chain, persist) = &mut *self.0.lock().unwrap();
        for Fetched { block, .. } in blocks {
            chain.import(block, None)?;
        }
        let settled = chain.take_block_states();
        Ok(persist.save(chain.view(), settled, None)?)
    }
}

fn quick() -> FollowOptions {
    FollowOptions { poll: Duration::from_millis(5), retry: Duration::from_millis(5) }
}

/// Follows until this block is the head, or following ends.
async fn until_head(
    target: Arc<StoredChain>,
    upstream: SharedUpstream,
    wanted: String,
) -> Option<FollowError> {
    let network = Arc::new(Network::regtest());
    let (reached, done) = tokio::sync::oneshot::channel();
    let (mut reached, seen) = (Some(reached), target.clone());
    let following = follow(target.clone(), upstream, network, quick(), move |_| {
        if seen.head_hash() == wanted {
            reached.take().map(|reached| reached.send(()));
        }
    });
    let followed = async {
        tokio::select! {
            error = following => Some(error),
            _ = done => None,
        }
    };
    let ended = tokio::time::timeout(PATIENCE, followed).await;
    // The next start opens the same file.
    let closed = async {
        while Arc::strong_count(&target) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("no task has the chain any more");
    ended.expect("the head is reached, or following ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn another_chain_is_refused_before_it_has_a_block_1() {
    let folder = tempfile::tempdir().unwrap();
    let other = Network::from_json(r#"{"name":"other","rules":{"rskip516":-1}}"#).unwrap();
    for (network, is_other) in [(Network::regtest(), false), (other, true)] {
        let dev = DevUpstream::on(network);
        let (number, hash) = dev.head().await;
        assert_eq!(number, 0);
        let ended = until_head(StoredChain::open(folder.path(), None), dev, hash).await;
        assert_eq!(matches!(ended, Some(FollowError::OtherChain)), is_other, "{ended:?}");
        assert_eq!(ended.is_some(), is_other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_below_the_history_names_the_step_that_ends_it() {
    let dev = DevUpstream::on(Network::regtest());
    dev.mine(10).await;
    let fork = dev.ask("evm_snapshot", "[]").await;
    dev.mine(30).await;
    let folder = tempfile::tempdir().unwrap();
    let old = dev.head().await;
    assert!(until_head(StoredChain::open(folder.path(), Some(5)), dev.clone(), old.1).await.is_none());
    dev.ask("evm_revert", &json!([fork]).to_string()).await;
    dev.ask("evm_increaseTime", "[1000]").await;
    dev.mine(60).await;
    let (number, new) = dev.head().await;
    assert_eq!(number, 70);
    // Without the step it ends again.
    for history in [5, 5, 29] {
        let target = StoredChain::open(folder.path(), Some(history));
        assert_eq!(target.head(), 40);
        let error = until_head(target, dev.clone(), new.clone()).await.expect("following ends");
        assert!(matches!(error, FollowError::TooDeep { fork: 10, depth: 30 }), "{error}");
        assert!(error.to_string().contains("--history 30 or more"), "{error}");
    }
    assert!(until_head(StoredChain::open(folder.path(), Some(30)), dev.clone(), new.clone()).await.is_none());
    // Afterwards any history will do.
    dev.mine(3).await;
    let (_, newest) = dev.head().await;
    assert!(until_head(StoredChain::open(folder.path(), Some(5)), dev, newest).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_history_follows_a_reorganisation_of_any_depth() {
    let dev = DevUpstream::on(Network::regtest());
    dev.mine(1).await;
    let fork = dev.ask("evm_snapshot", "[]").await;
    dev.mine(30).await;
    let folder = tempfile::tempdir().unwrap();
    let old = dev.head().await;
    assert!(until_head(StoredChain::open(folder.path(), Some(0)), dev.clone(), old.1).await.is_none());
    dev.ask("evm_revert", &json!([fork]).to_string()).await;
    dev.ask("evm_increaseTime", "[1000]").await;
    dev.mine(40).await;
    let (_, new) = dev.head().await;
    let ended = until_head(StoredChain::open(folder.path(), Some(0)), dev.clone(), new.clone()).await;
    assert!(matches!(ended, Some(FollowError::TooDeep { fork: 1, depth: 30 })), "{ended:?}");
    assert!(until_head(StoredChain::open(folder.path(), None), dev, new).await.is_none());
}

/// A chain that drops the blocks of another branch, as one does that has no room for more.
struct Forgets {
    last: Mutex<Option<B256>>,
    imports: AtomicUsize,
}

impl FollowTarget for Forgets {
    fn head(&self) -> u64 {
        0
    }

    fn knows(&self, _: &B256) -> bool {
        false
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        self.imports.fetch_add(1, Ordering::Relaxed);
        let first = &blocks[0].block.header;
        let (number, parent) = (first.number, first.parent_hash);
        let mut last = self.last.lock().unwrap();
        if *last == Some(parent) {
            return Err(ImportError::Header(ChainError::UnknownParent { number, parent }).into());
        }
        *last = blocks.last().map(|fetched| fetched.block.header.hash());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_dropped_again_ends_following_with_a_reason() {
    let dev = DevUpstream::on(Network::regtest());
    dev.mine(100).await;
    let target = Arc::new(Forgets { last: Mutex::default(), imports: AtomicUsize::new(0) });
    let following = follow(target.clone(), dev, Arc::new(Network::regtest()), quick(), |_| {});
    let error = tokio::time::timeout(PATIENCE, following).await.expect("following ends");
    assert!(matches!(error, FollowError::TooLong(65)), "{error}");
    assert!(error.to_string().contains("empty --data-dir"), "{error}");
    assert_eq!(target.imports.load(Ordering::Relaxed), 2);
}

struct Clocked {
    chain: Mutex<LocalChain>,
    now: AtomicU64,
    imports: AtomicUsize,
}

impl FollowTarget for Clocked {
    fn head(&self) -> u64 {
        self.chain.lock().unwrap().head().number
    }

    fn knows(&self, block: &B256) -> bool {
        self.chain.lock().unwrap().view().block(block).is_some()
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        self.imports.fetch_add(1, Ordering::Relaxed);
        let mut chain = self.chain.lock().unwrap();
        for Fetched { block, .. } in blocks {
            chain.import(block, Some(self.now.load(Ordering::Relaxed)))?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_ahead_of_the_clock_is_waited_for() {
    let network =
        Network::from_json(r#"{"name":"timed","params":{"futureBound":"0x21c"},"rules":{"rskip179":-1}}"#)
            .unwrap();
    let config = DevConfig::reference_on(network.clone());
    let dev = DevUpstream::on(network);
    dev.mine(3).await;
    let late = dev.ask("eth_getBlockByNumber", r#"["latest",false]"#).await;
    let time = u64::from_str_radix(&late["timestamp"].as_str().unwrap()[2..], 16).unwrap();
    let network = config.network.clone();
    let chain = LocalChain::new(network.clone(), config.genesis.header, config.genesis.state, None).unwrap();
    let now = AtomicU64::new(time - 10_000);
    let target = Arc::new(Clocked { chain: Mutex::new(chain), now, imports: AtomicUsize::new(0) });
    let following = tokio::spawn(follow(target.clone(), dev, network, quick(), |_| {}));
    let wait = async |ready: &dyn Fn() -> bool| {
        tokio::time::timeout(PATIENCE, async {
            while !ready() {
                assert!(!following.is_finished(), "following has ended");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("in time");
    };
    wait(&|| target.imports.load(Ordering::Relaxed) >= 3).await;
    assert_eq!(target.head(), 0);
    target.now.store(time, Ordering::Relaxed);
    wait(&|| target.head() == 3).await;
    following.abort();
}
