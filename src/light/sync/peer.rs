//! The state of one upstream in synchronization: the source that responds, the position of its next headers, and its phase. A window
//! is a header window here (`header_window.rs`).

use alloc::string::String;

use alloy_primitives::B256;

use super::{bitcoin_search::BitcoinSearch, phase::Phase};
use crate::light::{fault::SyncCause, record::UpstreamRecord};

/// Number of blocks by which the first search below an unknown parent goes back: real branches are a few blocks long. Each further
/// search goes back twice as far.
pub(super) const FIRST_REWIND: u64 = 8;

/// After a window that arrives faster than this, in milliseconds, the next windows are larger; after one that takes more than twice as
/// long they are smaller.
const FAST: u64 = 2_000;

/// Smallest window after slow or failed responses, in headers.
const SMALLEST: usize = 8;

/// First pause between two checks for new blocks after a transaction was sent, in milliseconds. Each further pause is twice as
/// long, up to the usual one.
const FIRST_PAUSE: u64 = 50;

/// Headers of the first window: the batch limit of the reference node.
const FIRST_WINDOW: usize = 50;

/// Headers of the first window if one upstream alone is asked for headers: those of more than an hour, so that a restart after a short
/// pause takes one exchange.
const FIRST_ALONE: usize = 200;

/// The kinds of requests that an upstream answers; `None` means not known yet.
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

/// The known properties of the source that responds as an upstream.
#[derive(Debug, Default)]
pub(super) struct SourceState {
    /// The name of the source, if sources replace each other; otherwise the host's name for the upstream counts.
    pub(super) name: Option<String>,
    /// How many sources have been this upstream before the present one.
    pub(super) generation: u64,
    pub(super) record: UpstreamRecord,
    pub(super) can: Capabilities,
    /// Whether the upstream has no method that returns uncles.
    pub(super) no_uncles: bool,
    /// The height that the upstream announced last.
    pub(super) announced: Option<u64>,
}

/// The position in an upstream's chain from which its headers are requested.
#[derive(Debug)]
pub(super) struct HeaderSearch {
    /// The height above which the upstream's next window begins: as a rule that of the newest header accepted from it, on any
    /// branch.
    pub(super) cursor: u64,
    /// The hash of the newest header accepted from the upstream.
    pub(super) newest_hash: Option<B256>,
    /// How many blocks the next search below an unknown parent goes back.
    pub(super) rewind: u64,
    /// Headers per window, once there was a response. The number grows while responses are fast, and shrinks when they are slow or
    /// fail.
    pub(super) window: Option<usize>,
    /// Whether the last response for headers lacked one of the last blocks that the upstream had announced.
    pub(super) missed: bool,
    /// Whether the upstream's last window ended at the end of its chain.
    pub(super) at_end: bool,
}

/// One upstream of the machine.
#[derive(Debug)]
pub(super) struct SyncPeer {
    pub(super) source: SourceState,
    pub(super) search: HeaderSearch,
    pub(super) phase: Phase,
    /// When the present requests were handed out, in milliseconds of the monotonic clock.
    pub(super) asked: u64,
    /// The state of asking the upstream for Bitcoin's chain.
    pub(super) bitcoin: BitcoinSearch,
    /// Whether the upstream announced something new while a response was under way, which may not have it yet.
    pub(super) hinted: bool,
    /// The next pause between two checks for new blocks in milliseconds, while it is shorter than usual.
    pub(super) short_pause: Option<u64>,
}

impl Default for HeaderSearch {
    fn default() -> Self {
        Self {
            cursor: 0,
            newest_hash: None,
            rewind: FIRST_REWIND,
            window: None,
            missed: false,
            at_end: false,
        }
    }
}

impl HeaderSearch {
    /// Resets the search, because another chain is followed. `cursor` is set when the upstream's height arrives; an old `rewind` or
    /// `missed` does little harm: one search may go further back, one block may be requested once less.
    pub(super) fn follow_other_chain(&mut self) {
        (self.newest_hash, self.at_end) = (None, false);
    }

    /// Resets the search, because the chain starts again at its base.
    pub(super) fn restart(&mut self) {
        (self.newest_hash, self.at_end, self.rewind) = (None, false, FIRST_REWIND);
    }

    /// Notes that the upstream may have more headers than it has shown.
    pub(super) fn reopen(&mut self) {
        self.at_end = false;
    }

    /// Sets the size of the next windows, of at most `most` headers. `failed` and `elapsed` say whether the last one failed, and how
    /// many milliseconds it took.
    pub(super) fn resize(&mut self, failed: bool, elapsed: u64, most: usize) {
        let shrinks = failed || elapsed > FAST.saturating_mul(2);
        let window = self.window.unwrap_or(FIRST_WINDOW);
        self.window = Some(match (shrinks, elapsed < FAST) {
            (true, _) => (window / 2).max(SMALLEST),
            (false, true) => window.saturating_add(window / 2).min(most),
            _ => window,
        });
    }

    /// Headers of the next window; `is_alone` says that no other upstream is asked for them now.
    pub(super) fn window_size(&self, is_alone: bool) -> usize {
        self.window.unwrap_or(if is_alone { FIRST_ALONE } else { FIRST_WINDOW })
    }

    /// Whether an upstream that announced this height lacks one of the last blocks below it, and lacked none before. The upstream
    /// may have moved to a heavier branch of fewer blocks since it announced its height, so it is asked for its height
    /// again. `missing` is the first block that its last response lacked, with the cause.
    pub(super) fn newly_lacks_block(&mut self, announced: u64, missing: Option<&(u64, SyncCause)>) -> bool {
        let is_near = |number: &u64| announced.saturating_sub(*number) < FIRST_REWIND;
        let missed = matches!(missing, Some((number, SyncCause::Missing)) if is_near(number));
        !core::mem::replace(&mut self.missed, missed) && missed
    }
}

impl SourceState {
    /// Whether headers are requested in one binary response (`rootlight_getHeaders`): unless the upstream is known not to give it.
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

    /// Makes the upstream due at once, and then after short pauses, unless the pauses are short already.
    pub(super) fn hasten(&mut self) {
        if self.short_pause.is_none() {
            self.short_pause = Some(FIRST_PAUSE);
            self.end_pause();
        }
    }

    /// The pause until the next check for new blocks, in milliseconds; `usual` is the usual one. After a short pause the next one is
    /// twice as long.
    pub(super) fn next_pause(&mut self, usual: u64) -> u64 {
        let pause = self.short_pause.map_or(usual, |short| short.min(usual));
        self.short_pause = Some(pause.saturating_mul(2)).filter(|next| *next < usual);
        pause
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting(..))
    }

    /// Makes the upstream due at once, even if it rests, and asks it again for uncles and Bitcoin's chain.
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
            newest_hash: Some(B256::repeat_byte(1)),
            rewind: 64,
            window: Some(100),
            missed: true,
            at_end: true,
        }
    }

    fn after(change: impl Fn(&mut HeaderSearch)) -> (u64, bool, u64, Option<usize>, bool, bool) {
        let mut search = search();
        change(&mut search);
        (
            search.cursor,
            search.newest_hash.is_some(),
            search.rewind,
            search.window,
            search.missed,
            search.at_end,
        )
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
