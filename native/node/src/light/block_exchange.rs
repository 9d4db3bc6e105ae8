//! Exchange of verified blocks between the light clients of one service (front ends), as texts that the host passes on. The receiver
//! checks everything again; it only saves the requests to upstreams.

use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::consensus::ChainError;
use rootlight::light::{BatchError, HeaderSync, Now, decode_headers, encode_headers};
use rootlight::rpc::{LockKind, SharedClient};
use thiserror::Error;

use super::contents::{ContentsError, take_contents};
use super::shared_light::SharedLight;

/// Most headers of one text.
pub const MAX_EXCHANGED_HEADERS: usize = 16;

/// Why a header of another client is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The text is not a batch of headers of this version.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The chain refuses a header. With an unknown parent the upstreams must be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The head was not reached yet, so there is nothing that a header could continue.
    #[error("the head has not been reached yet")]
    NotSynced,
}

/// Exports verified blocks for another light client, and takes those of others. Everything that is taken is checked as if an upstream
/// had sent it. The checks take up to some milliseconds, so they belong on a thread for blocking work.
#[derive(Clone)]
pub struct BlockExchange(pub(super) Arc<SharedLight>);

impl std::fmt::Debug for BlockExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockExchange").finish_non_exhaustive()
    }
}

impl BlockExchange {
    /// The headers of these blocks with their uncles, oldest first, as a text for [`Self::take_headers`]. Blocks that are
    /// not known any more are left out.
    pub fn headers(&self, blocks: &[B256]) -> String {
        headers(&self.0.client.sync(), blocks)
    }

    /// Takes headers, with those of their uncles that the text has. Returns whether nothing is missing; otherwise the upstreams are
    /// to be asked.
    ///
    /// # Errors
    /// Why a header is not taken; the headers before it are taken.
    pub fn take_headers(&self, text: &str) -> Result<bool, ExchangeError> {
        let taken = take_headers(&self.0.client, text, self.0.now());
        self.0.changed();
        taken
    }

    /// Takes the transactions and receipts of a verified block, as [`super::LightService::fetch_contents`] gives them.
    ///
    /// # Errors
    /// [`ContentsError`]; nothing is taken.
    pub fn take_contents(&self, block: &B256, contents: &[u8]) -> Result<(), ContentsError> {
        take_contents(&self.0.client, block, contents)
    }
}

fn headers(sync: &HeaderSync, blocks: &[B256]) -> String {
    let view = sync.chain().map(|chain| chain.view());
    let known = |hash: &B256| {
        let view = view?;
        Some((view.by_hash(hash)?.header(), view.uncles(hash).map(|uncles| uncles.headers())))
    };
    encode_headers(blocks.iter().filter_map(known))
}

fn take_headers<S: LockKind>(client: &SharedClient<S>, text: &str, now: Now) -> Result<bool, ExchangeError> {
    let network = client.sync().network().clone();
    let headers = decode_headers(text, MAX_EXCHANGED_HEADERS, &network)?;
    Ok(client.take_headers(headers, now).ok_or(ExchangeError::NotSynced)??)
}

#[cfg(test)]
#[path = "block_exchange_test.rs"]
mod tests;
