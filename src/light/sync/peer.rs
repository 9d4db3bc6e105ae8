//! One upstream's machine.

use alloc::vec::Vec;

use alloy_primitives::B256;

use crate::light::{
    fault::SyncFault, header_window::HeaderWindow, record::Record, task::Task, upstream::UpstreamCall,
};

/// How far a first look below an unknown parent goes, in blocks; each further look goes twice as far.
pub(super) const FIRST_REWIND: u64 = 8;

/// Headers of the first window: the reference's own batch limit.
pub const DEFAULT_BATCH: usize = 50;

/// What an upstream was found to offer; `None` is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `rootlight_getHeaders`.
    pub headers: Option<bool>,
    /// Proofs of present state.
    pub proofs: Option<bool>,
    /// Proofs of absence.
    pub absence: Option<bool>,
    /// The oldest block whose state was proven by it.
    pub oldest_state: Option<u64>,
    /// Witnesses of calls: `rootlight_getWitness`.
    pub witness: Option<bool>,
}

/// An upstream as synchronization sees it; `C` is what it proposes to start at.
#[derive(Debug)]
pub(super) struct Peer<C> {
    pub(super) phase: Phase,
    pub(super) record: Record,
    pub(super) can: Capabilities,
    /// It has no method for uncles by themselves.
    pub(super) no_uncles: bool,
    /// The height it announced last.
    pub(super) announced: Option<u64>,
    /// Whether all it has was seen at its last turn.
    pub(super) at_end: bool,
    /// Whether it lacked one of the last blocks that it had announced, when it was last asked for headers.
    pub(super) missed: bool,
    /// The newest header taken from it, on whichever branch.
    pub(super) cursor: u64,
    /// The hash of that header.
    pub(super) at: Option<B256>,
    pub(super) rewind: u64,
    /// Headers per window: grows while answers come fast, shrinks when they fail.
    pub(super) window: usize,
    /// What it proposes to start at, in a start by work.
    pub(super) candidate: C,
    /// When its proposal came further, on the clock for pauses.
    pub(super) moved: u64,
    /// Its headers do not link to the block that was started at: it follows another chain.
    pub(super) apart: bool,
    /// When its questions were handed out, on the clock for pauses.
    pub(super) asked: u64,
}

/// Where a machine stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing to do until then.
    Idle(u64),
    /// Ask for the upstream's height.
    Height,
    /// Ask for what a start by work needs.
    Propose,
    /// Headers, uncles of earlier blocks, or both.
    Work(Work),
    /// It failed: left alone until then.
    Resting(u64, SyncFault),
}

/// What is being fetched.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) window: Option<(Goal, HeaderWindow)>,
    pub(super) uncles: Vec<Task>,
}

/// What headers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The checkpoint's own header.
    Base,
    /// Ancestors of the checkpoint, by hash links.
    Below,
    /// The chain above.
    Above,
}

impl<C: Default> Peer<C> {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Idle(0),
            record: Record::default(),
            can: Capabilities::default(),
            no_uncles: false,
            announced: None,
            at_end: false,
            missed: false,
            cursor: 0,
            at: None,
            rewind: FIRST_REWIND,
            window: DEFAULT_BATCH,
            candidate: C::default(),
            moved: 0,
            apart: false,
            asked: 0,
        }
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting(..))
    }
}

impl Work {
    pub(super) fn headers(goal: Goal, window: HeaderWindow) -> Phase {
        Phase::Work(Self { window: Some((goal, window)), uncles: Vec::new() })
    }

    pub(super) fn questions(&self) -> Vec<UpstreamCall> {
        let mut calls = self.window.as_ref().map_or_else(Vec::new, |(_, window)| window.questions());
        let open = self.uncles.iter().filter(|task| !task.is_complete());
        calls.extend(open.flat_map(|task| task.calls().iter().cloned()));
        calls
    }
}
