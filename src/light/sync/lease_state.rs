//! The upstream that fetches headers far ahead, and how long the client waits for the others.

use super::peer::SyncPeer;
use crate::light::clock::Now;

/// Longest turn at fetching many headers, in milliseconds.
const LEASE: u64 = 10_000;

/// Pause of upstreams that wait for their turn, in milliseconds.
pub(super) const LEASE_POLL: u64 = 500;

/// Longest time that the holder of a turn may take for its first headers while others wait, in milliseconds.
const FIRST_GAIN: u64 = 5_000;

/// How long slow upstreams can delay the moment when the client counts as synchronized, in milliseconds.
pub(super) const PATIENCE: u64 = 30_000;

/// How long an upstream that has not shown anything can delay that moment, or any upstream where Bitcoin supports the chain, in
/// milliseconds: honest upstreams that are there answer within it.
pub(super) const SILENCE: u64 = 3_000;

/// Pause between two judgements of proposals while others are awaited, in milliseconds.
const JUDGE_PAUSE: u64 = 1_000;

/// The turns of the upstreams at fetching many headers.
#[derive(Debug, Default)]
pub(super) struct LeaseState {
    pub(super) lease: Option<Lease>,
    /// When a lease last added headers to the chain, in milliseconds of the monotonic clock; 0 before.
    last_gain: u64,
    /// When the first upstream had shown all of its headers, in milliseconds of the monotonic clock. In a start by
    /// work, until a proposal is elected: when the first proposal was judged.
    pub(super) first_end: Option<u64>,
    /// When an upstream had shown all of its headers for the first time, or a proposal was judged: those of the chain before an
    /// election included.
    pub(super) first_shown: Option<u64>,
    /// When proposals are judged again while others are awaited.
    judge_from: u64,
}

/// Exclusive right of one upstream to fetch a chain far ahead of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) holder: usize,
    pub(super) began: u64,
    pub(super) headers: u64,
}

impl Lease {
    pub(super) fn is_over(&self, now: Now) -> bool {
        let longest = if self.headers == 0 { FIRST_GAIN } else { LEASE };
        now.millis > self.began.saturating_add(longest)
    }
}

impl LeaseState {
    /// Counts headers that an upstream added to the chain, if it has the lease.
    pub(super) fn count(&mut self, upstream: usize, gained: u64, now: Now) {
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.holder == upstream) {
            lease.headers = lease.headers.saturating_add(gained);
            self.last_gain = now.millis;
        }
    }

    /// Whether every upstream has shown all of its headers, failed, or taken too long. Where the head is recent, an upstream that has
    /// not stated its height within [`SILENCE`] is not waited for: it could add a few blocks at most. The holder of a lease has time
    /// while it adds headers. Without that condition, upstreams that announce blocks that they do not have could hold the lease one
    /// after the other for ever.
    pub(super) fn all_seen(&mut self, peers: &[SyncPeer], is_recent: bool, now: Now) -> bool {
        if !peers.iter().any(|peer| peer.search.at_end) {
            return false;
        }
        let since = *self.first_end.get_or_insert(now.millis);
        self.note_shown(now);
        let late = now.millis > since.max(self.last_gain).saturating_add(PATIENCE);
        let is_over = |peer: &SyncPeer| {
            peer.search.at_end
                || peer.is_resting()
                || (is_recent && self.is_past_silence(now) && peer.source.announced.is_none())
        };
        late || peers.iter().all(is_over)
    }

    /// Begins anew with another chain. Upstreams that have not shown anything were waited for already.
    pub(super) fn follow_other_chain(&mut self) {
        *self = Self { first_shown: self.first_shown, ..Self::default() };
    }

    /// Notes that an upstream has shown all that it has.
    pub(super) fn note_shown(&mut self, now: Now) {
        self.first_shown.get_or_insert(now.millis);
    }

    /// Whether it is time to look whether a proposal may be elected before the others are there. Judging takes milliseconds, so that
    /// a proposal is not judged with every response of another upstream.
    pub(super) fn may_judge(&mut self, now: Now) -> bool {
        let may = self.is_past_silence(now) && now.millis >= self.judge_from;
        if may {
            self.judge_from = now.millis.saturating_add(JUDGE_PAUSE);
        }
        may
    }

    /// Whether an upstream has shown all that it has, and the others have had time to answer since.
    pub(super) fn is_past_silence(&self, now: Now) -> bool {
        self.first_shown.is_some_and(|since| now.millis >= since.saturating_add(SILENCE))
    }
}
