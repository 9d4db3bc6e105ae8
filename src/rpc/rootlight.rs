//! `rootlight_` methods about verification: progress, upstreams, and the proof of a block.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::{B256, U256};
use serde::Serialize;

use super::{
    bitcoin_status::{BitcoinStatus, BlockBitcoinStatus},
    blocks::by_block_param,
    method::{AT_BLOCK, Failure, HandlerResult, Method, PageAccess, absent, done, verified},
    params::Params,
};
use crate::{
    consensus::{Origin, VerifiedHeader},
    engine::{BlockHeader, Level, View},
    light::{Capabilities, Evidence, PinnedHead, UpstreamState},
    types::BlockRef,
};

const UPSTREAMS: Method = Method::local(
    "rootlight_upstreams",
    &[],
    "array of upstreams",
    "Each upstream's state, what it offers, and its recorded misbehaviour.",
    upstreams,
)
.pages(PageAccess::Named);

pub(super) const METHODS: &[Method] = &[
    Method::local(
        "rootlight_syncStatus",
        &[],
        "sync status",
        "Progress of verification, and what the chain rests on (docs/light.md lists the members).",
        sync_status,
    ),
    UPSTREAMS,
    Method::local(
        "rootlight_checkpoint",
        &[],
        "checkpoint or null",
        "The block from which everything else is proven: a trusted one, or one that the work above \
         it supports. On a chain that is executed here it is block 0, which a light client of this chain starts from.",
        checkpoint,
    ),
    Method::read(
        "rootlight_verification",
        &[AT_BLOCK],
        "verification or null",
        "What an answer about a block rests on (docs/light.md lists the members).",
        verification,
    )
    .costs(5),
];

/// A number in hex.
fn quantity(value: u64) -> String {
    format!("{value:#x}")
}

/// The result of `rootlight_syncStatus`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncStatus {
    /// Whether the head is the newest block that the upstreams have.
    synced: bool,
    /// Number of the block at which synchronization began.
    starting_block: String,
    current_block: String,
    highest_block: String,
    headers_per_second: u64,
    seconds_left: Option<u64>,
    /// Age of the head in seconds, if it is too old.
    stale: Option<u64>,
    /// A stretch of the chain with less work than the work floor demands.
    low_work: Option<LowWork>,
    /// Whether the uncles of all blocks are proven or known to be unavailable.
    uncles_complete: bool,
    /// `checkpoint`, `upstream`, or `work` or `window` if no block is trusted; null on a local chain.
    start: Option<&'static str>,
    /// If no block is trusted: the least work, in difficulty, that a forgery of the whole chain needs.
    attack_cost: Option<U256>,
    /// Headers of an earlier run whose proofs of work are still to be checked; until then their work does not count.
    headers_to_prove: u64,
    /// Bitcoin's verdict on the chain, if the client follows Bitcoin's.
    bitcoin: Option<BitcoinStatus>,
    /// Why no upstream is usable, if all have failed.
    fault: Option<String>,
}

/// A stretch of the chain below the work floor.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LowWork {
    block_number: String,
    /// Length of the stretch.
    seconds: u64,
    /// Its work in percent of the expected work.
    percent: u64,
}

fn sync_status(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let status = match view.light() {
        Some(light) => light_status(light),
        None => {
            let head = view.height()?;
            // Only a follower has progress: it executes the blocks of an upstream.
            let progress = view.syncing();
            SyncStatus {
                synced: progress.is_none(),
                starting_block: quantity(progress.map_or(0, |progress| progress.starting)),
                current_block: quantity(head),
                highest_block: quantity(progress.map_or(head, |progress| progress.highest)),
                headers_per_second: 0,
                seconds_left: None,
                stale: None,
                low_work: None,
                uncles_complete: true,
                start: None,
                attack_cost: None,
                headers_to_prove: 0,
                bitcoin: None,
                fault: None,
            }
        }
    };
    done(&status, Level::Local)
}

fn light_status(light: &PinnedHead) -> SyncStatus {
    let progress = light.progress();
    SyncStatus {
        synced: light.is_synced(),
        starting_block: quantity(progress.start),
        current_block: quantity(progress.head),
        highest_block: quantity(progress.target),
        headers_per_second: progress.rate,
        seconds_left: progress.left,
        stale: light.stale(),
        low_work: light.low_work().map(|low| LowWork {
            block_number: quantity(low.number),
            seconds: low.seconds,
            percent: low.percent,
        }),
        uncles_complete: light.uncles_complete(),
        start: Some(light.trusted_start()),
        attack_cost: attack_cost(light, 0),
        headers_to_prove: light.to_prove(),
        bitcoin: BitcoinStatus::of(light),
        fault: light.stopped(),
    }
}

/// The least work, in difficulty, that a forgery of a canonical block and all blocks above it needs; `None` if the chain starts
/// at a trusted block.
fn attack_cost(light: &PinnedHead, number: u64) -> Option<U256> {
    light.chain().filter(|_| light.is_by_work())?.work_from(number)
}

/// An element of the result of `rootlight_upstreams`. `None` for a capability means that it is not known yet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpstreamStatus<'a> {
    name: &'a str,
    /// Number of the newest block that the upstream has announced.
    announced: Option<String>,
    /// Why the upstream is not asked at present.
    resting: Option<String>,
    /// For how many milliseconds it is still not asked.
    resting_millis: Option<u64>,
    /// Smoothed time from a request to its response.
    latency_millis: u64,
    headers_per_second: Option<u64>,
    /// Demerits for failures; good responses remove them.
    demerits: u32,
    /// Number of responses that no honest upstream gives.
    lies: u32,
    binary_headers: Option<bool>,
    state_proofs: Option<bool>,
    absence_proofs: Option<bool>,
    witnesses: Option<bool>,
    oldest_state: Option<String>,
    misbehaviour: Vec<Misbehaviour<'a>>,
}

/// A recorded fault of an upstream.
#[derive(Serialize)]
struct Misbehaviour<'a> {
    /// Seconds since 1970.
    at: u64,
    method: &'a str,
    params: &'a str,
    rule: &'a str,
    lie: bool,
}

fn upstreams(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let names = view.upstreams();
    let states: &[UpstreamState] = view.light().map_or(&[], PinnedHead::states);
    let all: Vec<UpstreamStatus<'_>> =
        names.iter().zip(states).map(|(name, state)| upstream_status(name, state)).collect();
    done(&all, Level::Local)
}

/// `rootlight_upstreams` of a service, whose callers see numbers in place of names, and no texts of faults and no evidence of
/// misbehaviour. Names are addresses of the operator's network, texts may contain them, and the evidence has the parameters of
/// other callers.
///
/// # Errors
/// None in practice: the list can always be written as JSON.
pub fn numbered_upstreams(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let states: &[UpstreamState] = view.light().map_or(&[], PinnedHead::states);
    let names: Vec<String> =
        (1..=view.upstreams().len()).map(|number| format!("upstream {number}")).collect();
    let all = names.iter().zip(states).map(|(name, state)| {
        let status = upstream_status(name, state);
        // In place of the fault, whose text may have the upstream's address.
        let resting = status.resting.as_ref().map(|_| "yes".into());
        UpstreamStatus { resting, misbehaviour: Vec::new(), ..status }
    });
    done(&all.collect::<Vec<_>>(), Level::Local)
}

fn upstream_status<'a>(name: &'a str, state: &'a UpstreamState) -> UpstreamStatus<'a> {
    let Capabilities { headers, proofs, absence, oldest_state, witness } = &state.can;
    let misbehaviour = |evidence: &'a Evidence| Misbehaviour {
        at: evidence.at,
        method: evidence.request.method,
        params: &evidence.request.params,
        rule: &evidence.rule,
        lie: evidence.lie,
    };
    UpstreamStatus {
        name,
        announced: state.announced.map(quantity),
        resting: state.resting.as_ref().map(|(_, fault)| format!("{fault}")),
        resting_millis: state.resting.as_ref().map(|(millis, _)| *millis),
        latency_millis: state.record.latency,
        headers_per_second: state.record.rate,
        demerits: state.record.demerits,
        lies: state.record.lies,
        binary_headers: *headers,
        state_proofs: *proofs,
        absence_proofs: *absence,
        witnesses: *witness,
        oldest_state: oldest_state.map(quantity),
        misbehaviour: state.record.evidence.iter().map(misbehaviour).collect(),
    }
}

/// The result of `rootlight_checkpoint`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckpointStatus {
    number: String,
    hash: B256,
    total_difficulty: Option<U256>,
    /// Number of ancestors that are linked to the checkpoint by hash, whose data fork-detection checks need.
    linked_below: u64,
}

fn checkpoint(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let Some(light) = view.light() else { return first_block(view) };
    let checkpoint = light.checkpoint();
    let lowest = light.chain().map_or(checkpoint.number, |chain| chain.lowest());
    let status = CheckpointStatus {
        number: quantity(checkpoint.number),
        hash: checkpoint.hash,
        total_difficulty: checkpoint.total_difficulty,
        linked_below: checkpoint.number.saturating_sub(lowest),
    };
    done(&status, Level::Local)
}

/// Block 0 of a chain that is executed locally; null if the chain does not have it.
fn first_block(view: &dyn View) -> HandlerResult {
    let status = view.header_by_number(0)?.map(|header| CheckpointStatus {
        number: quantity(0),
        hash: header.hash(),
        // No block is below block 0, so that its own difficulty is the total.
        total_difficulty: Some(header.difficulty.value()),
        linked_below: 0,
    });
    done(&status, Level::Local)
}

/// The result of `rootlight_verification`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verification {
    block_number: String,
    block_hash: B256,
    level: &'static str,
    /// Why the header is accepted: `mined`, `own node`, the start of the chain, `hash link` or `built here`.
    origin: &'static str,
    canonical: bool,
    /// Blocks on top of it; 0 off the heaviest chain.
    depth: String,
    /// Proven work of the blocks on top.
    work_on_top: Option<U256>,
    /// Header work proven since the checkpoint: a lower bound of the growth of the total difficulty.
    header_work: Option<U256>,
    /// `checkpoint`, `upstream`, or `work` or `window` if no block is trusted; null on a local chain.
    start: Option<&'static str>,
    /// If no block is trusted: the least work, in difficulty, that a forgery of this block and all above it needs.
    attack_cost: Option<U256>,
    /// Whether the fork-detection data of the header (RSKIP-110) is checked.
    fork_detection_complete: bool,
    /// Whether the uncles of the block are proven.
    uncles_proven: bool,
    /// The Bitcoin blocks that commit to this block or to one above it.
    bitcoin: Option<BlockBitcoinStatus>,
}

fn verification(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let header = if params.is_given(0) { by_block_param(view, params)? } else { Some(view.head()?) };
    let Some(header) = header else { return absent() };
    verified(&proof_of(view, &header)?)
}

/// The verification of a block, as `rootlight_verification` shows it.
fn proof_of(view: &dyn View, header: &BlockHeader) -> Result<Verification, Failure> {
    let block = BlockRef { number: header.number, hash: header.hash() };
    let chain = view.light().and_then(PinnedHead::chain);
    let canonical = view.is_canonical(block);
    let height = view.height()?;
    let depth = if canonical { height.saturating_sub(block.number) } else { 0 };
    let evidence = header.verified().map(VerifiedHeader::evidence);
    let (level, origin) = match evidence.map(|evidence| evidence.origin) {
        // On a test network whose difficulty drops after ten minutes without a block, work is nearly free.
        Some(Origin::Mined(_)) if view.policy().network.has_cheap_work() => {
            ("verified (testnet work)", "mined")
        }
        Some(Origin::Mined(_)) => ("verified", "mined"),
        Some(Origin::OwnNode) => ("unproven", "own node"),
        Some(Origin::Trusted) => ("verified", view.light().map_or("checkpoint", PinnedHead::trusted_start)),
        Some(Origin::HashLinked) => ("verified", "hash link"),
        // A pending block has no evidence. A header that was checked alone (`Origin::Alone`) is connected to the chain, or refused,
        // before a view returns it.
        _ => ("local", "built here"),
    };
    Ok(Verification {
        block_number: quantity(block.number),
        block_hash: block.hash,
        level,
        origin,
        canonical,
        depth: quantity(depth),
        work_on_top: chain.filter(|_| canonical).and_then(|chain| chain.work_above(block.number)),
        header_work: chain.and_then(|chain| chain.header_work(&block.hash)),
        start: view.light().map(PinnedHead::trusted_start),
        attack_cost: view.light().filter(|_| canonical).and_then(|light| attack_cost(light, block.number)),
        fork_detection_complete: evidence.is_none_or(|evidence| evidence.fork_detection.is_complete()),
        uncles_proven: chain.is_some_and(|chain| chain.uncles(&block.hash).is_some()),
        bitcoin: view
            .light()
            .filter(|_| canonical)
            .and_then(|light| BlockBitcoinStatus::of(light.bitcoin()?, block.number, light.now)),
    })
}
