//! Dates the work of a start by window by the Bitcoin chain that the sources have shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::U256;
use rootlight::consensus::ChainView;
use rootlight::light::bitcoin::{BitcoinFollower, BitcoinJudge, BitcoinVerdict, Coinbases, WeakReason};
use rootlight::light::{WindowJudge, WindowVerdict};

/// How long a start waits for a source of Bitcoin's chain. Then the network's own numbers judge.
const PATIENCE: Duration = Duration::from_secs(10);

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
        let Some(follower) = follower.filter(|follower| follower.tip().is_some()) else {
            let waits = self.started.elapsed() < PATIENCE;
            return if waits { WindowVerdict::Wait } else { WindowVerdict::Unavailable };
        };
        let mut judge = BitcoinJudge::new(chain.base().number.saturating_add(1));
        judge.follow(chain, follower.chain());
        // Tags and commitments do not decide here: sources that offer no coinbases would stop every start. They mark the answers.
        match judge.report(chain, follower.chain(), &Coinbases::default(), now).verdict {
            BitcoinVerdict::Held
            | BitcoinVerdict::Contested(_)
            | BitcoinVerdict::Weak(
                WeakReason::Tags(_) | WeakReason::AwaitsUncles(_) | WeakReason::FewCommitments(_),
            ) => {
                let sum = |sum: U256, (_, work)| sum.saturating_add(work);
                WindowVerdict::Enough(judge.dated().parents().fold(U256::ZERO, sum))
            }
            BitcoinVerdict::Weak(reason) => WindowVerdict::Refused(reason.to_string()),
            BitcoinVerdict::Unavailable => WindowVerdict::Unavailable,
        }
    }
}
