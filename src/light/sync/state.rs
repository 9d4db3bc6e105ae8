//! The state of the synchronization machine. The files beside this one implement its steps.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{line::Line, peer};
use crate::{
    consensus::{Checkpoint, HeaderChain, Network, WorkStart},
    light::{clock::Now, header_window::HeaderWindow, upstream::UpstreamRequest},
    types::{B256, Header, SealedHeader, U256},
};

/// Ancestors of the checkpoint that the backfill fetches by default. The fork detection data (RSKIP-110) of
/// a block depend on up to 449 of its ancestors.
pub(super) const FORK_WINDOW: u64 = 449;

/// Times and limits of synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncOptions {
    /// Pause between two checks for new blocks, in milliseconds; 0 counts as 1.
    pub poll: u64,
    /// First pause after a failure, in milliseconds; each further consecutive failure doubles it. 0 counts as 1.
    pub retry: u64,
    /// Longest pause after failures, in milliseconds; 0 counts as 1.
    pub longest_retry: u64,
    /// Most headers in one window.
    pub batch: usize,
    /// Ancestors of the checkpoint to fetch; each is verified only by the hash in its child.
    pub backfill: u64,
    /// Replaces the checkpoint's difficulty as the promised work, if set.
    pub promised: Option<U256>,
    /// The share, in percent, of the work promised by the checkpoint's difficulty that every stretch of 2, 6 and 24
    /// hours must show. 0 requires none, but counts as 1 in a start by work; more than 100 counts as 100.
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
    /// Send these requests and [`HeaderSync::feed`] the responses in the same order.
    Fetch(Vec<UpstreamRequest>),
    /// Nothing to do now: call again after this many milliseconds.
    Wait(u64),
}

/// The synchronization machine. It owns the header chain.
#[derive(Debug)]
pub struct HeaderSync {
    pub(super) line: Line,
    pub(super) options: SyncOptions,
    /// Conditions of a start by work; then the line begins at the elected block (genesis before).
    pub(super) work: Option<WorkStart>,
    pub(super) peers: Vec<Peer>,
    pub(super) turns: Turns,
    pub(super) store: Store,
    /// The time that the host passed in last.
    pub(super) now: Now,
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
    Headers(Box<HeaderSync>),
    /// The headers show enough work.
    Judged(Box<HeaderSync>),
}

/// An upstream, with its proposal to start at.
pub(super) type Peer = peer::Peer<StartProposal>;

/// Who fetches many headers, and how long the others are waited for.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) lease: Option<Lease>,
    /// When the first upstream had shown all of its headers, in milliseconds of the monotonic clock. In a start by
    /// work, until a proposal is elected: when the first proposal was judged.
    pub(super) first_end: Option<u64>,
}

/// Exclusive right of one upstream to fetch a chain far ahead of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) holder: usize,
    pub(super) began: u64,
    pub(super) headers: u64,
}

/// Restores headers stored by an earlier run: first some ancestors of the base, then the base, above which all headers
/// are checked. `first`, `next`, `end` are page indexes, `base` and `top` block numbers. See [`HeaderSync::restore_page`].
#[derive(Debug)]
pub struct Restoring {
    /// For a stretch that begins above the checkpoint: the page of the checkpoint, until it is read.
    pub(super) checkpoint_page: Option<u64>,
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

/// What the machine holds of an earlier run.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// The number of the head that was restored.
    pub(super) resumed: Option<u64>,
    /// Headers below those in memory, which are still to be proven.
    pub(super) behind: Option<BackgroundProof>,
}

/// The state of proving the headers below those in memory.
#[derive(Debug)]
pub(super) struct BackgroundProof {
    pub(super) stretch: Restoring,
    /// Work of the headers from the base of the stretch up to the base of the chain.
    pub(super) work: U256,
    /// Work of the uncles of these headers, if all uncles are proven.
    pub(super) uncles: Option<U256>,
}

impl HeaderSync {
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
        // Without a pause, hosts would ask again in a loop.
        let options = SyncOptions {
            poll: options.poll.max(1),
            retry: options.retry.max(1),
            longest_retry: options.longest_retry.max(1),
            work_floor: options.work_floor.min(100),
            ..options
        };
        Self {
            line: Line::new(network, checkpoint, &options),
            options,
            work: None,
            peers: (0..upstreams.max(1)).map(|_| Peer::new()).collect(),
            turns: Turns::default(),
            store: Store::default(),
            now: Now::default(),
        }
    }
}

impl HeaderSync {
    /// A machine that starts by work alone, judged by the rule of [`Network::start_by_work`]. A floor of 0 percent
    /// counts as 1, because without a floor the start would prove nothing.
    pub fn by_work(network: Arc<Network>, work: WorkStart, upstreams: usize, options: SyncOptions) -> Self {
        let (promised, work_floor) = (Some(work.difficulty), options.work_floor.max(1));
        let options = SyncOptions { promised, work_floor, ..options };
        let placeholder = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        Self { work: Some(work), ..Self::with_upstreams(network, placeholder, upstreams, options) }
    }

    /// Whether the start is accepted for its work alone.
    pub fn is_by_work(&self) -> bool {
        self.rule().is_some()
    }
}
