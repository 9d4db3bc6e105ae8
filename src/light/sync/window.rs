//! A start by window: a start by work whose headers are stored, so that the next run continues from them.
//!
//! No block is trusted. An earlier run leaves two things: its headers, which are proven again, and judged
//! again once upstreams have shown newer ones; and a mark ([`ProvenMark`]). Windows that end before the mark or
//! contradict it are refused.

use alloc::sync::Arc;

use super::{
    judge::{Judge, recent_work},
    options::SyncOptions,
    phase::Phase,
    proposal::ChainStart,
    state::HeaderSync,
    window_judge::{WindowJudge, WindowVerdict},
    window_record::{MARK_DEPTH, ProvenMark, WindowRecord},
};
use crate::consensus::{ChainView, Network, WorkStart};

/// Age of a stored head, in seconds, above which the stored headers are not used: two days. A new window has fewer headers than such a
/// gap.
pub(super) const LONGEST_PAUSE: u64 = 172_800;

/// The mark of a chain, with the work of its newest `headers`.
fn mark_of(view: &ChainView, headers: u64) -> Option<ProvenMark> {
    let number = view.head().number.saturating_sub(MARK_DEPTH).max(view.base().number);
    let (hash, time) = (view.hash_at(number)?, view.head().timestamp);
    Some(ProvenMark { number, hash, time, work: recent_work(view, headers)? })
}

impl HeaderSync {
    /// A machine that starts by window. It differs from [`Self::by_work`] in three points: its headers can be stored; if
    /// [`Self::judge_windows_by`] is called, it needs fewer headers before the first answer; and it requests uncles only after the
    /// head was reached.
    pub fn by_window(network: Arc<Network>, work: WorkStart, upstreams: usize, options: SyncOptions) -> Self {
        let mut sync = Self::by_work(network, work, upstreams, options);
        if let ChainStart::Elected { rule, .. } = &mut sync.start {
            rule.is_window = true;
        }
        sync.followed.headers_first = true;
        sync
    }

    /// Judges windows by dated work from now on. To be called before any other method. Does nothing in other starts.
    pub fn judge_windows_by(&mut self, dated: Arc<dyn WindowJudge>) {
        if let ChainStart::Elected { rule, .. } = &mut self.start {
            rule.dated = Some(dated).filter(|_| rule.is_window);
        }
    }

    /// Whether the machine starts by window.
    pub fn is_by_window(&self) -> bool {
        self.start.rule().is_some_and(|rule| rule.is_window)
    }

    /// Takes over the record of an earlier run, before its pages are restored. Returns whether to restore the pages, which must not
    /// end too long ago. `now` is the wall clock in seconds since 1970.
    pub fn resume_window(&mut self, record: &WindowRecord, now: u64) -> bool {
        let ChainStart::Elected { rule, .. } = &mut self.start else { return false };
        if !rule.is_window {
            return false;
        }
        rule.mark = Some(record.mark);
        let is_recent = now.saturating_sub(record.mark.time) <= LONGEST_PAUSE;
        self.store.record = Some(*record).filter(|_| is_recent);
        is_recent
    }

    /// The record that the host stores with the pages of [`Self::export`]; `None` before a window is proven.
    pub fn window_record(&self) -> Option<WindowRecord> {
        let rule = self.start.rule().filter(|rule| rule.is_window)?;
        let view = self.followed.chain.as_ref().filter(|_| self.is_proven())?.view();
        let own = mark_of(view, rule.short_window())?;
        // The mark with the newer head stays.
        let mark = rule.mark.filter(|earlier| earlier.time > own.time).unwrap_or(own);
        Some(WindowRecord { base: self.followed.checkpoint, lowest: view.lowest(), mark })
    }

    /// Whether the chain lacks the block of an earlier run's mark, so that it is not shown to continue the chain of that run.
    pub fn is_separate(&self) -> bool {
        let mark = self.start.rule().and_then(|rule| rule.mark);
        let has = |view: &ChainView, mark: ProvenMark| view.is_canonical(mark.number, &mark.hash);
        mark.is_some_and(|mark| !self.chain().is_some_and(|chain| has(chain.view(), mark)))
    }

    /// Notes whether `trusted`, a chain that starts at a trusted block and from which answers may be given, contains the window's
    /// base. If it does, the window counts as started at that block. Returns whether it does.
    pub fn confirm_window(&mut self, trusted: &ChainView) -> bool {
        let base = self.followed.checkpoint;
        // The work of the base is known once the headers of an earlier run are proven down to the trusted block.
        let is_proven = trusted.unproven().is_none() && trusted.base().work.is_some();
        let is_linked = is_proven && self.is_synced() && trusted.is_canonical(base.number, &base.hash);
        if is_linked {
            self.store.linked = Some(base.hash);
        }
        is_linked
    }

    /// Whether answers are given from the chain.
    fn is_proven(&self) -> bool {
        self.followed.synced_once
            && !self.store.on_probation
            && self.low_work().is_none()
            && self.low_dated_work().is_none()
    }

    /// Judges restored headers, once upstreams have shown the newer ones. If they are refused, a new window is elected.
    pub(super) fn judge_restored(&mut self) {
        if !self.store.on_probation || !self.followed.synced_once {
            return;
        }
        let Some(rule) = self.start.rule() else { return };
        let bitcoin = self.bitcoin.as_deref();
        let judge = Judge { rule, undated: false, restored: true, bitcoin, now: self.now };
        match judge.restored_verdict(&self.followed, self.options.work_floor) {
            WindowVerdict::Enough(_) => self.store.on_probation = false,
            WindowVerdict::Wait => self.followed.synced_once = false,
            WindowVerdict::Refused(_) | WindowVerdict::Unavailable => self.start_again(),
        }
    }

    /// Drops the restored headers, and the requests in progress, which belong to them.
    pub(super) fn start_again(&mut self) {
        self.forget();
        (self.followed.synced_once, self.store.resumed) = (false, None);
        self.leases = Default::default();
        for peer in &mut self.peers {
            peer.search.restart();
            if !peer.is_resting() {
                peer.phase = Phase::Idle(0);
            }
        }
    }
}
