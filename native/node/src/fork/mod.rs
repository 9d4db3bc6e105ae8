//! Forks: development chains that begin on a block of another network. The block is found; its state and ancestors are fetched when
//! the chain reads them, and stored on disk.
//!
//! | file | contents |
//! |---|---|
//! | `start` | finds the block |
//! | `notes` | data that runs lacked, by thread |
//! | `source` | the upstreams, and the requests to them |
//! | `disk` | the files of data that was read |
//!
//! `rootlight::dev::fork` has the fetched data in memory, and makes the requests for missing data.

mod disk;
mod notes;
mod source;
mod start;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use rootlight::consensus::ChainError;
use rootlight::dev::DevConfig;
use rootlight::dev::fork::{FetchedState, ForkState, HostCache, OtherStart, Rounds, Wanted};
use rootlight::engine::{DevNode, HostInput, Snapshot as _};
use rootlight::local::ForkBase;
use rootlight_upstream::{self as upstream, HttpConfig};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

pub use rootlight::dev::fork::{ForkBlock, ForkError};
pub use source::ForkSource;
pub use start::{ForkOptions, stored_chain_id};

use disk::ForkStore;
use notes::{ThreadNotes, forget_missing, is_missing};
use start::Begun;

/// The base of a fork: the blocks of another network on which the chain has begun, with the means to fetch what the chain reads of
/// them.
pub struct Fork {
    /// The upstreams of the first block.
    source: Arc<ForkSource>,
    options: ForkOptions,
    /// The URLs of the upstreams, which a reset may name.
    urls: Vec<String>,
    /// The runtime on which data is fetched, while the thread that needs the data is blocked.
    runtime: Handle,
    /// The blocks on which the chain has begun, the newest last: a reset (`hardhat_reset`, `anvil_reset`) adds one.
    starts: Mutex<Vec<Start>>,
}

/// A block on which the chain has begun, and its sources.
#[derive(Clone)]
struct Start {
    /// The data about the block that is in memory.
    state: Arc<ForkState>,
    /// The data that runs lacked.
    notes: Arc<ThreadNotes>,
    source: Arc<ForkSource>,
    /// The file of the block; `None` if nothing is stored.
    store: Option<Arc<ForkStore>>,
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
        };
        fork.add(begun, source);
        Ok(fork)
    }

    /// Adds a block on which the chain begins.
    fn add(&self, begun: Begun, source: Arc<ForkSource>) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        // If this list has the only reference to a start, no chain uses the start any more.
        starts
            .retain(|start| Arc::strong_count(&start.state) > 1 && !Arc::ptr_eq(&start.state, &begun.state));
        starts.push(Start { state: begun.state, notes: begun.notes, source, store: begun.store });
    }

    /// The blocks on which the chain has begun.
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

    /// Makes the node of a chain with the configuration that `config` makes from [`Self::base`]. Data that every block reads, such
    /// as the accounts that get its fees, is fetched here.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn node(&self, config: impl Fn() -> DevConfig, host_input: HostInput) -> Result<DevNode, ForkError> {
        self.run(|| {
            let node = DevNode::new(config(), host_input)?;
            // Building the pending block finds the data that every block reads; the block itself is not needed.
            let _ = node.local_snapshot().view(host_input.now, &|| false).pending();
            Ok(node)
        })?
        .map_err(|error: ChainError| ForkError::Unverified(error.to_string()))
    }

    /// Calls `run` until it lacks no data, and returns its last result. Data that it lacks is fetched between two calls, within the
    /// time of [`ForkOptions::run_time`]; `run` must undo the changes of the call before. Blocks the thread, which must not be one
    /// of the runtime's own.
    ///
    /// # Errors
    /// Missing data cannot be fetched, or not in time.
    pub fn run<T>(&self, mut run: impl FnMut() -> T) -> Result<T, ForkError> {
        let (began, mut rounds) = (Instant::now(), Rounds::within(self.options.run_time.as_secs()));
        loop {
            forget_missing();
            let result = run();
            if !is_missing() {
                return Ok(result);
            }
            let wanted = self.missing()?;
            rounds.count(wanted.iter().map(|(_, wanted)| wanted))?;
            let end = began + Duration::from_secs(rounds.seconds);
            let fetched = async { timeout_at(end, self.fetch(wanted, &rounds)).await };
            self.runtime.block_on(fetched).map_err(|_| ForkError::TooLate(rounds.seconds))??;
        }
    }

    /// The data that the last run of the present thread lacked, for each start.
    fn missing(&self) -> Result<Vec<(Start, Wanted)>, ForkError> {
        self.starts().into_iter().map(|start| Ok((start.clone(), start.notes.take().wanted()?))).collect()
    }

    /// Fetches the data that a run lacked.
    async fn fetch(&self, wanted: Vec<(Start, Wanted)>, rounds: &Rounds) -> Result<(), ForkError> {
        for (start, mut wanted) in wanted {
            start.fetch(&mut wanted, rounds).await?;
            for other in wanted.others {
                self.begin(&start, other).await?;
            }
        }
        Ok(())
    }

    /// Finds another block to begin on, as a reset of the chain demands it.
    async fn begin(&self, from: &Start, (url, number): OtherStart) -> Result<(), ForkError> {
        let source = match &url {
            Some(url) if !self.urls.contains(url) => {
                if self.options.has_fixed_urls {
                    return Err(ForkError::OtherUrl);
                }
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
            let same = |start: &Start| Arc::ptr_eq(&start.source, &source) && start.notes.0 == *hash;
            let start = self.starts().into_iter().find(same)?;
            Some(Begun { state: start.state, notes: start.notes, store: start.store })
        };
        let begun = start::begin(&source, &self.options_of(&source), block, &known).await?;
        from.state.add_other((url, number), begun.state.clone());
        self.add(begun, source);
        Ok(())
    }

    /// The options for a block of this source. Data of an upstream that a caller named is not stored on disk, where later runs
    /// would take it for data of their own upstreams.
    fn options_of(&self, source: &Arc<ForkSource>) -> ForkOptions {
        let folder = self.options.folder.clone().filter(|_| Arc::ptr_eq(source, &self.source));
        ForkOptions { folder, ..self.options.clone() }
    }

    /// Forgets the blocks that resets have found, so that a later reset finds the head of its own time.
    pub(crate) fn settle(&self) {
        for start in self.starts() {
            start.state.forget_others();
        }
    }
}

impl Start {
    /// Fetches the wanted data, and stores it on disk.
    async fn fetch(&self, wanted: &mut Wanted, rounds: &Rounds) -> Result<(), ForkError> {
        let (state, store) = (&*self.state, self.store.as_deref());
        let cache: HostCache<'_> = store.map(|store| store as _);
        // The headers below this one that the fetch adds are new, so they are stored.
        let lowest = state.lowest().number;
        let fetched = self.source.fetch(|exchanges| rounds.fetch(exchanges, state, wanted, cache)).await;
        if let Some(store) = store {
            store.save(&FetchedState::default(), &state.headers(0..lowest));
        }
        fetched
    }
}
