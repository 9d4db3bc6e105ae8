//! Dates the work of a start by window by Bitcoin's chain.

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

/// How long a start waits for a source of Bitcoin's chain, in milliseconds. Then the network's own numbers judge.
const PATIENCE: u64 = 10_000;
/// Fewest Bitcoin blocks that the headers of a window must reach back. A forgery that reaches back fewer costs less than the
/// undated start.
const LEAST_REACH: u32 = 36;
/// Newest Bitcoin blocks whose dated work is compared between windows, which may have any length: half a day.
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
        // A Bitcoin chain that is still being fetched is as good as none.
        let waits = now.millis < self.started.plus(PATIENCE);
        let none = if waits { WindowVerdict::Wait } else { WindowVerdict::Unavailable };
        let Some((follower, tip)) = bitcoin.and_then(|follower| Some((follower, follower.tip()?))) else {
            return none;
        };
        // Tags and commitments do not decide here: sources that offer no coinbases would stop every start. They mark the answers.
        let (judge, report) = judged(chain, follower, &Coinbases::default(), now);
        match report.verdict {
            BitcoinVerdict::Weak(reason) if reason.is_of_bitcoin() => none,
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
    /// Whether Bitcoin's blocks support a chain that is elected, so that upstreams which are slow are not waited for. A false
    /// chain is held only if more of Bitcoin's miners name it than the true one.
    pub(super) fn is_supported(&self, chain: &ChainView) -> bool {
        let dated = self.start.rule().and_then(|rule| rule.dated.as_ref());
        dated.is_some_and(|dated| dated.supports(chain, self.bitcoin.as_deref(), self.now))
    }

    /// The dated work of the window that is followed; `None` without one, or while Bitcoin's chain does not date it.
    pub(super) fn dated_work(&self) -> Option<DatedReport> {
        self.start.rule()?.dated.as_ref()?;
        let report = self.bitcoin.as_ref()?.report()?;
        let is_known = !matches!(report.verdict, BitcoinVerdict::Weak(reason) if reason.is_of_bitcoin());
        Some(report.dated).filter(|dated| is_known && dated.judged >= LEAST_REACH)
    }

    /// Newest Bitcoin blocks on which too little of the window's work was done, if no trusted block leads to it.
    pub fn low_dated_work(&self) -> Option<DatedSuffix> {
        self.untrusted_start()?;
        self.dated_work()?.low()
    }
}
