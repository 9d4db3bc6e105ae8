//! The lease of the upstream that fetches headers far ahead, and how long the client waits for slow upstreams before it counts as
//! synchronized.

use super::peer::SyncPeer;
use crate::light::clock::Now;

/// Longest lease, in milliseconds. After that another upstream may take it.
const LEASE: u64 = 10_000;

/// Pause of upstreams that wait for the lease, in milliseconds.
pub(super) const LEASE_POLL: u64 = 500;

/// Longest lease of an upstream that has added no headers yet, in milliseconds.
const FIRST_GAIN: u64 = 5_000;

/// How long slow upstreams can delay the moment when the client counts as synchronized, in milliseconds.
pub(super) const PATIENCE: u64 = 30_000;

/// How long an upstream that has not responded yet can delay that moment, in milliseconds; if Bitcoin supports the chain, how long any
/// upstream can. Honest upstreams that can be reached respond within this time.
pub(super) const SILENCE: u64 = 3_000;

/// Pause between two judgements of proposals while others are awaited, in milliseconds: each takes some milliseconds.
const JUDGE_PAUSE: u64 = 1_000;

/// The present lease, and the times from which the client waits for slow upstreams.
#[derive(Debug, Default)]
pub(super) struct LeaseState {
    /// The present lease, if an upstream has it.
    pub(super) lease: Option<Lease>,
    /// When a lease last added headers to the chain, in milliseconds of the monotonic clock; 0 before.
    last_gain: u64,
    /// When the first upstream had shown all of its headers, in milliseconds of the monotonic clock. In a start by
    /// work, until a proposal is elected: when the first proposal was judged.
    pub(super) first_end: Option<u64>,
    /// As `first_end`, but a later election does not reset it: when an upstream had shown all of its headers for the first time, or a
    /// proposal was judged.
    pub(super) first_shown: Option<u64>,
    /// When proposals may be judged again while others are awaited, in milliseconds of the monotonic clock.
    judge_from: u64,
}

/// Exclusive right of one upstream to fetch a chain far ahead of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// The number of the upstream.
    pub(super) holder: usize,
    /// When the lease began, in milliseconds of the monotonic clock.
    pub(super) began: u64,
    /// Number of headers that the upstream has added to the chain since.
    pub(super) headers: u64,
}

impl Lease {
    /// Whether another upstream may take the lease.
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

    /// Whether every upstream has shown all of its headers, failed, or taken too long. If the head is recent, an upstream that has
    /// not stated its height within [`SILENCE`] is not awaited: it could add only a few blocks. The holder of a lease is awaited only
    /// while it adds headers. Otherwise upstreams that announce blocks which they do not have could take the lease one after the other
    /// forever.
    pub(super) fn all_seen(&mut self, peers: &[SyncPeer], is_recent: bool, now: Now) -> bool {
        if !peers.iter().any(|peer| peer.search.at_end) {
            return false;
        }
        let since = *self.first_end.get_or_insert(now.millis);
        self.note_shown(now);
        let is_late = now.millis > since.max(self.last_gain).saturating_add(PATIENCE);
        let is_over = |peer: &SyncPeer| {
            peer.search.at_end
                || peer.is_resting()
                || (is_recent && self.is_past_silence(now) && peer.source.announced.is_none())
        };
        is_late || peers.iter().all(is_over)
    }

    /// Begins again with another chain. Upstreams that have not responded are not awaited a second time.
    pub(super) fn follow_other_chain(&mut self) {
        *self = Self { first_shown: self.first_shown, ..Self::default() };
    }

    /// Notes that an upstream has shown all that it has.
    pub(super) fn note_shown(&mut self, now: Now) {
        self.first_shown.get_or_insert(now.millis);
    }

    /// Whether proposals may be judged now, to elect one before the others have arrived. Judging takes milliseconds, so
    /// it is not done with every response of another upstream.
    pub(super) fn may_judge(&mut self, now: Now) -> bool {
        let may = self.is_past_silence(now) && now.millis >= self.judge_from;
        if may {
            self.judge_from = now.millis.saturating_add(JUDGE_PAUSE);
        }
        may
    }

    /// Whether an upstream has shown all that it has, and [`SILENCE`] has passed since.
    pub(super) fn is_past_silence(&self, now: Now) -> bool {
        self.first_shown.is_some_and(|since| now.millis >= since.saturating_add(SILENCE))
    }
}
