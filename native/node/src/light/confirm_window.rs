//! Proves, in the background of a client that started by window, that a trusted block leads to the window (the flag `--backfill`; the
//! glossary's backfill, the headers just below a checkpoint, is something else).
//!
//! A second client follows the same upstreams from the trusted block on, by every rule. When its chain contains the lowest block of
//! the window, answers of the first client rest on the trusted block.

use std::time::Duration;

use tracing::info;

use super::service::LightService;

/// Pause between two checks of the second client's chain.
const PAUSE: Duration = Duration::from_millis(500);

impl LightService {
    /// Waits until the chain of `trusted`, which starts at a trusted block, contains the base of this client's window.
    pub async fn confirm_window(&self, trusted: &Self) {
        while !self.try_link(trusted) {
            tokio::time::sleep(PAUSE).await;
        }
        info!("a trusted block leads to this window: answers rest on it");
    }

    /// Whether the second client's chain contains the base now.
    fn try_link(&self, trusted: &Self) -> bool {
        let chain = trusted.trusted_chain();
        chain.is_some_and(|chain| self.shared.client.sync_mut().confirm_window(&chain))
    }
}
