//! Dates the work of a start by window by the Bitcoin chain that the sources have shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::U256;
use rootlight::consensus::ChainView;
use rootlight::light::bitcoin::{BitcoinFollower, BitcoinJudge, BitcoinVerdict, Coinbases, WeakReason};
use rootlight::light::{WindowJudge, WindowVerdict};

/// How long a start waits for a source of Bitcoin's chain. Then the network's own numbers judge.
const PATIENCE: Duration = Duration::from_secs(10);
/// Fewest Bitcoin blocks that the headers of a window must reach back. A forgery that reaches back fewer costs less than the
/// undated start.
const LEAST_REACH: u32 = 36;
/// Newest Bitcoin blocks whose dated work is compared between windows, which may have any length: half a day.
const COMPARED: u32 = 72;

/// The Bitcoin chain as of the last look at a source.
#[derive(Debug)]
pub(super) struct BitcoinDates {
    started: Instant,
    newest: Mutex<Option<Arc<BitcoinFollower>>>,
}

impl Default for BitcoinDates {
    fn default() -> Self {
        Self { started: Instant::now(), newest: Mutex::new(None) }
    }
}

impl BitcoinDates {
    pub(super) fn learn(&self, follower: Option<Arc<BitcoinFollower>>) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = follower;
    }
}

impl WindowJudge for BitcoinDates {
    fn judge(&self, chain: &ChainView, now: u64) -> WindowVerdict {
        let follower = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A Bitcoin chain that is still being fetched is as good as none.
        let none = || {
            let waits = self.started.elapsed() < PATIENCE;
            if waits { WindowVerdict::Wait } else { WindowVerdict::Unavailable }
        };
        let Some((follower, tip)) = follower.and_then(|follower| follower.tip().map(|tip| (follower, tip)))
        else {
            return none();
        };
        let mut judge = BitcoinJudge::new(chain.base().number.saturating_add(1));
        judge.follow(chain, follower.chain());
        // Tags and commitments do not decide here: sources that offer no coinbases would stop every start. They mark the answers.
        let report = judge.report(chain, follower.chain(), &Coinbases::default(), now);
        match report.verdict {
            BitcoinVerdict::Weak(WeakReason::OldTip(_)) => none(),
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
}
