//! Headers that another host of the same service has verified and tells this one of. They are checked here as well: being
//! told saves the requests to the upstreams, and nothing else.

use alloc::{string::String, sync::Arc, vec::Vec};

use thiserror::Error;

use super::state::HeaderSync;
use crate::{
    consensus::{ChainError, Change, HeaderCandidate, Inserted, VerifiedHeader, VerifiedUncles},
    light::{
        clock::Now,
        header_batch::{BatchError, decode_headers, encode_headers},
    },
    types::{B256, BlockRef, EMPTY_UNCLES_HASH, Header},
};

/// Most headers that are told at once.
pub const MAX_TOLD: usize = 16;

/// Stands in the backlog of uncles where the number of an upstream would be. Only lists that match their headers get there, so
/// nobody is ever blamed for one.
const TOLD: usize = usize::MAX;

/// Why a header that was told is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ToldError {
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

impl HeaderSync {
    /// Headers of the chain with their uncles, oldest first, as [`Self::take_told`] takes them. Headers that are not on
    /// the chain any more are left out.
    pub fn tell(&self, blocks: &[B256]) -> String {
        let view = self.line.chain.as_ref().map(|chain| chain.view());
        let known = |hash: &B256| {
            let view = view?;
            Some((view.by_hash(hash)?.header(), view.uncles(hash).map(|uncles| uncles.headers())))
        };
        encode_headers(blocks.iter().filter_map(known))
    }

    /// Takes headers from another host, with those of their uncles that it knows. Each header is checked by all header rules,
    /// as one from an upstream is, and changes no upstream's record. Returns whether the uncles of all headers came with them.
    ///
    /// # Errors
    /// The first header that is not taken; those before it stay.
    pub fn take_told(&mut self, text: &str, now: Now) -> Result<bool, ToldError> {
        self.now = now;
        if !self.line.synced_once {
            return Err(ToldError::NotSynced);
        }
        let mut complete = true;
        let mut taken = Ok(());
        for (header, uncles) in decode_headers(text, MAX_TOLD, &self.line.network)? {
            match self.take_one(header, uncles) {
                Ok(whole) => complete &= whole,
                Err(error) => {
                    taken = Err(error);
                    break;
                }
            }
        }
        self.settle();
        taken.map(|()| complete)
    }

    fn take_one(&mut self, header: HeaderCandidate, uncles: Option<Vec<Header>>) -> Result<bool, ToldError> {
        let Inserted { header, change } =
            self.line.add_to_chain(header, self.now).ok_or(ToldError::NotSynced)??;
        if change == Change::Known || header.uncles_hash == EMPTY_UNCLES_HASH {
            return Ok(true);
        }
        self.line.backlog.add(&header);
        Ok(self.take_uncles(&header, uncles))
    }

    /// Takes the uncles of a header, if they are those that it commits to.
    fn take_uncles(&mut self, header: &VerifiedHeader, uncles: Option<Vec<Header>>) -> bool {
        let uncles = uncles.and_then(|uncles| VerifiedUncles::check(header, uncles).ok());
        let Some(uncles) = uncles else { return false };
        let block = BlockRef { number: header.number, hash: header.hash() };
        self.line.backlog.ready(&block, TOLD, Arc::new(uncles));
        true
    }
}
