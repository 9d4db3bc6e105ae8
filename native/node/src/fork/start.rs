//! Finds the block on which a chain begins.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use rootlight::consensus::{ChainView, Checkpoint, HeaderChain, Network, Rule, VerifiedHeader};
use rootlight::engine::gate;
use rootlight::light::UpstreamRequest;
use tracing::info;

use super::blocks::{below, link, raw};
use super::disk::{ForkStore, keep_hash, kept_hash};
use super::error::ForkError;
use super::source::ForkSource;
use super::state::ForkState;
use super::values::{Learned, on_branch};
use crate::light::{LightOptions, LightService, LightStart, first_block};

/// Longest wait for a verified head.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// Ancestors that are fetched for REMASC, at most. Where it pays later, as on the public networks after 4,000 blocks, it pays
/// from those that the light client has anyway.
const MOST_FOR_REMASC: u64 = 64;

/// The block on which a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkBlock {
    /// The newest verified one.
    Head,
    /// The block at a height of the verified chain.
    Number(u64),
    /// A trusted block, by height and hash.
    Trusted(u64, B256),
}

/// How blocks are found and what is kept.
#[derive(Debug, Clone)]
pub struct ForkOptions {
    /// The network of the upstreams.
    pub network: Network,
    /// Where the light client starts that verifies the head; `None` for a development chain, whose block 0 the upstreams show.
    pub start: Option<LightStart>,
    /// The folder in which what is read is kept.
    pub folder: Option<PathBuf>,
}

/// A block that was found, with its file and what it needs for the first block above it.
pub(super) struct Begun {
    pub(super) state: Arc<ForkState>,
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
            folder.and_then(|folder| kept_hash(folder, network.chain_id, number)).map(|hash| (number, hash))
        }
        ForkBlock::Trusted(number, hash) => Some((number, hash)),
    };
    if let Some(begun) = kept.and_then(|(_, hash)| known(&hash)) {
        return Ok(begun);
    }
    let (header, chain) = find(source, options, &network, block, kept).await?;
    if !network.active(Rule::Rskip126, header.number) {
        return Err(ForkError::TooOld { number: header.number });
    }
    let hash = header.hash();
    if let Some(begun) = known(&hash) {
        return Ok(begun);
    }
    let store = folder.and_then(|folder| ForkStore::open(folder, &hash, source.unproven));
    let mut state = ForkState::new(network, header);
    if let Some(store) = &store {
        store.load(&state);
    }
    ancestors(source, &state, chain.as_ref()).await?;
    state.set_first_rewarded();
    if let Some(store) = &store {
        keep_ancestors(store, &state, block);
    }
    Ok(Begun { state: Arc::new(state), store: store.map(|store| Arc::new(Mutex::new(store))) })
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
    let below = if block == ForkBlock::Head { MOST_FOR_REMASC } else { state.network.params.remasc_maturity };
    let lowest = state.block.number.saturating_sub(below);
    let headers: Vec<_> = state.parts().headers.range(lowest..).map(|(_, header)| header.clone()).collect();
    store.save(&Learned::default(), &headers);
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
        None => {
            let header = raw(source, network, hash).await?;
            if header.number != number {
                return Err(ForkError::OtherNumber { number, found: header.number, hash });
            }
            let request = UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#));
            source
                .first(&[request], |upstream, results| {
                    on_branch(upstream, number, hash, results.into_iter().next())
                })
                .await?;
            header
        }
    };
    let checkpoint = Checkpoint { number, hash, total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, header);
    let chain = chain.map_err(|error| ForkError::Unverified(error.to_string()))?;
    Ok(chain.head().clone())
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
    if number > chain.head().number {
        let name = source.upstreams.first().map_or_else(String::new, |one| one.name().to_owned());
        return Err(ForkError::NoBlock { name, number });
    }
    let mut at = chain.by_number(number.max(chain.lowest())).cloned();
    let mut shown = Instant::now();
    while let Some(header) = at.clone().filter(|header| header.number > number) {
        if shown.elapsed() > PROGRESS {
            shown = Instant::now();
            info!("linking block {number} to the verified chain: {} headers to go", header.number - number);
        }
        let next = below(source, network, &header, number).await?;
        at = next.into_iter().next_back();
    }
    let missing = || ForkError::Unverified(format!("it does not have block {number}"));
    at.ok_or_else(missing)
}

/// Adds the ancestors that the verified chain has, and those from which REMASC pays soon.
async fn ancestors(
    source: &ForkSource,
    state: &ForkState,
    chain: Option<&ChainView>,
) -> Result<(), ForkError> {
    let number = state.block.number;
    for header in chain
        .into_iter()
        .flat_map(|chain| (chain.lowest()..number).rev().filter_map(|at| chain.by_number(at)))
    {
        state.parts().add_header(header.clone());
    }
    let maturity = state.network.params.remasc_maturity;
    if maturity > MOST_FOR_REMASC {
        return Ok(());
    }
    let oldest = number.saturating_add(1).saturating_sub(maturity).max(1).min(number);
    link(source, state, oldest).await.map(drop)
}
