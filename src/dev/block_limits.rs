//! Header fields that change by small steps: from one block to the next, and until a block can hold a transaction.

use alloy_primitives::U256;

use crate::consensus::network::{GAS_LIMIT_DIVISOR, MIN_GAS_LIMIT, MIN_GAS_PRICE_DIVISOR};
use crate::consensus::{Network, Rule, RuleSet};
use crate::exec::{ListLimits, PRICE_CAP};
use crate::types::{Header, Transaction};

/// The largest number of blocks that one request may mine.
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

    /// The limits of a child of this block that is as near to `target` as the rules allow.
    pub fn towards(&self, target: &Self, rules: RuleSet) -> Self {
        let part = |of: U256, divisor| of.checked_div(U256::from(divisor)).unwrap_or_default();
        let step = part(self.gas_limit, GAS_LIMIT_DIVISOR);
        let wanted = target.gas_limit.max(U256::from(MIN_GAS_LIMIT));
        Self {
            minimum_gas_price: self.next_minimum(target.minimum_gas_price, rules),
            gas_limit: near(wanted, self.gas_limit, step),
        }
    }

    /// With RSKIP-252 a minimum above zero also limits prices from above. A minimum of zero stays if the next one would not
    /// take transactions at the target, or somewhat above it, for some hundred blocks.
    fn next_minimum(&self, target: U256, rules: RuleSet) -> U256 {
        let from = self.minimum_gas_price;
        if from.is_zero() && rules.has(Rule::Rskip252) && target > U256::from(PRICE_CAP / 2) {
            return from;
        }
        let step = from.checked_div(U256::from(MIN_GAS_PRICE_DIVISOR)).unwrap_or_default();
        near(target, from, step.max(U256::from(1)))
    }

    /// The price in wei that a transaction must offer now: that of the next block, or that of the target.
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
        let mut at = *self;
        for blocks in 0..MAX_BLOCKS_AT_ONCE {
            let next = at.towards(target, rules);
            if next.holds(transaction, network, rules) {
                return Some(blocks);
            }
            if next == at {
                return None;
            }
            at = next;
        }
        None
    }
}

fn near(wanted: U256, from: U256, step: U256) -> U256 {
    wanted.clamp(from.saturating_sub(step), from.saturating_add(step))
}
