//! The state of the synchronization machine. The files beside this one implement its steps.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{backfill_range::Backfill, peer};
use crate::{
    consensus::{Checkpoint, HeaderChain, Network, WorkStart},
    light::{
        backlog::Backlog, clock::Now, floor::Floor, header_window::HeaderWindow, meter::Meter,
        upstream::UpstreamRequest,
    },
    types::{B256, Header, SealedHeader, U256},
};

/// Ancestors of the checkpoint that the backfill fetches by default: fork detection data commit to 449 of them.
pub(super) const FORK_WINDOW: u64 = 449;

/// Times and limits of synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncOptions {
    /// Pause between two checks for new blocks, in milliseconds.
    pub poll: u64,
    /// First pause after a failure, in milliseconds; each further one in a row doubles it.
    pub retry: u64,
    /// Longest pause after failures, in milliseconds.
    pub longest_retry: u64,
    /// Most headers in one window.
    pub batch: usize,
    /// Number of headers below the checkpoint to fetch by hash links.
    pub backfill: u64,
    /// Replaces the checkpoint's difficulty as the promise of work, if set.
    pub promised: Option<U256>,
    /// The share, in percent, of the work promised by the checkpoint's difficulty that every stretch of time must show;
    /// 0 requires none.
    pub work_floor: u64,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            poll: 5_000,
            retry: 5_000,
            longest_retry: 600_000,
            batch: 200,
            backfill: FORK_WINDOW,
            promised: None,
            work_floor: 50,
        }
    }
}

/// What the host must do next for an upstream.
#[derive(Debug)]
pub enum SyncStep {
    /// Send these requests and [`Sync::feed`] the responses in the same order.
    Fetch(Vec<UpstreamRequest>),
    /// Nothing to do now: call again after this many milliseconds.
    Wait(u64),
}

/// The synchronization machine. It owns the header chain.
#[derive(Debug)]
pub struct Sync {
    pub(super) network: Arc<Network>,
    pub(super) checkpoint: Checkpoint,
    pub(super) options: SyncOptions,
    /// The rule that judges the start if no block is trusted. The checkpoint is then the block that was chosen by work.
    pub(super) work: Option<WorkStart>,
    pub(super) chain: Option<HeaderChain>,
    pub(super) peers: Vec<Peer>,
    pub(super) backlog: Backlog,
    pub(super) lease: Option<Lease>,
    /// The backfill.
    pub(super) backfill: Backfill,
    pub(super) synced_once: bool,
    /// When the first upstream had shown all of its headers, in milliseconds of the monotonic clock.
    pub(super) first_end: Option<u64>,
    pub(super) meter: Meter,
    pub(super) floor: Floor,
    /// The time that the host passed in last.
    pub(super) now: Now,
    /// The lowest canonical header that changed since the last export.
    pub(super) unsaved: Option<u64>,
    /// The number of the head that was restored from an earlier run.
    pub(super) resumed: Option<u64>,
    /// Headers of an earlier run below those in memory, which are still to be proven.
    pub(super) behind: Option<Behind>,
}

/// The state of an upstream's proposal in a start by work.
#[derive(Debug, Default)]
pub(super) enum StartProposal {
    /// The upstream's height is needed.
    #[default]
    Height,
    /// The header of the proposed block is needed.
    Block(HeaderWindow),
    /// The headers above the proposed block are needed.
    Headers(Box<Sync>),
    /// The headers show enough work.
    Judged(Box<Sync>),
}

/// An upstream, with its proposal to start at.
pub(super) type Peer = peer::Peer<StartProposal>;

/// The turn at fetching many headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) holder: usize,
    pub(super) began: u64,
    pub(super) headers: u64,
}

/// The state of taking back a stretch of the chain page by page: first some ancestors, then the base, the header from
/// which on all others are checked. See [`Sync::restore_page`].
#[derive(Debug)]
pub struct Restoring {
    /// For a stretch that begins above the checkpoint: the page of the checkpoint, until it is read.
    pub(super) promise: Option<u64>,
    pub(super) first: u64,
    pub(super) next: u64,
    /// The page after the last one.
    pub(super) end: u64,
    /// Number of the base.
    pub(super) base: u64,
    pub(super) below: Vec<(SealedHeader, Vec<Header>)>,
    pub(super) chain: Option<HeaderChain>,
    /// Number and hash of the header at which the stretch must end. `None` for the stretch at the top, whose headers
    /// are linked first and proven later.
    pub(super) top: Option<(u64, B256)>,
}

/// The state of proving the headers below those in memory.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) stretch: Restoring,
    /// Work of the headers from the base of the stretch up to the base of the chain.
    pub(super) work: U256,
    /// Work of the uncles of these headers, if all uncles are proven.
    pub(super) uncles: Option<U256>,
}

impl Sync {
    /// A machine that starts at a trusted checkpoint, with one upstream.
    pub fn new(network: Arc<Network>, checkpoint: Checkpoint) -> Self {
        Self::with_upstreams(network, checkpoint, 1, SyncOptions::default())
    }

    /// A machine that starts at a trusted checkpoint; upstreams are numbered from 0.
    pub fn with_upstreams(
        network: Arc<Network>,
        checkpoint: Checkpoint,
        upstreams: usize,
        options: SyncOptions,
    ) -> Self {
        Self {
            network,
            checkpoint,
            options,
            work: None,
            chain: None,
            peers: (0..upstreams.max(1)).map(|_| Peer::new()).collect(),
            backlog: Backlog::default(),
            lease: None,
            backfill: Backfill::default(),
            synced_once: false,
            first_end: None,
            meter: Meter::default(),
            floor: Floor::new(options.work_floor, options.promised),
            now: Now::default(),
            unsaved: None,
            resumed: None,
            behind: None,
        }
    }
}
