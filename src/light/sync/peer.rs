//! The state of one upstream in synchronization.

use alloc::{string::String, vec::Vec};

use alloy_primitives::B256;

use crate::light::{
    fault::SyncFault, header_window::HeaderWindow, record::Record, upstream::UpstreamRequest,
    upstream_fetch::UpstreamFetch,
};

/// Number of blocks that the first search below an unknown parent goes back; each further search goes back twice as
/// far.
pub(super) const FIRST_REWIND: u64 = 8;

/// Headers of the first window: the batch limit of the reference node.
pub const DEFAULT_BATCH: usize = 50;

/// What an upstream is known to offer; `None` means not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `rootlight_getHeaders`.
    pub headers: Option<bool>,
    /// Proofs of present state.
    pub proofs: Option<bool>,
    /// Proofs of absence.
    pub absence: Option<bool>,
    /// The oldest block whose state the upstream has proven.
    pub oldest_state: Option<u64>,
    /// Witnesses of calls: `rootlight_getWitness`.
    pub witness: Option<bool>,
}

/// What is known of whoever answers as an upstream.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Who answers, if one source takes the place of another; else the host's name for the upstream counts.
    pub(super) name: Option<String>,
    /// How many sources have answered before this one.
    pub(super) turn: u64,
    pub(super) record: Record,
    pub(super) can: Capabilities,
    /// The upstream has no method that returns uncles.
    pub(super) no_uncles: bool,
    /// The height that the upstream announced last.
    pub(super) announced: Option<u64>,
}

/// Where the headers of an upstream are looked for.
#[derive(Debug)]
pub(super) struct Search {
    /// The height above which its next window begins: as a rule that of the newest header accepted from it, on any
    /// branch.
    pub(super) cursor: u64,
    /// The hash of the newest header accepted from it.
    pub(super) at: Option<B256>,
    /// How far the next search below an unknown parent goes back.
    pub(super) rewind: u64,
    /// Headers per window. Grows while responses are fast, shrinks when they are slow or fail.
    pub(super) window: usize,
    /// Whether it lacked one of the last blocks that it had announced when it was last asked for headers.
    pub(super) missed: bool,
    /// Whether all of its headers were seen at its last turn.
    pub(super) at_end: bool,
}

/// An upstream as synchronization sees it. `C` is the type of its proposal to start at.
#[derive(Debug)]
pub(super) struct Peer<C> {
    pub(super) source: Source,
    pub(super) search: Search,
    pub(super) phase: Phase,
    /// The block at which it proposes to start, in a start by work.
    pub(super) proposal: C,
    /// When its proposal last made progress, on the monotonic clock.
    pub(super) moved: u64,
    /// Whether its headers do not link to the block that the chain starts at: it follows another chain.
    pub(super) apart: bool,
    /// When its requests were handed out, on the monotonic clock.
    pub(super) asked: u64,
    /// Whether it announced something new while a response was under way, which may not know it yet.
    pub(super) hinted: bool,
}

/// The phase of an upstream's machine. Times are on the monotonic clock, in milliseconds.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing to do until this time.
    Idle(u64),
    /// Ask for the upstream's height.
    Height,
    /// Ask for its proposal in a start by work.
    Propose,
    /// Fetch headers, uncles of earlier blocks, or both.
    Work(Work),
    /// The upstream failed with this fault, and is left alone until this time.
    Resting(u64, SyncFault),
}

/// The headers and uncles that are being fetched.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) window: Option<(Goal, HeaderWindow)>,
    pub(super) uncles: Vec<UpstreamFetch>,
}

/// The purpose of a window of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The checkpoint's own header.
    Base,
    /// Backfill: ancestors of the checkpoint, by hash links.
    Backfill,
    /// The chain above the checkpoint.
    Above,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            cursor: 0,
            at: None,
            rewind: FIRST_REWIND,
            window: DEFAULT_BATCH,
            missed: false,
            at_end: false,
        }
    }
}

impl Search {
    /// Another chain is followed. `cursor` is set when the upstream's height arrives; `rewind` and `missed` affect
    /// only how it is asked next: one search may go further back, one block may be asked for once less.
    pub(super) fn on_other_chain(&mut self) {
        (self.at, self.at_end) = (None, false);
    }

    /// The chain starts again at its base, and the state of the search belongs to the old one.
    pub(super) fn again(&mut self) {
        (self.at, self.at_end, self.rewind) = (None, false, FIRST_REWIND);
    }

    /// The upstream may have more headers than it was seen to have.
    pub(super) fn reopen(&mut self) {
        self.at_end = false;
    }
}

impl<C: Default> Peer<C> {
    pub(super) fn new() -> Self {
        Self {
            source: Source::default(),
            search: Search::default(),
            phase: Phase::Idle(0),
            proposal: C::default(),
            moved: 0,
            apart: false,
            asked: 0,
            hinted: false,
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

    pub(super) fn requests(&self) -> Vec<UpstreamRequest> {
        let mut requests = self.window.as_ref().map_or_else(Vec::new, |(_, window)| window.requests());
        let open = self.uncles.iter().filter(|fetch| !fetch.is_complete());
        requests.extend(open.flat_map(|fetch| fetch.requests().iter().cloned()));
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search in the middle of everything.
    fn search() -> Search {
        Search {
            cursor: 9,
            at: Some(B256::repeat_byte(1)),
            rewind: 64,
            window: 100,
            missed: true,
            at_end: true,
        }
    }

    fn after(change: impl Fn(&mut Search)) -> (u64, bool, u64, usize, bool, bool) {
        let mut search = search();
        change(&mut search);
        (search.cursor, search.at.is_some(), search.rewind, search.window, search.missed, search.at_end)
    }

    #[test]
    fn a_search_on_another_chain_keeps_how_the_upstream_is_asked() {
        assert_eq!(after(Search::on_other_chain), (9, false, 64, 100, true, false));
    }

    #[test]
    fn a_search_from_the_base_again_goes_back_by_few_blocks_first() {
        assert_eq!(after(Search::again), (9, false, 8, 100, true, false));
    }

    #[test]
    fn a_search_that_is_reopened_goes_on_from_where_it_was() {
        assert_eq!(after(Search::reopen), (9, true, 64, 100, true, false));
    }
}
