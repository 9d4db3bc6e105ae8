//! Sublists of a block's transactions (RSKIP-144): their gas limits, and the edges in the header that divide the transactions into parallel
//! lists and a sequential one after them.

use alloc::vec::Vec;
use core::ops::Range;

use thiserror::Error;

use crate::consensus::network::EXECUTION_THREADS;
use crate::consensus::{Rule, RuleSet};

/// Gas limits of the lists of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Gas limit of each parallel list.
    pub parallel: u64,
    /// Gas limit of the sequential list.
    pub sequential: u64,
}

impl ListLimits {
    /// The limits in a block with gas limit `block`. The sequential list gets at least `minimum`. Before
    /// RSKIP-144 and RSKIP-351 there is only one list.
    pub fn new(block: u64, minimum: u64, rules: RuleSet) -> Self {
        let threads = EXECUTION_THREADS as u64;
        let third = block.checked_div(threads.saturating_add(1)).unwrap_or(0);
        let parallel = if !are_parallel(rules) {
            0
        } else if third >= minimum {
            third
        } else {
            block.saturating_sub(minimum).checked_div(threads).unwrap_or(0)
        };
        Self { parallel, sequential: block.saturating_sub(parallel.saturating_mul(threads)) }
    }

    /// The larger limit: the most gas that a transaction can have.
    pub fn largest(&self) -> u64 {
        self.parallel.max(self.sequential)
    }
}

/// Whether blocks under these rules have parallel lists.
pub(super) fn are_parallel(rules: RuleSet) -> bool {
    rules.has(Rule::Rskip144) && rules.has(Rule::Rskip351)
}

/// Why edges do not divide a block into lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum EdgeError {
    #[error("{0} parallel lists, at most {EXECUTION_THREADS}")]
    TooMany(usize),
    /// A list is empty or ends before it starts.
    #[error("list {0} has no transactions")]
    Empty(usize),
    /// No transaction is left for the sequential list, which must contain the REMASC transaction.
    #[error("edge {edge} leaves none of the {transactions} transactions for the sequential list")]
    Outside { edge: u16, transactions: usize },
}

/// Splits a block into its parallel lists, and returns the index at which the sequential list starts. Each edge is the index after the
/// last transaction of a list.
pub(super) fn split(edges: &[u16], transactions: usize) -> Result<(Vec<Range<usize>>, usize), EdgeError> {
    if edges.len() > EXECUTION_THREADS {
        return Err(EdgeError::TooMany(edges.len()));
    }
    let mut lists = Vec::new();
    let mut start = 0;
    for (index, edge) in edges.iter().enumerate() {
        // The reference node stores edges in 16 signed bits.
        let end = if *edge > i16::MAX as u16 { 0 } else { usize::from(*edge) };
        if end <= start {
            return Err(EdgeError::Empty(index));
        }
        lists.push(start..end);
        start = end;
    }
    match edges.last() {
        Some(edge) if start >= transactions => Err(EdgeError::Outside { edge: *edge, transactions }),
        _ => Ok((lists, start)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(block: u64, minimum: u64) -> (u64, u64) {
        let rules = [Rule::Rskip144, Rule::Rskip351].into_iter().collect();
        let limits = ListLimits::new(block, minimum, rules);
        (limits.parallel, limits.sequential)
    }

    #[test]
    fn the_gas_limit_is_divided_among_the_lists() {
        assert_eq!(limits(30_000_002, 10_000_000), (10_000_000, 10_000_002));
        assert_eq!(limits(10_000_000, 10_000_000), (0, 10_000_000));
        assert_eq!(limits(9_000_000, 10_000_000), (0, 9_000_000));
        assert_eq!(limits(10_000_001, 6_800_000), (1_600_000, 6_800_001));
        let one = ListLimits::new(30_000_000, 10_000_000, RuleSet::NONE);
        assert_eq!((one.parallel, one.sequential), (0, 30_000_000));
    }

    #[test]
    fn edges_divide_the_block() {
        assert_eq!(split(&[], 3), Ok((Vec::new(), 0)));
        assert_eq!(split(&[2], 3), Ok((alloc::vec![0..2], 2)));
        assert_eq!(split(&[1, 2], 3), Ok((alloc::vec![0..1, 1..2], 2)));
        assert_eq!(split(&[1, 2, 3], 9), Err(EdgeError::TooMany(3)));
        assert_eq!(split(&[0], 3), Err(EdgeError::Empty(0)));
        assert_eq!(split(&[2, 2], 3), Err(EdgeError::Empty(1)));
        assert_eq!(split(&[0x8001], 40_000), Err(EdgeError::Empty(0)));
        assert_eq!(split(&[3], 3), Err(EdgeError::Outside { edge: 3, transactions: 3 }));
    }
}
