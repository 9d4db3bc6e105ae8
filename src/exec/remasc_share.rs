//! Shares of a mature block's fees, which REMASC pays (`remasc.rs`): pure arithmetic. All divisions round down. The reward of a block is a
//! part of all fees collected so far, so that fees are spread over later blocks.

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
/// Miners lose one part in this number of a reward if the block rewarded before violated the selection rule
/// ([`RewardedBlock::breaks_selection`]).
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
    /// Fees of its transactions, in wei.
    pub(super) fees: U256,
    /// Number of uncles that it lists.
    pub(super) uncles: u32,
    /// The account of its miner.
    pub(super) coinbase: Address,
    /// Uncles of the same height, in the order in which descendants include them.
    pub(super) siblings: Vec<Sibling>,
}

/// An uncle of the same height.
pub(super) struct Sibling {
    pub(super) hash: B256,
    /// Fees of its transactions, in wei.
    pub(super) fees: U256,
    /// Number of uncles that it lists.
    pub(super) uncles: u32,
    /// The account of its miner.
    pub(super) coinbase: Address,
    /// The account of the miner whose block includes the sibling.
    pub(super) publisher: Address,
    /// Number of blocks by which its inclusion was late; 0 in the next block.
    pub(super) late: u64,
}

/// The balances in REMASC's cells, in wei, and flags for those cells that are to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// Collected fees that are not paid yet.
    pub(super) reward: U256,
    /// All that was burned so far: it stays on REMASC's account for good.
    pub(super) burned: U256,
    /// Shares of the federation that were too small to be paid.
    pub(super) federation: U256,
    /// Whether the last rewarded block's siblings violated the selection rule.
    pub(super) broken: bool,
    /// Whether the cell of [`Self::burned`] is to be written; the next two flags alike.
    pub(super) burned_written: bool,
    pub(super) federation_written: bool,
    pub(super) broken_written: bool,
}

impl Ledger {
    /// Adds to the burned amount.
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
    // A reward is one part in `remasc_span` of the collected fees. The fees of the first blocks are only collected.
    if rewarded.number < params.remasc_span {
        return out;
    }
    let punished = core::mem::replace(&mut ledger.broken, rewarded.breaks_selection());
    ledger.broken_written = true;
    let mut reward = part(ledger.reward, params.remasc_span);
    let minimum = context.environment.minimum_gas_price;
    let has_minimum = context.rules.has(Rule::Rskip85);
    if has_minimum && reward < times(minimum, MINIMUM_PAYABLE_GAS) {
        return out;
    }
    ledger.reward = ledger.reward.saturating_sub(reward);

    // The accounts of RSK Labs before RSKIP-218 and from it on.
    let [early, late] = params.labs;
    let labs = if context.rules.has(Rule::Rskip218) { late } else { early };
    let cut = part(reward, LABS_DIVISOR);
    out.push(Payment { to: labs, amount: cut });
    reward = reward.saturating_sub(cut);

    let cut = part(reward, FEDERATION_DIVISOR);
    let least = has_minimum.then(|| times(minimum, MEMBER_MINIMUM_PAYABLE_GAS));
    pay_federation(cut, federation, least, ledger, &mut out);
    reward = reward.saturating_sub(cut);

    if rewarded.siblings.is_empty() {
        pay_alone(reward, rewarded, punished, ledger, &mut out);
    } else {
        pay_with_siblings(reward, rewarded, punished, ledger, &mut out);
    }
    out
}

/// Pays its share `cut` to the federation. The last member receives the remainder of the division. If the members' shares are below
/// `least`, the whole share stays in the ledger.
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

/// Pays the miner of a block without siblings.
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

/// Pays the miners of a block and of its siblings, and those whose blocks include the siblings.
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
    let publishing_rest = publishing.saturating_sub(times(per_publisher, siblings));
    let mining_rest = mining.saturating_sub(times(per_miner, miners));
    let punishment = if punished { part(per_miner, PUNISHMENT_DIVISOR) } else { U256::ZERO };
    per_miner = per_miner.saturating_sub(punishment);

    out.extend(rewarded.siblings.iter().map(|s| Payment { to: s.publisher, amount: per_publisher }));
    ledger.burn(publishing_rest);
    ledger.burn(mining_rest);
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

/// `amount / divisor`; 0 if the divisor is 0, as for a federation without members.
fn part(amount: U256, divisor: u64) -> U256 {
    amount.checked_div(U256::from(divisor)).unwrap_or_default()
}

/// `amount * factor`, saturating.
fn times(amount: U256, factor: u64) -> U256 {
    amount.saturating_mul(U256::from(factor))
}
