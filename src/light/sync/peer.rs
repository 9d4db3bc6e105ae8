//! The state of one upstream in synchronization.

use alloc::string::String;

use alloy_primitives::B256;

use super::{bitcoin_search::BitcoinSearch, phase::Phase};
use crate::light::{fault::SyncCause, record::UpstreamRecord};

/// Number of blocks that the first search below an unknown parent goes back; each further search goes back twice as
/// far.
pub(super) const FIRST_REWIND: u64 = 8;

/// Windows that arrive faster than this, in milliseconds, grow; those that take more than twice as long shrink.
const FAST: u64 = 2_000;

/// Smallest window after shrinking, in headers.
const SMALLEST: usize = 8;

/// First pause between two checks for new blocks after a transaction was sent, in milliseconds. Each further pause is twice as
/// long, up to the usual one.
const FIRST_PAUSE: u64 = 50;

/// Headers of the first window: the batch limit of the reference node.
const FIRST_WINDOW: usize = 50;

/// The same where one upstream alone is asked for headers: those of more than an hour, so that a restart gets them in one exchange.
const FIRST_ALONE: usize = 200;

/// The known offer of an upstream; `None` means not known yet.
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

/// The known properties of the source that answers as an upstream.
#[derive(Debug, Default)]
pub(super) struct SourceState {
    /// The source that answers, if one source replaces another; else the host's name for the upstream counts.
    pub(super) name: Option<String>,
    /// How many sources have answered before this one.
    pub(super) turn: u64,
    pub(super) record: UpstreamRecord,
    pub(super) can: Capabilities,
    /// The upstream has no method that returns uncles.
    pub(super) no_uncles: bool,
    /// The height that the upstream announced last.
    pub(super) announced: Option<u64>,
}

/// Where the headers of an upstream are looked for.
#[derive(Debug)]
pub(super) struct HeaderSearch {
    /// The height above which its next window begins: as a rule that of the newest header accepted from it, on any
    /// branch.
    pub(super) cursor: u64,
    /// The hash of the newest header accepted from it.
    pub(super) at: Option<B256>,
    /// How far the next search below an unknown parent goes back.
    pub(super) rewind: u64,
    /// Headers per window, once there was a response. Grows while responses are fast, shrinks when they are slow or fail.
    pub(super) window: Option<usize>,
    /// Whether it lacked one of the last blocks that it had announced when it was last asked for headers.
    pub(super) missed: bool,
    /// Whether all of its headers were seen at its last turn.
    pub(super) at_end: bool,
}

/// An upstream as synchronization sees it.
#[derive(Debug)]
pub(super) struct SyncPeer {
    pub(super) source: SourceState,
    pub(super) search: HeaderSearch,
    pub(super) phase: Phase,
    /// When its requests were handed out, on the monotonic clock.
    pub(super) asked: u64,
    /// How it is asked for Bitcoin's chain.
    pub(super) bitcoin: BitcoinSearch,
    /// Whether it announced something new while a response was under way, which may not know it yet.
    pub(super) hinted: bool,
    /// The next pause between two checks for new blocks in milliseconds, while it is shorter than usual.
    pub(super) short_pause: Option<u64>,
}

impl Default for HeaderSearch {
    fn default() -> Self {
        Self { cursor: 0, at: None, rewind: FIRST_REWIND, window: None, missed: false, at_end: false }
    }
}

impl HeaderSearch {
    /// Another chain is followed. `cursor` is set when the upstream's height arrives; `rewind` and `missed` affect
    /// only how it is asked next: one search may go further back, one block may be asked for once less.
    pub(super) fn follow_other_chain(&mut self) {
        (self.at, self.at_end) = (None, false);
    }

    /// The chain starts again at its base, and the state of the search belongs to the old one.
    pub(super) fn restart(&mut self) {
        (self.at, self.at_end, self.rewind) = (None, false, FIRST_REWIND);
    }

    /// The upstream may have more headers than it was seen to have.
    pub(super) fn reopen(&mut self) {
        self.at_end = false;
    }

    /// Sets the size of the next windows by how long one took, in milliseconds. None has more than `most` headers.
    pub(super) fn resize(&mut self, failed: bool, elapsed: u64, most: usize) {
        let shrink = failed || elapsed > FAST.saturating_mul(2);
        let window = self.window.unwrap_or(FIRST_WINDOW);
        self.window = Some(match (shrink, elapsed < FAST) {
            (true, _) => (window / 2).max(SMALLEST),
            (false, true) => window.saturating_add(window / 2).min(most),
            _ => window,
        });
    }

    /// Headers of the next window; `is_alone` says that no other upstream is asked for them now.
    pub(super) fn window_size(&self, is_alone: bool) -> usize {
        self.window.unwrap_or(if is_alone { FIRST_ALONE } else { FIRST_WINDOW })
    }

    /// Whether an upstream that announced this height lacks one of the last blocks below it, and lacked none before. It
    /// may have moved to a heavier branch of fewer blocks since it announced its height, so it is asked for its height
    /// again.
    pub(super) fn newly_lacks_block(&mut self, announced: u64, missing: Option<&(u64, SyncCause)>) -> bool {
        let near = |number: &u64| announced.saturating_sub(*number) < FIRST_REWIND;
        let missed = matches!(missing, Some((number, SyncCause::Missing)) if near(number));
        !core::mem::replace(&mut self.missed, missed) && missed
    }
}

impl SourceState {
    /// Whether it is worth asking for headers in one binary response.
    pub(super) fn may_give_binary(&self) -> bool {
        self.can.headers != Some(false)
    }
}

impl Default for SyncPeer {
    fn default() -> Self {
        Self {
            source: SourceState::default(),
            search: HeaderSearch::default(),
            phase: Phase::Idle(0),
            asked: 0,
            bitcoin: BitcoinSearch::default(),
            hinted: false,
            short_pause: None,
        }
    }
}

impl SyncPeer {
    /// Ends a pause between two checks for new blocks.
    pub(super) fn end_pause(&mut self) {
        if let Phase::Idle(due) = &mut self.phase {
            *due = 0;
        }
    }

    /// Makes it due at once, and then after short pauses, unless the pauses are short already.
    pub(super) fn hasten(&mut self) {
        if self.short_pause.is_none() {
            self.short_pause = Some(FIRST_PAUSE);
            self.end_pause();
        }
    }

    /// The pause until the next check for new blocks, where `usual` is the usual one, in milliseconds.
    pub(super) fn next_pause(&mut self, usual: u64) -> u64 {
        let pause = self.short_pause.map_or(usual, |short| short.min(usual));
        self.short_pause = Some(pause.saturating_mul(2)).filter(|next| *next < usual);
        pause
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting(..))
    }

    /// Makes it due at once, for all that it may have.
    pub(super) fn poll(&mut self) {
        if let Phase::Idle(due) | Phase::Resting(due, _) = &mut self.phase {
            *due = 0;
        }
        self.source.no_uncles = false;
        self.bitcoin.hasten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search in the middle of everything.
    fn search() -> HeaderSearch {
        HeaderSearch {
            cursor: 9,
            at: Some(B256::repeat_byte(1)),
            rewind: 64,
            window: Some(100),
            missed: true,
            at_end: true,
        }
    }

    fn after(change: impl Fn(&mut HeaderSearch)) -> (u64, bool, u64, Option<usize>, bool, bool) {
        let mut search = search();
        change(&mut search);
        (search.cursor, search.at.is_some(), search.rewind, search.window, search.missed, search.at_end)
    }

    #[test]
    fn a_search_on_another_chain_keeps_how_the_upstream_is_asked() {
        assert_eq!(after(HeaderSearch::follow_other_chain), (9, false, 64, Some(100), true, false));
    }

    #[test]
    fn a_search_from_the_base_again_goes_back_by_few_blocks_first() {
        assert_eq!(after(HeaderSearch::restart), (9, false, 8, Some(100), true, false));
    }

    #[test]
    fn a_search_that_is_reopened_goes_on_from_where_it_was() {
        assert_eq!(after(HeaderSearch::reopen), (9, true, 64, Some(100), true, false));
    }
}
