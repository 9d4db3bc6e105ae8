//! Finds the block on which a fork begins: the head that a light client verifies, a block linked to that head, or a trusted block.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use rootlight::consensus::{ChainView, Network, VerifiedHeader};
use rootlight::dev::fork::{
    FetchedState, ForkBlock, ForkError, ForkState, MOST_FOR_REMASC, RUN_SECONDS, Search, is_replaced,
    trusted_block,
};
use rootlight::engine::gate;
use rootlight::local::ForkBase as _;
use tracing::info;

use super::disk::{self, ForkStore, store_note, stored_hash};
use super::notes::ThreadNotes;
use super::source::ForkSource;
use crate::light::{LightOptions, LightService, LightStart, first_block};

/// Longest wait for a verified head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Time between two lines of progress.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Usual limit of the size of a block's file in bytes: that of ten thousand blocks of the main network.
pub(super) const MOST_FILE_BYTES: u64 = 1 << 30;

/// How blocks are found, and what is stored of them.
#[derive(Debug, Clone)]
pub struct ForkOptions {
    /// The network of the upstreams.
    pub network: Network,
    /// Where the light client starts that verifies the head; `None` for a development chain, whose block 0 the upstreams show.
    pub start: Option<LightStart>,
    /// The folder in which data that is read of the network is stored; `None` stores nothing.
    pub folder: Option<PathBuf>,
    /// Size of the file of a block in bytes from which on nothing more is stored in it.
    pub most_file_bytes: u64,
    /// Whether a reset may name only the upstreams of the start. Otherwise a caller can make this host connect to any URL.
    pub has_fixed_urls: bool,
    /// Limit of the time of one message.
    pub run_time: Duration,
}

impl ForkOptions {
    /// Options for blocks of a development chain, of which nothing is stored.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self {
            network,
            start: None,
            folder: None,
            most_file_bytes: MOST_FILE_BYTES,
            has_fixed_urls: false,
            run_time: Duration::from_secs(RUN_SECONDS),
        }
    }
}

/// The chain id of the network of a trusted block, if an earlier run with this folder has begun on that block.
#[must_use]
pub fn stored_chain_id(folder: &Path, block: ForkBlock) -> Option<u64> {
    match block {
        ForkBlock::Trusted(_, hash) => disk::stored_chain_id(folder, &hash),
        ForkBlock::Head | ForkBlock::Number(_) => None,
    }
}

/// A block that was found, with its file, and with the ancestors that the first block above it needs.
pub(super) struct Begun {
    pub(super) state: Arc<ForkState>,
    pub(super) notes: Arc<ThreadNotes>,
    pub(super) store: Option<Arc<ForkStore>>,
}

/// Finds a block. `known` returns a block that is in use already by its hash.
pub(super) async fn begin(
    source: &ForkSource,
    options: &ForkOptions,
    block: ForkBlock,
    known: &(dyn Fn(&B256) -> Option<Begun> + Sync),
) -> Result<Begun, ForkError> {
    let network = Arc::new(options.network.clone());
    let folder = options.folder.as_deref();
    let open = |hash: &B256| ForkStore::open(folder?, hash, source.unproven, options.most_file_bytes);
    let trusted = match (block, folder) {
        (ForkBlock::Number(number), Some(folder)) => stored_block(source, folder, &network, number).await,
        _ => block,
    };
    let mut store = None;
    if let ForkBlock::Trusted(_, hash) = trusted {
        if let Some(begun) = known(&hash) {
            return Ok(begun);
        }
        store = open(&hash);
    }
    let (header, search) = find(source, options, trusted, store.as_ref()).await?;
    let hash = header.hash();
    if let Some(begun) = known(&hash) {
        return Ok(begun);
    }
    if let Some(folder) = folder {
        store_note(folder, network.chain_id, block, hash);
    }
    let store = store.or_else(|| open(&hash));
    let notes = Arc::new(ThreadNotes(hash));
    let mut state = ForkState::new(network, header, notes.clone())?;
    if let Some(store) = &store {
        store.load(&state);
    }
    source.fetch(|exchanges| search.ancestors(exchanges, &mut state)).await?;
    if let Some(store) = &store {
        store_ancestors(store, &state, block);
    }
    Ok(Begun { state: Arc::new(state), notes, store: store.map(Arc::new) })
}

/// The block at a height as a trusted one if its hash is stored and no upstream has another block there. So a second run works
/// without an upstream.
async fn stored_block(source: &ForkSource, folder: &Path, network: &Network, number: u64) -> ForkBlock {
    let Some(hash) = stored_hash(folder, network.chain_id, number) else { return ForkBlock::Number(number) };
    match source.fetch(|exchanges| is_replaced(exchanges, number, hash)).await.unwrap_or(false) {
        true => ForkBlock::Number(number),
        false => ForkBlock::Trusted(number, hash),
    }
}

/// The header of a block, and the search that found it. The header of a trusted block comes from the store, if it has it.
async fn find(
    source: &ForkSource,
    options: &ForkOptions,
    block: ForkBlock,
    store: Option<&ForkStore>,
) -> Result<(VerifiedHeader, Search), ForkError> {
    let network = Arc::new(options.network.clone());
    let chain = match block {
        ForkBlock::Trusted(..) => None,
        ForkBlock::Head | ForkBlock::Number(_) => Some(verified_chain(source, options).await?),
    };
    let mut search = Search::new(network.clone(), block, chain);
    if let ForkBlock::Trusted(number, hash) = block {
        let stored = store.and_then(|store| store.header(number, &network));
        if let Some(stored) = stored.filter(|stored| stored.hash() == hash) {
            return Ok((trusted_block(&network, stored)?, search));
        }
    }
    let mut shown = Instant::now();
    let header = source.fetch(|exchanges| {
        if shown.elapsed() > LINE_INTERVAL {
            shown = Instant::now();
            info!("linking the block to the verified chain: {} headers to go", search.to_go());
        }
        search.header(exchanges)
    });
    Ok((header.await?, search))
}

/// Stores the ancestors that a later start on the same block needs.
fn store_ancestors(store: &ForkStore, state: &ForkState, block: ForkBlock) {
    // REMASC pays the fees of the block `remasc_maturity` blocks below. Few forks begin on the same head twice, so fewer headers are
    // stored for a head.
    let below =
        if block == ForkBlock::Head { MOST_FOR_REMASC } else { state.network().params.remasc_maturity };
    let lowest = state.block().number.saturating_sub(below);
    store.save(&FetchedState::default(), &state.headers(lowest..u64::MAX));
}

/// The chain that a light client verifies, up to its head.
async fn verified_chain(source: &ForkSource, options: &ForkOptions) -> Result<ChainView, ForkError> {
    let unverified = |error: String| ForkError::Unverified(error);
    let mut light = LightOptions::default();
    let start = match &options.start {
        Some(start) => *start,
        None => {
            // A development chain may have mined its newest block long ago.
            light.max_age = 0;
            let block = first_block(&options.network, &source.upstreams).await;
            LightStart::At(block.map_err(|error| unverified(error.to_string()))?)
        }
    };
    let service = LightService::start(options.network.clone(), start, source.upstreams.clone(), light);
    service.settled(HEAD_TIMEOUT).await;
    let pinned = service.pinned();
    gate::usable_chain(&pinned).cloned().map_err(|refusal| unverified(refusal.to_string()))
}
