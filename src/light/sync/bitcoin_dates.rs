//! Judges a start by window by the dated work of its headers: the Rootstock work that was done on Bitcoin's newest blocks.

use alloc::string::ToString as _;

use super::{
    state::HeaderSync,
    window_judge::{WindowJudge, WindowVerdict},
};
use crate::{
    consensus::ChainView,
    light::{
        bitcoin::{
            BitcoinFollower, BitcoinJudge, BitcoinReport, BitcoinVerdict, Coinbases, DatedReport,
            DatedSuffix, WeakReason,
        },
        clock::Now,
    },
    types::U256,
};

/// How long a start waits for a source of Bitcoin's chain, in milliseconds. After that it is judged by the network's built-in
/// numbers.
const BITCOIN_PATIENCE: u64 = 10_000;
/// Fewest Bitcoin blocks that the headers of a window must reach back. A forgery that reaches back fewer blocks costs less than the
/// forgery of a start without dated work.
const LEAST_REACH: u32 = 36;
/// Newest Bitcoin blocks whose dated work is compared between two windows: those of half a day. Windows differ in length, so the
/// whole work cannot be compared.
const COMPARED: u32 = 72;

/// Judges windows by the Bitcoin chain that the client follows.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinDates {
    started: Now,
}

impl BitcoinDates {
    /// A judge that waits for Bitcoin's chain for ten seconds from `started` on.
    #[must_use]
    pub const fn since(started: Now) -> Self {
        Self { started }
    }
}

impl WindowJudge for BitcoinDates {
    fn judge(&self, chain: &ChainView, bitcoin: Option<&BitcoinFollower>, now: Now) -> WindowVerdict {
        let may_wait = now.millis < self.started.plus(BITCOIN_PATIENCE);
        let without_bitcoin = if may_wait { WindowVerdict::Wait } else { WindowVerdict::Unavailable };
        let Some((follower, tip)) = bitcoin.and_then(|follower| Some((follower, follower.tip()?))) else {
            return without_bitcoin;
        };
        // Tags and commitments do not decide here, because a start would then fail with sources that offer no coinbases. Answers
        // are marked by them later.
        let (judge, report) = judged(chain, follower, &Coinbases::default(), now);
        match report.verdict {
            // A Bitcoin chain that is still being fetched counts as none.
            BitcoinVerdict::Weak(reason) if reason.is_of_bitcoin() => without_bitcoin,
            _ if report.dated.judged < LEAST_REACH => WindowVerdict::Unavailable,
            BitcoinVerdict::Held
            | BitcoinVerdict::Contested(_)
            | BitcoinVerdict::Weak(
                WeakReason::Tags(_) | WeakReason::AwaitsUncles(_) | WeakReason::FewCommitments(_),
            ) => {
                let compared = |(height, _): &(u32, U256)| height.saturating_add(COMPARED) >= tip.height;
                let works = judge.dated().parents().filter(compared).map(|(_, work)| work);
                WindowVerdict::Enough(works.fold(U256::ZERO, U256::saturating_add))
            }
            BitcoinVerdict::Weak(reason) => WindowVerdict::Refused(reason.to_string()),
            BitcoinVerdict::Unavailable => WindowVerdict::Unavailable,
        }
    }

    fn supports(&self, chain: &ChainView, bitcoin: Option<&BitcoinFollower>, now: Now) -> bool {
        let is_held = |follower: &BitcoinFollower| {
            judged(chain, follower, follower.coinbases(), now).1.verdict == BitcoinVerdict::Held
        };
        bitcoin.is_some_and(is_held)
    }
}

/// Judges the headers above a chain's base.
fn judged(
    chain: &ChainView,
    follower: &BitcoinFollower,
    coinbases: &Coinbases,
    now: Now,
) -> (BitcoinJudge, BitcoinReport) {
    let mut judge = BitcoinJudge::new(chain.base().number.saturating_add(1));
    judge.follow(chain, follower.chain());
    let report = judge.report(chain, follower.chain(), coinbases, now.unix);
    (judge, report)
}

impl HeaderSync {
    /// Whether Bitcoin's blocks support a chain so well that the election need not wait for slow upstreams. A false chain has this
    /// support only if more of Bitcoin's miners name it than the true one.
    pub(super) fn is_supported(&self, chain: &ChainView) -> bool {
        let dated = self.start.rule().and_then(|rule| rule.dated.as_ref());
        dated.is_some_and(|dated| dated.supports(chain, self.bitcoin.as_deref(), self.now))
    }

    /// The dated work of the followed chain, if it started by window; `None` otherwise, or while Bitcoin's chain cannot date it.
    pub(super) fn dated_work(&self) -> Option<DatedReport> {
        self.start.rule()?.dated.as_ref()?;
        let report = self.bitcoin.as_ref()?.report()?;
        let is_dated = !matches!(report.verdict, BitcoinVerdict::Weak(reason) if reason.is_of_bitcoin());
        Some(report.dated).filter(|dated| is_dated && dated.judged >= LEAST_REACH)
    }

    /// The suffix of Bitcoin's chain on which too little of the window's work was done, if no trusted block leads to the window.
    pub fn low_dated_work(&self) -> Option<DatedSuffix> {
        self.untrusted_start()?;
        self.dated_work()?.low()
    }
}
