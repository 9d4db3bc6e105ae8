//! Comparison of two branches: the rule by which the header chain and a locally executed chain move their heads.

use crate::types::{B256, U256};

/// The tip of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchTip {
    /// Total difficulty of the branch, or its work above an ancestor that both branches have.
    pub work: U256,
    /// Fees paid by the tip's transactions, in wei.
    pub paid_fees: U256,
    /// Hash of the tip.
    pub hash: B256,
}

/// Whether a branch that arrived later replaces the current one: if the new branch has more work; at equal work, if its tip pays more
/// than twice the fees, or more than half the fees and has a smaller hash.
#[must_use]
pub fn replaces(new: &BranchTip, current: &BranchTip) -> bool {
    if new.work != current.work {
        return new.work > current.work;
    }
    let twice = |fees: U256| fees.saturating_mul(U256::from(2));
    new.paid_fees > twice(current.paid_fees)
        || (current.paid_fees < twice(new.paid_fees) && new.hash < current.hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(work: u64, fees: u64, hash: u8) -> BranchTip {
        BranchTip { work: U256::from(work), paid_fees: U256::from(fees), hash: B256::repeat_byte(hash) }
    }

    #[test]
    fn more_work_wins() {
        assert!(replaces(&tip(11, 0, 9), &tip(10, 100, 1)));
        assert!(!replaces(&tip(9, 100, 1), &tip(10, 0, 9)));
    }

    #[test]
    fn at_equal_work_fees_decide_and_then_the_hash() {
        let current = tip(10, 10, 5);
        assert!(replaces(&tip(10, 21, 9), &current));
        assert!(!replaces(&tip(10, 20, 9), &current));
        assert!(replaces(&tip(10, 20, 4), &current));
        assert!(replaces(&tip(10, 6, 4), &current));
        assert!(!replaces(&tip(10, 5, 4), &current));
        assert!(!replaces(&tip(10, 10, 6), &current));
        // If neither tip pays fees, the current branch stays.
        assert!(!replaces(&tip(10, 0, 1), &tip(10, 0, 5)));
        // With exactly twice the fees, the hash decides in one direction and the order of arrival in the
        // other.
        assert!(!replaces(&tip(10, 10, 1), &tip(10, 20, 5)));
        assert!(replaces(&tip(10, 20, 1), &tip(10, 10, 5)));
    }
}
