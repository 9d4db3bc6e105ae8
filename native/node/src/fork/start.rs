//! Finds the block on which a chain begins.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use rootlight::consensus::{ChainView, Network, VerifiedHeader};
use rootlight::dev::fork::{
    ForkBlock, ForkError, ForkState, Learned, MOST_FOR_REMASC, RUN_SECONDS, Stop, ancestors, below,
    is_replaced, nearest, trusted_block, trusted_header,
};
use rootlight::engine::gate;
use rootlight::local::ForkBase as _;
use tracing::info;

use super::disk::{ForkStore, keep_hash, kept_hash};
use super::notes::ThreadNotes;
use super::source::ForkSource;
use crate::light::{LightOptions, LightService, LightStart, first_block};

/// Longest wait for a verified head.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// How blocks are found and what is kept.
#[derive(Debug, Clone)]
pub struct ForkOptions {
    /// The network of the upstreams.
    pub network: Network,
    /// Where the light client starts that verifies the head; `None` for a development chain, whose block 0 the upstreams show.
    pub start: Option<LightStart>,
    /// The folder in which what is read is kept.
    pub folder: Option<PathBuf>,
    /// Whether a reset may name no other upstream than those of the start. Else a caller chooses what this host connects to.
    pub has_fixed_urls: bool,
    /// Limit of the time of one message.
    pub run_time: Duration,
}

impl ForkOptions {
    /// Blocks of a development chain, of which nothing is kept.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self {
            network,
            start: None,
            folder: None,
            has_fixed_urls: false,
            run_time: Duration::from_secs(RUN_SECONDS),
        }
    }
}

/// A block that was found, with its file and what it needs for the first block above it.
pub(super) struct Begun {
    pub(super) state: Arc<ForkState>,
    pub(super) notes: Arc<ThreadNotes>,
    pub(super) store: Option<Arc<Mutex<ForkStore>>>,
}

/// Finds a block. One that is in use already is `known` by its hash.
pub(super) async fn begin(
    source: &ForkSource,
    options: &ForkOptions,
    block: ForkBlock,
    known: &(dyn Fn(&B256) -> Option<Begun> + Sync),
) -> Result<Begun, ForkError> {
    let network = Arc::new(options.network.clone());
    let folder = options.folder.as_deref();
    let kept = match block {
        ForkBlock::Head => None,
        ForkBlock::Number(number) => {
            let kept = folder.and_then(|folder| kept_hash(folder, network.chain_id, number));
            match kept {
                Some(hash) if is_still_there(source, number, hash).await => Some((number, hash)),
                _ => None,
            }
        }
        ForkBlock::Trusted(number, hash) => Some((number, hash)),
    };
    if let Some(begun) = kept.and_then(|(_, hash)| known(&hash)) {
        return Ok(begun);
    }
    let (header, chain) = find(source, options, &network, block, kept).await?;
    let hash = header.hash();
    if let Some(begun) = known(&hash) {
        return Ok(begun);
    }
    let store = folder.and_then(|folder| ForkStore::open(folder, &hash, source.unproven));
    let notes = Arc::new(ThreadNotes(hash));
    let mut state = ForkState::new(network, header, notes.clone())?;
    if let Some(store) = &store {
        store.load(&state);
    }
    source.fetch(|exchanges| ancestors(exchanges, &state, chain.as_ref())).await?;
    state.set_first_rewarded();
    if let Some(store) = &store {
        keep_ancestors(store, &state, block);
    }
    Ok(Begun { state: Arc::new(state), notes, store: store.map(|store| Arc::new(Mutex::new(store))) })
}

/// Whether no upstream has another block at the height of one whose hash was kept. A second run needs no upstream that answers.
async fn is_still_there(source: &ForkSource, number: u64, hash: B256) -> bool {
    !source.fetch(|exchanges| is_replaced(exchanges, number, hash)).await.unwrap_or(false)
}

/// The header of a block, with the verified chain that leads to it unless its hash is kept or trusted.
async fn find(
    source: &ForkSource,
    options: &ForkOptions,
    network: &Arc<Network>,
    block: ForkBlock,
    kept: Option<(u64, B256)>,
) -> Result<(VerifiedHeader, Option<ChainView>), ForkError> {
    let folder = options.folder.as_deref();
    if let Some((number, hash)) = kept {
        let store = folder.and_then(|folder| ForkStore::open(folder, &hash, source.unproven));
        return Ok((trusted(source, network, store.as_ref(), (number, hash)).await?, None));
    }
    let chain = verified_chain(source, options).await?;
    let number = match block {
        ForkBlock::Number(number) => number,
        _ => chain.head().number,
    };
    let header = linked(source, network, &chain, number).await?;
    if let (Some(folder), ForkBlock::Number(_)) = (folder, block) {
        keep_hash(folder, network.chain_id, number, header.hash());
    }
    Ok((header, Some(chain)))
}

/// Stores the ancestors that a later start on the same block needs.
fn keep_ancestors(store: &ForkStore, state: &ForkState, block: ForkBlock) {
    // Heads are seldom begun on twice.
    let below =
        if block == ForkBlock::Head { MOST_FOR_REMASC } else { state.network().params.remasc_maturity };
    let lowest = state.block().number.saturating_sub(below);
    store.save(&Learned::default(), &state.headers(lowest..u64::MAX));
}

/// The header of a trusted block, from the store or from an upstream that has the block on its chain.
async fn trusted(
    source: &ForkSource,
    network: &Arc<Network>,
    store: Option<&ForkStore>,
    (number, hash): (u64, B256),
) -> Result<VerifiedHeader, ForkError> {
    let kept = store.and_then(|store| store.header(number, network)).filter(|kept| kept.hash() == hash);
    let header = match kept {
        Some(header) => header,
        None => source.fetch(|exchanges| trusted_header(exchanges, network, (number, hash))).await?,
    };
    trusted_block(network, header)
}

/// The chain that a light client verifies, up to its head.
async fn verified_chain(source: &ForkSource, options: &ForkOptions) -> Result<ChainView, ForkError> {
    let unverified = |error: String| ForkError::Unverified(error);
    let mut light = LightOptions::default();
    let start = match &options.start {
        Some(start) => *start,
        None => {
            light.max_age = 0;
            let block = first_block(&options.network, &source.upstreams).await;
            LightStart::At(block.map_err(|error| unverified(error.to_string()))?)
        }
    };
    let service = LightService::start(options.network.clone(), start, source.upstreams.clone(), light);
    service.settled(PATIENCE).await;
    let pinned = service.pinned();
    gate::chain(&pinned).cloned().map_err(|refusal| unverified(refusal.to_string()))
}

/// The header at a height of a verified chain, or of the blocks below it, which its lowest header leads to.
async fn linked(
    source: &ForkSource,
    network: &Network,
    chain: &ChainView,
    number: u64,
) -> Result<VerifiedHeader, ForkError> {
    let mut at = source.fetch(|exchanges| nearest(exchanges, chain, number).map_err(Stop::from)).await?;
    let mut shown = Instant::now();
    while at.number > number {
        if shown.elapsed() > PROGRESS {
            shown = Instant::now();
            info!("linking block {number} to the verified chain: {} headers to go", at.number - number);
        }
        let linked = source.fetch(|exchanges| below(exchanges, network, &at, number)).await?;
        let missing = || ForkError::Unverified(format!("it does not have block {number}"));
        at = linked.into_iter().next_back().ok_or_else(missing)?;
    }
    Ok(at)
}
