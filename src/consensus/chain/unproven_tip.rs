//! The boundary between proven and unproven headers of a restored chain (`chain::restore`).

use super::entry::ChainEntry;
use crate::types::{B256, U256};

/// The highest restored header whose proof of work this run has not checked. The header is canonical. No header from the base up to this
/// one counts as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnprovenTip {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// Sum of the difficulties that the headers above the base, up to this one, state.
    pub(super) work: U256,
}

impl UnprovenTip {
    pub(super) fn at(entry: &ChainEntry) -> Self {
        Self { number: entry.number(), hash: entry.hash(), work: entry.work }
    }
}
