//! What the machine holds. The files beside this one say what it does.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{below_range::Below, peer};
use crate::{
    consensus::{Checkpoint, HeaderChain, Network, WorkStart},
    light::{
        backlog::Backlog, clock::Now, floor::Floor, header_window::HeaderWindow, meter::Meter,
        upstream::UpstreamCall,
    },
    types::{B256, Header, SealedHeader, U256},
};

/// Ancestors of the checkpoint fetched by default: fork detection data commit to 449 of them.
pub(super) const FORK_WINDOW: u64 = 449;

/// Times and bounds of synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncOptions {
    /// Pause between looks for new blocks, in milliseconds.
    pub poll: u64,
    /// First pause after a failure, in milliseconds; each further one in a row doubles it.
    pub retry: u64,
    /// Longest pause after failures, in milliseconds.
    pub longest_retry: u64,
    /// Most headers in one window.
    pub batch: usize,
    /// Headers below the checkpoint to fetch by hash links.
    pub below: u64,
    /// What takes the place of the checkpoint's difficulty as a promise of work.
    pub promised: Option<U256>,
    /// Share of the work that the checkpoint's difficulty promises which every stretch of time must show, in percent;
    /// 0 asks for none.
    pub work_floor: u64,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            poll: 5_000,
            retry: 5_000,
            longest_retry: 600_000,
            batch: 200,
            below: FORK_WINDOW,
            promised: None,
            work_floor: 50,
        }
    }
}

/// What the host has to do for an upstream.
#[derive(Debug)]
pub enum SyncStep {
    /// Ask these questions and [`Sync::feed`] the answers in the same order.
    Fetch(Vec<UpstreamCall>),
    /// Nothing for now: come back after this many milliseconds.
    Wait(u64),
}

/// The synchronization machine; it owns the header chain.
#[derive(Debug)]
pub struct Sync {
    pub(super) network: Arc<Network>,
    pub(super) checkpoint: Checkpoint,
    pub(super) options: SyncOptions,
    /// What the start is judged by where no block is trusted. The checkpoint is the block that it was made at then.
    pub(super) work: Option<WorkStart>,
    pub(super) chain: Option<HeaderChain>,
    pub(super) peers: Vec<Peer>,
    pub(super) backlog: Backlog,
    pub(super) lease: Option<Lease>,
    /// Lowest ancestor of the checkpoint still wanted, and who was asked in vain.
    pub(super) below: Below,
    pub(super) synced_once: bool,
    /// When the first upstream had shown all it has.
    pub(super) first_end: Option<u64>,
    pub(super) meter: Meter,
    pub(super) floor: Floor,
    /// The last moment the host told.
    pub(super) now: Now,
    /// The lowest canonical header that changed since the last export.
    pub(super) unsaved: Option<u64>,
    /// The head that was kept from an earlier run.
    pub(super) resumed: Option<u64>,
    /// What of an earlier run lies below the headers in memory and is still to be proven.
    pub(super) behind: Option<Behind>,
}

/// How far an upstream's proposal is.
#[derive(Debug, Default)]
pub(super) enum Candidate {
    /// Its height is wanted.
    #[default]
    Height,
    /// The block's own header is wanted.
    Block(HeaderWindow),
    /// The headers above it are wanted.
    Headers(Box<Sync>),
    /// They are enough.
    Judged(Box<Sync>),
}

/// An upstream, with what it proposes to start at.
pub(super) type Peer = peer::Peer<Candidate>;

/// The turn at fetching many headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) holder: usize,
    pub(super) began: u64,
    pub(super) headers: u64,
}

/// Taking back a stretch of the chain, page by page: first some ancestors, then the header from which on the others are
/// checked. See [`Sync::restore_page`].
#[derive(Debug)]
pub struct Restoring {
    /// The page of the checkpoint, while it is wanted: of a stretch that begins above it.
    pub(super) promise: Option<u64>,
    pub(super) first: u64,
    pub(super) next: u64,
    /// The page after the last one.
    pub(super) end: u64,
    /// Number of the header from which on the others are checked.
    pub(super) base: u64,
    pub(super) below: Vec<(SealedHeader, Vec<Header>)>,
    pub(super) chain: Option<HeaderChain>,
    /// The header at which the stretch must end, where that is known; those of a stretch at the top are linked first and
    /// proven later.
    pub(super) top: Option<(u64, B256)>,
}

/// Proving what lies below the headers in memory.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) stretch: Restoring,
    /// Work of the headers from the base of the stretch up to the base of the chain.
    pub(super) work: U256,
    /// That of their uncles, where those of all are proven.
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
            below: Below::default(),
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
