//! Following a recorded chain: blocks from an upstream, executed, kept on disk, brought back.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::exec::GenesisBlock;
use rootlight::local::LocalChain;
use rootlight::types::Block;
use rootlight_native::follow::{fetch_blocks, follow, FollowError, FollowOptions, Target};
use rootlight_native::replay::Replay;
use rootlight_native::store::{Persist, Store};

fn recording() -> Option<Replay> {
    let default = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or(default, PathBuf::from);
    let folder = shared.join("vectors/chain");
    if !folder.exists() {
        println!("skipped: no recordings");
        return None;
    }
    Some(Replay::open(folder.to_str().unwrap()).unwrap())
}

fn genesis(history: Option<u64>) -> LocalChain {
    let GenesisBlock { header, state } = GenesisBlock::regtest();
    LocalChain::new(Arc::new(Network::regtest()), header, state, history).unwrap()
}

struct Kept {
    chain: Mutex<LocalChain>,
    persist: Mutex<Persist>,
}

impl Target for Kept {
    fn head(&self) -> u64 {
        self.chain.lock().unwrap().head().number
    }

    fn import(&self, blocks: Vec<Block>) -> Result<(), FollowError> {
        let mut chain = self.chain.lock().unwrap();
        for block in blocks {
            chain.import(block, None)?;
        }
        Ok(self.persist.lock().unwrap().save(chain.view())?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_chain_comes_back_from_disk() {
    let Some(recording) = recording() else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = Arc::new(Network::regtest());
    let mut chain = genesis(None);
    let open = || Store::open(folder.path(), Network::regtest().genesis_hash).unwrap();
    let persist = Persist::restore(open(), &mut chain, None).unwrap();
    let target = Arc::new(Kept { chain: Mutex::new(chain), persist: Mutex::new(persist) });

    let (reached, done) = tokio::sync::oneshot::channel();
    let mut reached = Some(reached);
    let following =
        follow(target.clone(), Arc::new(recording), network, FollowOptions::default(), move |head| {
            reached.take().map(|reached| reached.send(head));
        });
    let head = tokio::select! {
        error = following => panic!("{error}"),
        head = done => head.unwrap(),
    };
    assert_eq!(head, 676);
    let end = target.chain.lock().unwrap().snapshot();
    drop(target);

    for history in [None, Some(20)] {
        let mut again = genesis(history);
        let persist = Persist::restore(open(), &mut again, history).unwrap();
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
async fn windows_end_where_the_chain_ends() {
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

/// The driver gives up at the block that is refused, and tells why.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_does_not_execute_to_its_roots_ends_it() {
    struct Strict(Mutex<LocalChain>);
    impl Target for Strict {
        fn head(&self) -> u64 {
            self.0.lock().unwrap().head().number
        }
        fn import(&self, blocks: Vec<Block>) -> Result<(), FollowError> {
            for block in blocks {
                self.0.lock().unwrap().import(block, None)?;
            }
            Ok(())
        }
    }
    let Some(recording) = recording() else { return };
    // Another allocation: block 1 cannot have the recorded root.
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
