//! Development chains that begin on a block of another network: the block is found and its state and ancestors are fetched as
//! they are read, and kept on disk.
//!
//! | file | holds |
//! |---|---|
//! | `start` | finds the block |
//! | `state` | what is known of it, as the chain reads it |
//! | `values`, `blocks` | fetch state, and blocks below |
//! | `source` | the upstreams |
//! | `disk` | what was read, on disk |
//! | `growing_map` | a map that only grows |

mod blocks;
mod disk;
mod error;
mod growing_map;
mod source;
mod start;
mod state;
mod values;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::B256;
use rootlight::consensus::{ChainError, VerifiedHeader};
use rootlight::dev::DevConfig;
use rootlight::engine::{DevNode, HostInput, Snapshot as _};
use rootlight::local::ForkBase;
use rootlight_upstream::{self as upstream, HttpConfig};
use tokio::runtime::Handle;

pub use error::ForkError;
pub use source::ForkSource;
pub use start::{ForkBlock, ForkOptions};

use disk::ForkStore;
use start::Begun;
use state::{ForkState, MOST_MISSING, Missing, OtherStart, forget_missing, missed};
use values::Learned;

/// Most rounds of requests for one message. Each of them gets what the run before it has missed; code that walks through a list
/// misses one slot at a time.
const MOST_ROUNDS: usize = 1_000;

/// Most trie nodes and long values that are kept of a block.
const MOST_NODES: usize = 4_000_000;

/// Most values that are kept of a block, those that are known to be absent included.
const MOST_VALUES: usize = 2 * MOST_NODES;

/// What a chain that begins on a block of another network reads of that network.
pub struct Fork {
    source: Arc<ForkSource>,
    options: ForkOptions,
    /// The URLs of the upstreams, which a reset may name.
    urls: Vec<String>,
    runtime: Handle,
    starts: Mutex<Vec<Start>>,
    /// Held while something is fetched.
    fetching: tokio::sync::Mutex<()>,
}

/// A block on which the chain has begun.
#[derive(Clone)]
struct Start {
    state: Arc<ForkState>,
    source: Arc<ForkSource>,
    store: Option<Arc<Mutex<ForkStore>>>,
}

impl std::fmt::Debug for Fork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fork").finish_non_exhaustive()
    }
}

impl Fork {
    /// Finds a block of the network of these upstreams; must be called inside a runtime. `urls` are the addresses of the
    /// upstreams, by which a reset can name them.
    ///
    /// # Errors
    /// The upstreams do not have the block, or do not show that it belongs to the network's chain.
    pub async fn open(
        source: ForkSource,
        options: ForkOptions,
        urls: Vec<String>,
        block: ForkBlock,
    ) -> Result<Self, ForkError> {
        let source = Arc::new(source);
        let begun = start::begin(&source, &options, block, &|_| None).await?;
        let fork = Self {
            source: source.clone(),
            options,
            urls,
            runtime: Handle::current(),
            starts: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        };
        fork.add(begun, source);
        Ok(fork)
    }

    fn add(&self, begun: Begun, source: Arc<ForkSource>) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        // A start that only this list holds belongs to no chain any more.
        starts
            .retain(|start| Arc::strong_count(&start.state) > 1 && !Arc::ptr_eq(&start.state, &begun.state));
        starts.push(Start { state: begun.state, source, store: begun.store });
    }

    fn starts(&self) -> Vec<Start> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The block on which the chain begins, for its configuration.
    ///
    /// # Panics
    /// Never: there is at least one.
    #[must_use]
    pub fn base(&self) -> Arc<dyn ForkBase> {
        let newest = self.starts().pop();
        newest.map(|start| start.state).unwrap_or_else(|| unreachable!("a fork has a block"))
    }

    /// The upstreams of the start.
    pub fn source(&self) -> &ForkSource {
        &self.source
    }

    /// Makes the node of a chain with this configuration, which `config` makes from [`Self::base`]. What every block reads is
    /// fetched then, such as the accounts that get its fees.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn node(&self, config: impl Fn() -> DevConfig, moment: HostInput) -> Result<DevNode, ForkError> {
        self.run(|| {
            let node = DevNode::new(config(), moment)?;
            // The first block is built on trial.
            let _ = node.local_snapshot().view(moment.now, &|| false).pending();
            Ok(node)
        })?
        .map_err(|error: ChainError| ForkError::Unverified(error.to_string()))
    }

    /// Runs `run` until it misses nothing, and returns its last result. What it misses is fetched between two runs; `run` must
    /// undo what the run before it has changed. Blocks the thread, which must not be one of the runtime's own.
    ///
    /// # Errors
    /// Something that is missing cannot be had.
    pub fn run<T>(&self, mut run: impl FnMut() -> T) -> Result<T, ForkError> {
        forget_missing();
        for _ in 0..MOST_ROUNDS {
            let before = missed();
            let result = run();
            if missed() == before {
                return Ok(result);
            }
            self.runtime.block_on(self.fetch())?;
        }
        Err(ForkError::TooManyRounds(MOST_ROUNDS))
    }

    /// Fetches what the runs of the present thread have missed.
    async fn fetch(&self) -> Result<(), ForkError> {
        let _one = self.fetching.lock().await;
        for start in self.starts() {
            let missing = start.state.take_missing();
            if missing.len() > MOST_MISSING {
                return Err(ForkError::TooMuch(MOST_MISSING));
            }
            let wanted = Wanted::of(missing);
            start.fetch(&wanted).await?;
            for other in wanted.others {
                self.begin(&start, other).await?;
            }
        }
        Ok(())
    }

    /// Finds another block to begin on.
    async fn begin(&self, from: &Start, (url, number): OtherStart) -> Result<(), ForkError> {
        let source = match &url {
            Some(url) if !self.urls.contains(url) => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err(ForkError::Upstream("jsonRpcUrl is not an http(s) URL".to_owned()));
                }
                let opened = upstream::open_with(url, HttpConfig::default());
                let opened = opened.map_err(|error| ForkError::Upstream(error.to_string()))?;
                let opened = upstream::of_network(opened, self.options.network.chain_id);
                Arc::new(ForkSource::new(vec![opened], self.source.unproven))
            }
            Some(_) => self.source.clone(),
            None => from.source.clone(),
        };
        let block = number.map_or(ForkBlock::Head, ForkBlock::Number);
        let known = |hash: &B256| {
            let same =
                |start: &Start| Arc::ptr_eq(&start.source, &source) && start.state.block.hash() == *hash;
            let start = self.starts().into_iter().find(same)?;
            Some(Begun { state: start.state, store: start.store })
        };
        let begun = start::begin(&source, &self.options_of(&source), block, &known).await?;
        from.state.parts().others.insert((url, number), begun.state.clone());
        self.add(begun, source);
        Ok(())
    }

    /// The options for a block of this source. What the upstream of a caller shows does not go on disk, where later runs would
    /// take it for what their own upstreams have shown.
    fn options_of(&self, source: &Arc<ForkSource>) -> ForkOptions {
        let folder = self.options.folder.clone().filter(|_| Arc::ptr_eq(source, &self.source));
        ForkOptions { folder, ..self.options.clone() }
    }

    /// Forgets the blocks that a reset has found, so that a later one finds the head of that time.
    pub(crate) fn settle(&self) {
        for start in self.starts() {
            start.state.parts().others.clear();
        }
    }
}

/// What is missing, by kind.
#[derive(Default)]
struct Wanted {
    values: BTreeSet<Vec<u8>>,
    headers: BTreeSet<u64>,
    headers_of: BTreeSet<B256>,
    contents: BTreeSet<u64>,
    uncles: BTreeSet<u64>,
    places: BTreeSet<B256>,
    others: BTreeSet<OtherStart>,
}

impl Wanted {
    fn of(missing: BTreeSet<Missing>) -> Self {
        let mut wanted = Self::default();
        for one in missing {
            match one {
                Missing::Value(key) => drop(wanted.values.insert(key)),
                Missing::Header(number) => drop(wanted.headers.insert(number)),
                Missing::HeaderOf(hash) => drop(wanted.headers_of.insert(hash)),
                Missing::Contents(number) => drop(wanted.contents.insert(number)),
                Missing::Uncles(number) => drop(wanted.uncles.insert(number)),
                Missing::Place(hash) => drop(wanted.places.insert(hash)),
                Missing::Other(other) => drop(wanted.others.insert(other)),
            }
        }
        wanted
    }
}

impl Start {
    async fn fetch(&self, wanted: &Wanted) -> Result<(), ForkError> {
        let (source, state) = (&self.source, &*self.state);
        if !wanted.values.is_empty() {
            if state.parts().nodes.0.len() > MOST_NODES || state.values.len() > MOST_VALUES {
                return Err(ForkError::TooMuch(MOST_NODES));
            }
            let learned = values::fetch(source, state, &wanted.values).await?;
            self.save(&learned, &[]);
        }
        if let Some(lowest) = wanted.headers.first() {
            let headers = blocks::link(source, state, *lowest).await?;
            self.save(&Learned::default(), &headers);
        }
        blocks::headers_of(source, state, &wanted.headers_of).await?;
        if !wanted.contents.is_empty() {
            blocks::contents(source, state, &wanted.contents).await?;
        }
        blocks::uncles(source, state, &wanted.uncles).await?;
        blocks::places(source, state, &wanted.places).await
    }

    fn save(&self, learned: &Learned, headers: &[VerifiedHeader]) {
        if let Some(store) = &self.store {
            store.lock().unwrap_or_else(PoisonError::into_inner).save(learned, headers);
        }
    }
}
