//! Blocks that the light clients of one service tell each other of.

use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::light::ToldError;
use rootlight::rpc::ContentsError;

use super::shared::Shared;
use super::sync;

/// Tells another light client of verified blocks, and takes what others tell. Everything is checked as if an upstream had
/// sent it; only nobody has to be asked. The checks take up to some milliseconds, so they belong on a thread for
/// blocking work.
#[derive(Clone)]
pub struct ToldBlocks(pub(super) Arc<Shared>);

impl std::fmt::Debug for ToldBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToldBlocks").finish_non_exhaustive()
    }
}

impl ToldBlocks {
    /// The headers of these blocks with their uncles, oldest first, as a text for [`Self::take_headers`].
    #[must_use]
    pub fn headers(&self, blocks: &[B256]) -> String {
        self.0.client.tell_headers(blocks)
    }

    /// Takes headers. Returns whether nothing is missing; otherwise the upstreams are to be asked.
    ///
    /// # Errors
    /// Why a header is not taken; those before it are.
    pub fn take_headers(&self, text: &str) -> Result<bool, ToldError> {
        let taken = self.0.client.take_headers(text, sync::now());
        self.0.changed();
        taken
    }

    /// Takes the transactions and receipts of a verified block, as [`super::LightService::fetch_contents`] gives them.
    ///
    /// # Errors
    /// [`ContentsError`]; nothing is taken.
    pub fn take_contents(&self, block: &B256, contents: &[u8]) -> Result<(), ContentsError> {
        self.0.client.take_contents(block, contents)
    }
}
