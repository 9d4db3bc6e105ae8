//! The gas limit and the minimum gas price of blocks. The rules let each block change them by a small step only, so this file also
//! counts the blocks until one can hold a transaction.

use alloy_primitives::U256;

use crate::consensus::network::{GAS_LIMIT_DIVISOR, MIN_GAS_LIMIT, MIN_GAS_PRICE_DIVISOR};
use crate::consensus::{Network, Rule, RuleSet};
use crate::exec::{ListLimits, PRICE_CAP};
use crate::types::{Header, Transaction};

/// The largest number of blocks that one request may mine, and that are mined ahead of a transaction.
pub const MAX_BLOCKS_AT_ONCE: u64 = 10_000;

/// The fields of a block that limit its transactions, and that a miner may change by a small part in each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLimits {
    /// The minimum gas price in wei.
    pub minimum_gas_price: U256,
    /// The gas limit of the block.
    pub gas_limit: U256,
}

impl BlockLimits {
    /// The limits of a block.
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { minimum_gas_price: header.minimum_gas_price.value(), gas_limit: header.gas_limit.value() }
    }

    /// The limits of a child of this block that are as near to `target` as the rules allow.
    pub fn towards(&self, target: &Self, rules: RuleSet) -> Self {
        let step = self.gas_limit.checked_div(U256::from(GAS_LIMIT_DIVISOR)).unwrap_or_default();
        let wanted = target.gas_limit.max(U256::from(MIN_GAS_LIMIT));
        Self {
            minimum_gas_price: self.next_minimum(target.minimum_gas_price, rules),
            gas_limit: clamped_to_step(wanted, self.gas_limit, step),
        }
    }

    /// The minimum gas price of a child of this block. A minimum above zero also caps gas prices, at 100 times the minimum
    /// (RSKIP-252). A first step from zero to 1 wei would thus exclude transactions that offer the target, or up to twice the
    /// target, for some hundred blocks if the target is above half the cap, so the minimum then stays at zero.
    fn next_minimum(&self, target: U256, rules: RuleSet) -> U256 {
        let from = self.minimum_gas_price;
        if from.is_zero() && rules.has(Rule::Rskip252) && target > U256::from(PRICE_CAP / 2) {
            return from;
        }
        let step = from.checked_div(U256::from(MIN_GAS_PRICE_DIVISOR)).unwrap_or_default();
        clamped_to_step(target, from, step.max(U256::from(1)))
    }

    /// The price in wei that a transaction must offer now: the minimum of the next block or of the target, the higher one.
    pub fn price(&self, target: &Self, rules: RuleSet) -> U256 {
        self.towards(target, rules).minimum_gas_price.max(target.minimum_gas_price)
    }

    /// The largest gas limit of a transaction: that of the block's largest transaction list.
    pub fn largest(&self, network: &Network, rules: RuleSet) -> u64 {
        let block = u64::try_from(self.gas_limit).unwrap_or(u64::MAX);
        ListLimits::new(block, network.params.min_sequential_gas_limit, rules).largest()
    }

    /// Whether a price is at most `factor` times the minimum (RSKIP-252).
    pub fn allows(&self, price: U256, factor: u64, rules: RuleSet) -> bool {
        let minimum = self.minimum_gas_price;
        let cap = minimum.saturating_mul(U256::from(factor));
        minimum.is_zero() || price <= cap || !rules.has(Rule::Rskip252)
    }

    /// Whether price and gas limit of a transaction fit a block with these limits.
    fn holds(&self, transaction: &Transaction, network: &Network, rules: RuleSet) -> bool {
        let price = transaction.gas_price.value();
        price >= self.minimum_gas_price
            && self.allows(price, PRICE_CAP, rules)
            && transaction.gas_limit.value() <= U256::from(self.largest(network, rules))
    }

    /// The number of blocks from this one towards `target` before one that can hold a transaction: 0 if the next one
    /// can, `None` if none of the next [`MAX_BLOCKS_AT_ONCE`] can.
    pub fn blocks_before(
        &self,
        transaction: &Transaction,
        target: &Self,
        network: &Network,
        rules: RuleSet,
    ) -> Option<u64> {
        let mut current = *self;
        for blocks in 0..MAX_BLOCKS_AT_ONCE {
            let next = current.towards(target, rules);
            if next.holds(transaction, network, rules) {
                return Some(blocks);
            }
            if next == current {
                return None;
            }
            current = next;
        }
        None
    }
}

/// The value nearest to `wanted` that differs from `from` by at most `step`.
fn clamped_to_step(wanted: U256, from: U256, step: U256) -> U256 {
    wanted.clamp(from.saturating_sub(step), from.saturating_add(step))
}
