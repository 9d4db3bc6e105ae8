//! Blocks that are asked for by hash and are not on the held chain: connected to it, or refused.
//!
//! A header states its own difficulty, so its proof of work alone says nothing. It is verified as the descendant of
//! verified headers by all header rules, or as an ancestor that their hashes commit to.

use alloc::{format, vec::Vec};

use super::{pin::Pin, store::Known, task::Cause};
use crate::types::{B256, SealedHeader};

/// Most headers that lead from the held chain to a block asked for by hash, its own included. Each costs a question;
/// real forks are a few blocks long, and uncles reach 7 generations back.
pub const MAX_BRANCH: usize = 16;

/// How far a block is from the held chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Branch {
    /// It is held now.
    Held,
    /// The header with this hash has to be known first.
    Needs(B256),
    /// Not the held chain's, or not by the rules.
    Refused(Cause),
}

impl Pin {
    /// Takes a header that was fetched by its hash into the pinned chain, with those between it and the held ones. The
    /// head stays where it is.
    pub(crate) fn connect(&mut self, wanted: B256, known: &Known<'_>) -> Branch {
        let Some(chain) = &mut self.chain else { return Branch::Needs(wanted) };
        let (mut branch, mut at) = (Vec::new(), wanted);
        while chain.by_hash(&at).is_none() {
            let header = match known.header(&at) {
                Some(Some(header)) => header,
                Some(None) => return refused(format!("nobody has its ancestor {at}")),
                None => return Branch::Needs(at),
            };
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
            Ok(()) => Branch::Held,
            Err(error) => refused(format!("{error}")),
        }
    }
}

fn refused(reason: alloc::string::String) -> Branch {
    Branch::Refused(Cause::Refuted(reason))
}
