//! Connects blocks that are requested by hash to the pinned chain, or refuses them.
//!
//! A header states its own difficulty, so its proof of work alone proves nothing. A block off the chain is verified by all header
//! rules as a descendant of verified headers, or as an ancestor that their hashes commit to.

use alloc::{format, vec::Vec};

use super::{fact_store::KnownFacts, pinned_head::PinnedHead, upstream_fetch::Cause};
use crate::types::{B256, SealedHeader};

/// Most headers from the pinned chain to a block requested by hash, including the block. Each costs a request; real branches
/// are a few blocks long, and uncles reach 7 generations back.
pub const MAX_BRANCH: usize = 16;

/// Whether a block is connected to the pinned chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectOutcome {
    /// The chain has the block, or the host's own node is trusted for it.
    Connected,
    /// The header with this hash must be fetched first.
    Needs(B256),
    /// The block does not lead to the pinned chain, or breaks a rule.
    Refused(Cause),
}

impl PinnedHead {
    /// Adds a header that was fetched by its hash to the pinned chain, with the headers between it and the chain. The
    /// head does not change.
    pub(crate) fn connect(&mut self, wanted: B256, known: &KnownFacts<'_>) -> ConnectOutcome {
        let Some(chain) = &mut self.chain else { return ConnectOutcome::Needs(wanted) };
        let (mut branch, mut at) = (Vec::new(), wanted);
        while chain.by_hash(&at).is_none() {
            let header = match known.header(&at) {
                Some(Some(header)) => header,
                Some(None) => return refused(format!("no upstream has its ancestor {at}")),
                None => return ConnectOutcome::Needs(at),
            };
            if self.config.own_state.is_some() && header.number < chain.lowest() && at == wanted {
                // The host's own node is trusted for a block below the start. A branch that passes below the start is refused.
                return ConnectOutcome::Connected;
            }
            // An ancestor to which the hash of a verified header commits needs no branch, and the loop ends.
            if chain.add_ancestor(header) {
                continue;
            }
            if header.number <= chain.lowest() || branch.len() >= MAX_BRANCH {
                return refused(format!(
                    "block {} does not lead to the verified chain within {MAX_BRANCH} headers",
                    header.number
                ));
            }
            branch.push(SealedHeader::clone(header));
            at = header.parent_hash;
        }
        match chain.add_branch(branch.into_iter().rev(), Some(self.now)) {
            Ok(()) => ConnectOutcome::Connected,
            Err(error) => refused(format!("{error}")),
        }
    }
}

fn refused(reason: alloc::string::String) -> ConnectOutcome {
    ConnectOutcome::Refused(Cause::Refuted(reason))
}
