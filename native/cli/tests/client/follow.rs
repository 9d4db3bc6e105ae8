//! Follows a recorded chain: blocks are fetched from an upstream, executed, stored on disk and restored.

use crate::common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::exec::GenesisBlock;
use rootlight::light::UpstreamRequest;
use rootlight::local::LocalChain;
use rootlight::types::{B256, Block, BlockBody};
use rootlight_node::follow::{
    Fetched, FollowError, FollowOptions, FollowTarget, fetch_blocks, fetch_uncles, follow,
};
use rootlight_node::store::{ChainPersistence, ChainStore};
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn recording() -> Option<Replay> {
    let folder = common::shared("vectors/chain")?;
    Some(Replay::open(folder.to_str().unwrap()).unwrap())
}

/// The recording, which can also respond with uncles of uncles. It lacks those responses but holds the
/// headers under their hashes.
struct Complete(Replay);

impl Complete {
    async fn block(&self, hash: &Value) -> Option<Value> {
        let call = UpstreamRequest::new("eth_getBlockByHash", json!([hash, true]).to_string());
        let answer = self.0.request(vec![call]).await.remove(0).ok()?;
        serde_json::from_str(answer.get()).ok()
    }
}

impl Upstream for Complete {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let mut answers = self.0.request(calls.clone()).await;
            for (call, answer) in calls.iter().zip(&mut answers) {
                if answer.is_ok() || call.method != "eth_getUncleByBlockHashAndIndex" {
                    continue;
                }
                let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
                let Some(block) = self.block(&params[0]).await else { continue };
                let index = usize::from(params[1] == "0x1");
                if let Some(uncle) = self.block(&block["uncles"][index]).await {
                    *answer = Ok(RawValue::from_string(uncle.to_string()).unwrap());
                }
            }
            answers
        }))
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

fn genesis(history: Option<u64>) -> LocalChain {
    let GenesisBlock { header, state } = GenesisBlock::regtest();
    LocalChain::new(Arc::new(Network::regtest()), header, state, history).unwrap()
}

struct StoredFollower {
    chain: Mutex<LocalChain>,
    persist: Mutex<ChainPersistence>,
}

impl FollowTarget for StoredFollower {
    fn head(&self) -> u64 {
        self.chain.lock().unwrap().head().number
    }

    fn knows(&self, block: &B256) -> bool {
        self.chain.lock().unwrap().view().block(block).is_some()
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        let mut chain = self.chain.lock().unwrap();
        for Fetched { block, uncles } in blocks {
            chain.import(block, None)?;
            uncles.into_iter().for_each(|uncle| drop(chain.import(uncle, None)));
        }
        let settled = chain.take_block_states();
        Ok(self.persist.lock().unwrap().save(chain.view(), settled, None)?)
    }
}

/// Follows until the upstream's head is reached for the first time, and returns its height.
async fn caught_up(target: Arc<dyn FollowTarget>, upstream: SharedUpstream, network: Arc<Network>) -> u64 {
    let (reached, done) = tokio::sync::oneshot::channel();
    let mut reached = Some(reached);
    let following = follow(target, upstream, network, FollowOptions::default(), move |head| {
        reached.take().map(|reached| reached.send(head));
    });
    tokio::select! {
        error = following => panic!("{error}"),
        head = done => head.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_chain_is_restored_from_disk() {
    let Some(recording) = recording() else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = Arc::new(Network::regtest());
    let mut chain = genesis(None);
    let open = || ChainStore::opener(folder.path(), Network::regtest().genesis_hash);
    let persist = ChainPersistence::restore(open(), &mut chain, None, false).unwrap();
    let target = Arc::new(StoredFollower { chain: Mutex::new(chain), persist: Mutex::new(persist) });

    assert_eq!(caught_up(target.clone(), Arc::new(Complete(recording)), network).await, 676);
    let end = target.chain.lock().unwrap().snapshot();
    drop(target);
    // The blocks of uncles are executed too, and are side blocks with their states.
    let (mut named, mut beside) = (0, 0);
    for number in 1..=676 {
        let block = end.headers().hash_at(number).unwrap();
        for uncle in end.uncles(&block).unwrap().headers() {
            named += 1;
            beside += usize::from(end.block(&uncle.hash()).is_some() && end.state(&uncle.hash()).is_some());
        }
    }
    assert_eq!((named, beside), (27, 27));

    for history in [None, Some(20)] {
        let mut again = genesis(history);
        let persist = ChainPersistence::restore(open(), &mut again, history, false).unwrap();
        drop(persist);
        assert_eq!(again.head().hash(), end.head().hash());
        assert_eq!(again.view().head_state().root(), end.head_state().root());
        let old = again.view().headers().hash_at(600).unwrap();
        assert_eq!(again.view().state(&old).is_some(), history.is_none());
        let locate = |chain: &rootlight::local::ChainSnapshot| {
            chain.block(&old).unwrap().body.hashes().iter().map(|hash| chain.locate(hash)).collect::<Vec<_>>()
        };
        assert_eq!(locate(again.view()), locate(&end));
    }
}

#[tokio::test]
async fn a_window_ends_at_the_head() {
    let Some(recording) = recording() else { return };
    let network = Network::regtest();
    let blocks = fetch_blocks(&recording, &network, 670, u64::MAX).await.unwrap();
    let numbers: Vec<u64> = blocks.iter().map(|block| block.header.number).collect();
    assert_eq!(numbers, (670..=676).collect::<Vec<_>>());
    assert!(fetch_blocks(&recording, &network, 677, 700).await.unwrap().is_empty());
    let with_uncles = fetch_blocks(&recording, &network, 73, 73).await.unwrap();
    assert_eq!(with_uncles[0].uncles.len(), with_uncles[0].header.uncle_count as usize);
    assert_ne!(with_uncles[0].uncles.len(), 0);
}

/// Only the headers of uncles must be valid. A body that fails to execute, belongs to another block or is not
/// available does not end the import.
#[tokio::test]
async fn invalid_or_missing_uncle_blocks_do_not_end_the_import() {
    let Some(recording) = recording() else { return };
    let network = Network::regtest();
    let mut blocks = Vec::new();
    for first in [1, 65, 129] {
        blocks.extend(fetch_blocks(&recording, &network, first, u64::MAX).await.unwrap());
    }
    let nobody = fetch_uncles(&recording, &network, blocks.clone(), |_| false).await;
    assert!(nobody.iter().all(|fetched| fetched.uncles.is_empty()));
    // The recording lacks the blocks of some uncles.
    let some = fetch_uncles(&recording, &network, blocks.clone(), |_| true).await;
    let all = fetch_uncles(&Complete(recording), &network, blocks, |_| true).await;
    let count = |all: &[Fetched]| all.iter().map(|fetched| fetched.uncles.len()).sum::<usize>();
    let named: usize = all.iter().map(|fetched| fetched.block.uncles.len()).sum();
    assert!(count(&all) == named && (1..named).contains(&count(&some)), "{} of {named}", count(&some));
    let mut chain = genesis(None);
    let mut refused = 0;
    for Fetched { block, uncles } in all {
        chain.import(block, None).unwrap();
        for uncle in uncles {
            let empty = Block { body: BlockBody { transactions: Vec::new() }, ..uncle.clone() };
            refused += usize::from(chain.import(empty, None).is_err());
            chain.import(uncle, None).unwrap();
        }
    }
    assert_eq!((chain.head().number, refused), (192, named));
}

/// The driver ends at the refused block and returns the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_whose_execution_gives_another_root_ends_following() {
    struct Strict(Mutex<LocalChain>);
    impl FollowTarget for Strict {
        fn head(&self) -> u64 {
            self.0.lock().unwrap().head().number
        }
        fn knows(&self, _: &B256) -> bool {
            false
        }
        fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
            for fetched in blocks {
                self.0.lock().unwrap().import(fetched.block, None)?;
            }
            Ok(())
        }
    }
    let Some(recording) = recording() else { return };
    // With another allocation, block 1 cannot have the recorded state root.
    let GenesisBlock { header, mut state } = GenesisBlock::regtest();
    state.put(&[0; 31], vec![0xc2, 0x80, 0x01]);
    let network = Arc::new(Network::regtest());
    let chain = LocalChain::new(network.clone(), header, state, None).unwrap();
    let target = Arc::new(Strict(Mutex::new(chain)));
    let following = follow(target.clone(), Arc::new(recording), network, FollowOptions::default(), |_| {});
    let error = tokio::time::timeout(Duration::from_secs(60), following).await.unwrap();
    assert!(error.to_string().contains("stateRoot"), "{error}");
    assert_eq!(target.head(), 0);
}

/// An upstream that notes the highest block that it was asked for.
struct NotingUpstream {
    inner: Complete,
    highest: Arc<AtomicU64>,
}

impl Upstream for NotingUpstream {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        for call in calls.iter().filter(|call| call.method == "eth_getBlockByNumber") {
            let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
            let number = u64::from_str_radix(&params[0].as_str().unwrap()[2..], 16).unwrap();
            self.highest.fetch_max(number, Ordering::Relaxed);
        }
        self.inner.request_reserved(calls)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// A chain that imports a window only when the upstream was asked for the next one.
struct Patient {
    chain: Mutex<LocalChain>,
    head: AtomicU64,
    highest: Arc<AtomicU64>,
    /// How far the requests were ahead of each window that was imported; `None` if they were not in time.
    ahead: Mutex<Vec<Option<u64>>>,
}

impl FollowTarget for Patient {
    fn head(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    fn knows(&self, _: &B256) -> bool {
        false
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        let last = blocks.last().unwrap().block.header.number;
        let highest = || Some(self.highest.load(Ordering::Relaxed)).filter(|highest| *highest > last);
        if last < 676 {
            let asked = (0..1_000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(10));
                highest()
            });
            self.ahead.lock().unwrap().push(asked.map(|highest| highest - last));
        }
        let mut chain = self.chain.lock().unwrap();
        for Fetched { block, uncles } in blocks {
            chain.import(block, None)?;
            uncles.into_iter().for_each(|uncle| drop(chain.import(uncle, None)));
        }
        self.head.store(chain.head().number, Ordering::Relaxed);
        Ok(())
    }
}

/// The upstream answers while blocks are executed, and what waits is limited.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_windows_are_fetched_while_one_is_imported() {
    let Some(recording) = recording() else { return };
    let highest = Arc::new(AtomicU64::new(0));
    let target = Arc::new(Patient {
        chain: Mutex::new(genesis(None)),
        head: AtomicU64::new(0),
        highest: highest.clone(),
        ahead: Mutex::default(),
    });
    let upstream = Arc::new(NotingUpstream { inner: Complete(recording), highest });
    assert_eq!(caught_up(target.clone(), upstream, Arc::new(Network::regtest())).await, 676);
    let ahead = target.ahead.lock().unwrap().clone();
    assert_eq!(ahead.len(), 10, "{ahead:?}");
    assert!(ahead.iter().all(|blocks| blocks.is_some_and(|blocks| blocks <= 4 * 64)), "{ahead:?}");
}
