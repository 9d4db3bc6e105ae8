//! The judgement of Bitcoin on the chain that is followed.

use alloc::sync::Arc;

use super::state::HeaderSync;
use crate::light::{bitcoin::BitcoinFollower, clock::Now};

impl HeaderSync {
    /// Judges the followed chain by a Bitcoin chain from now on, which the host has stored, or which has no block above the
    /// built-in one. The host feeds it by [`Self::update_bitcoin`].
    pub fn follow_bitcoin(&mut self, follower: BitcoinFollower) {
        self.store.bitcoin.note(&follower);
        self.bitcoin = Some(Arc::new(follower));
    }

    /// Bitcoin's verdict on the chain; `None` if the host follows no Bitcoin chain.
    pub fn bitcoin(&self) -> Option<&Arc<BitcoinFollower>> {
        self.bitcoin.as_ref()
    }

    /// Passes in what a source shows, by `update`, and judges the chain again. `None` if the host follows no Bitcoin chain.
    pub fn update_bitcoin<T>(
        &mut self,
        update: impl FnOnce(&mut BitcoinFollower) -> T,
        now: Now,
    ) -> Option<T> {
        self.now = now;
        let updated = update(Arc::make_mut(self.bitcoin.as_mut()?));
        self.judge_by_bitcoin();
        Some(updated)
    }

    /// Judges the followed chain, once its head was reached: before, it is known to be behind.
    pub(super) fn judge_by_bitcoin(&mut self) {
        let Some(chain) = self.followed.chain.as_ref().filter(|_| self.followed.synced_once) else { return };
        let Some(follower) =
            self.bitcoin.as_mut().filter(|follower| follower.is_due(chain.view(), self.now.unix))
        else {
            return;
        };
        Arc::make_mut(follower).follow(chain.view(), self.now.unix);
    }
}
