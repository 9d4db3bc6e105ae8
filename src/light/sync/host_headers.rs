//! Headers that the host has from other sources than upstreams, such as from another front end of the same service. The machine
//! checks them like those of an upstream; they only save requests.

use alloc::{sync::Arc, vec::Vec};

use super::state::HeaderSync;
use crate::{
    consensus::{ChainError, HeadChange, HeaderCandidate, Inserted, VerifiedHeader, VerifiedUncles},
    light::{clock::Now, header_batch::Batch},
    types::{BlockRef, EMPTY_UNCLES_HASH, Header},
};

impl HeaderSync {
    /// Takes headers, oldest first, each with its uncles if they are known. Each header is checked by all header rules,
    /// like one from an upstream, and changes no upstream's record. Returns whether the uncles of all headers came with them.
    /// `None` before the head was reached, because such headers continue only a chain that is up to date.
    ///
    /// # Errors
    /// The first header that the chain refuses; those before it stay. If its parent is unknown, the upstreams have to show it.
    pub fn take_headers(&mut self, headers: Batch, now: Now) -> Option<Result<bool, ChainError>> {
        self.now = now;
        if !self.followed.synced_once {
            return None;
        }
        let mut complete = true;
        let mut taken = Ok(());
        for (header, uncles) in headers {
            match self.take_one(header, uncles)? {
                Ok(has_uncles) => complete &= has_uncles,
                Err(error) => {
                    taken = Err(error);
                    break;
                }
            }
        }
        self.settle();
        Some(taken.map(|()| complete))
    }

    /// Takes one header. Returns whether all of its uncles are there, or were requested before because the chain had the header.
    fn take_one(
        &mut self,
        header: HeaderCandidate,
        uncles: Option<Vec<Header>>,
    ) -> Option<Result<bool, ChainError>> {
        let inserted = self.followed.add_to_chain(header, self.now)?;
        Some(inserted.map(|Inserted { header, change }| {
            if change == HeadChange::Known || header.uncles_hash == EMPTY_UNCLES_HASH {
                return true;
            }
            self.followed.backlog.add(&header);
            self.take_uncles(&header, uncles)
        }))
    }

    /// Takes the uncles of a header, if they are those that it commits to. Returns whether they are.
    fn take_uncles(&mut self, header: &VerifiedHeader, uncles: Option<Vec<Header>>) -> bool {
        let uncles = uncles.and_then(|uncles| VerifiedUncles::check(header, uncles).ok());
        let Some(uncles) = uncles else { return false };
        let block = BlockRef { number: header.number, hash: header.hash() };
        self.followed.backlog.ready(&block, Arc::new(uncles));
        true
    }
}
