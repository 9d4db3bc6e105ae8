//! Shares of a mature block's fees: pure arithmetic. All divisions round down.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::block_context::BlockContext;
use crate::consensus::Rule;

/// RSK Labs receive one part in this number of a reward.
const LABS_DIVISOR: u64 = 5;
/// The federation receives one part in this number of the rest.
const FEDERATION_DIVISOR: u64 = 100;
/// Miners of the blocks that included uncles receive one part in this number.
const PUBLISHERS_DIVISOR: u64 = 10;
/// Miners lose one part in this number after a violation of the selection rule.
const PUNISHMENT_DIVISOR: u64 = 10;
/// An uncle's miner loses one part in this number for each block by which its inclusion was late.
const LATE_DIVISOR: u64 = 20;
/// Lowest reward that is paid, as an amount of gas at the minimum gas price (RSKIP-85).
const MINIMUM_PAYABLE_GAS: u64 = 200_000;
/// Lowest payment to each member of the federation, as an amount of gas at the minimum gas price.
const MEMBER_MINIMUM_PAYABLE_GAS: u64 = 50_000;

/// The block whose fees are distributed.
pub(super) struct RewardedBlock {
    pub(super) number: u64,
    pub(super) hash: B256,
    pub(super) fees: U256,
    pub(super) uncles: u32,
    pub(super) coinbase: Address,
    /// Uncles of the same height, in the order in which descendants include them.
    pub(super) siblings: Vec<Sibling>,
}

/// An uncle of the same height.
pub(super) struct Sibling {
    pub(super) hash: B256,
    pub(super) fees: U256,
    pub(super) uncles: u32,
    pub(super) coinbase: Address,
    /// Miner of the block that includes it.
    pub(super) publisher: Address,
    /// Number of blocks by which its inclusion was late.
    pub(super) late: u64,
}

/// Balances that REMASC keeps between blocks, in wei, and flags for those that were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) reward: U256,
    pub(super) burned: U256,
    pub(super) federation: U256,
    /// Whether the last rewarded block's siblings violated the selection rule.
    pub(super) broken: bool,
    pub(super) burned_written: bool,
    pub(super) federation_written: bool,
    pub(super) broken_written: bool,
}

impl Ledger {
    fn burn(&mut self, amount: U256) {
        self.burned = self.burned.saturating_add(amount);
        self.burned_written = true;
    }
}

/// One payment in wei. Payments of zero are made too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub(super) to: Address,
    pub(super) amount: U256,
}

/// Computes the payments of one block, in order.
pub(super) fn shares(
    context: &BlockContext<'_>,
    rewarded: &RewardedBlock,
    federation: &[Address],
    ledger: &mut Ledger,
) -> Vec<Payment> {
    let params = &context.network.params;
    let mut out = Vec::new();
    ledger.reward = ledger.reward.saturating_add(rewarded.fees);
    if rewarded.number < params.remasc_span {
        return out;
    }
    let punished = core::mem::replace(&mut ledger.broken, rewarded.breaks_selection());
    ledger.broken_written = true;
    let mut reward = part(ledger.reward, params.remasc_span);
    let minimum = context.environment.minimum_gas_price;
    let bounded = context.rules.has(Rule::Rskip85);
    if bounded && reward < times(minimum, MINIMUM_PAYABLE_GAS) {
        return out;
    }
    ledger.reward = ledger.reward.saturating_sub(reward);

    let [early, late] = params.labs;
    let labs = if context.rules.has(Rule::Rskip218) { late } else { early };
    let cut = part(reward, LABS_DIVISOR);
    out.push(Payment { to: labs, amount: cut });
    reward = reward.saturating_sub(cut);

    let cut = part(reward, FEDERATION_DIVISOR);
    let least = bounded.then(|| times(minimum, MEMBER_MINIMUM_PAYABLE_GAS));
    pay_federation(cut, federation, least, ledger, &mut out);
    reward = reward.saturating_sub(cut);

    if rewarded.siblings.is_empty() {
        pay_alone(reward, rewarded, punished, ledger, &mut out);
    } else {
        pay_with_siblings(reward, rewarded, punished, ledger, &mut out);
    }
    out
}

/// Pays the federation. The last member receives the remainder of the division. Shares below the minimum stay
/// in the ledger.
fn pay_federation(
    cut: U256,
    members: &[Address],
    least: Option<U256>,
    ledger: &mut Ledger,
    out: &mut Vec<Payment>,
) {
    let total = ledger.federation.saturating_add(cut);
    let each = part(total, members.len() as u64);
    if let Some(least) = least {
        ledger.federation_written = true;
        if each < least {
            ledger.federation = total;
            return;
        }
        ledger.federation = U256::ZERO;
    }
    let rest = total.saturating_sub(times(each, members.len() as u64));
    let last = members.len().saturating_sub(1);
    for (index, to) in members.iter().enumerate() {
        let amount = if index == last { each.saturating_add(rest) } else { each };
        out.push(Payment { to: *to, amount });
    }
}

fn pay_alone(
    mut reward: U256,
    rewarded: &RewardedBlock,
    punished: bool,
    ledger: &mut Ledger,
    out: &mut Vec<Payment>,
) {
    if punished {
        let punishment = part(reward, PUNISHMENT_DIVISOR);
        reward = reward.saturating_sub(punishment);
        ledger.burn(punishment);
    }
    out.push(Payment { to: rewarded.coinbase, amount: reward });
}

fn pay_with_siblings(
    reward: U256,
    rewarded: &RewardedBlock,
    punished: bool,
    ledger: &mut Ledger,
    out: &mut Vec<Payment>,
) {
    let siblings = rewarded.siblings.len() as u64;
    let miners = siblings.saturating_add(1);
    let publishing = part(reward, PUBLISHERS_DIVISOR);
    let mining = reward.saturating_sub(publishing);
    let per_publisher = part(publishing, siblings);
    let mut per_miner = part(mining, miners);
    let lost = publishing.saturating_sub(times(per_publisher, siblings));
    let lost_too = mining.saturating_sub(times(per_miner, miners));
    let punishment = if punished { part(per_miner, PUNISHMENT_DIVISOR) } else { U256::ZERO };
    per_miner = per_miner.saturating_sub(punishment);

    out.extend(rewarded.siblings.iter().map(|s| Payment { to: s.publisher, amount: per_publisher }));
    ledger.burn(lost);
    ledger.burn(lost_too);
    for sibling in &rewarded.siblings {
        let late = part(times(per_miner, sibling.late), LATE_DIVISOR);
        out.push(Payment { to: sibling.coinbase, amount: per_miner.saturating_sub(late) });
        ledger.burn(late);
    }
    if punished {
        ledger.burn(times(punishment, miners));
    }
    out.push(Payment { to: rewarded.coinbase, amount: per_miner });
}

impl RewardedBlock {
    /// Whether the selection rule was violated: a sibling should have been the main block, because it has
    /// more than twice the fees, or more than half the fees and a smaller hash, or more uncles.
    fn breaks_selection(&self) -> bool {
        let better = |sibling: &Sibling| {
            sibling.fees > times(self.fees, 2)
                || (self.fees < times(sibling.fees, 2) && sibling.hash < self.hash)
        };
        self.siblings.iter().any(better) || self.siblings.iter().any(|s| s.uncles > self.uncles)
    }
}

/// `amount / divisor`; 0 if the divisor is 0.
fn part(amount: U256, divisor: u64) -> U256 {
    amount.checked_div(U256::from(divisor)).unwrap_or_default()
}

fn times(amount: U256, factor: u64) -> U256 {
    amount.saturating_mul(U256::from(factor))
}
