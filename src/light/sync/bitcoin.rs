//! Judges the followed Rootstock chain by Bitcoin's chain, which the host's Bitcoin sources or the upstreams show.

use alloc::sync::Arc;

use super::state::HeaderSync;
use crate::light::{bitcoin::BitcoinFollower, clock::Now};

impl HeaderSync {
    /// Judges the followed chain from now on by the Bitcoin chain of `follower`, which the host has stored, or which has no block
    /// above the built-in one. The host adds newer headers by [`Self::update_bitcoin`].
    pub fn follow_bitcoin(&mut self, follower: BitcoinFollower) {
        self.store.bitcoin.note(&follower);
        self.bitcoin = Some(Arc::new(follower));
    }

    /// The Bitcoin chain with its newest report; `None` if the client follows no Bitcoin chain.
    pub fn bitcoin(&self) -> Option<&Arc<BitcoinFollower>> {
        self.bitcoin.as_ref()
    }

    /// Changes the Bitcoin chain by `update`, such as with headers from a source, and judges the followed chain again. `None` if the
    /// client follows no Bitcoin chain.
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

    /// Judges the followed chain, if its head was reached once. Before that, its newest blocks are missing, and the verdict would
    /// always be bad.
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
