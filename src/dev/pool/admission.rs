//! The rules by which the pool admits transactions, checked against the head.

use alloy_primitives::{Address, U256};

use super::error::{MAX_TRANSACTION_SIZE, PoolError};
use crate::consensus::{Network, Rule, RuleSet};
use crate::dev::block_limits::BlockLimits;
use crate::exec::{MAX_INIT_CODE, basic_cost};
use crate::state::AccountState;
use crate::types::{Asker, Header, Transaction};

/// The largest length of a nonce in bytes.
const MAX_NONCE_LEN: u32 = 8;
/// The largest gas limit of a transaction on any network.
const GAS_CAP: u64 = 1 << 60;

/// The largest gas price that the pool admits, as a multiple of the minimum gas price of the next block or of the target, as in the
/// reference node. A block takes prices of up to 100 times its minimum (RSKIP-252, [`crate::exec::PRICE_CAP`]).
const POOL_PRICE_CAP: u64 = 80;

/// The data against which a transaction is checked.
#[derive(Debug, Clone, Copy)]
pub struct PoolContext<'a> {
    /// The network.
    pub network: &'a Network,
    /// The head.
    pub head: &'a Header,
    /// The limits that later blocks approach ([`crate::dev::MinerSettings::target`]).
    pub target: BlockLimits,
    /// The asker that sends the transaction; `None` for a transaction of a block that left the chain.
    pub asker: Option<Asker>,
}

impl PoolContext<'_> {
    /// The rules at the head.
    pub(super) fn rules(&self) -> RuleSet {
        self.network.rules(self.head.number)
    }

    /// The intrinsic gas of a transaction; zero for the free transactions of the Bridge's federation.
    pub(super) fn basic_cost(&self, transaction: &Transaction, sender: &Address) -> u64 {
        basic_cost(transaction, sender, self.network, self.rules())
    }

    /// The largest gas limit of a transaction, in the head or in the blocks that approach the target.
    fn gas_limit(&self) -> u64 {
        let largest = |limits: BlockLimits| limits.largest(self.network, self.rules());
        largest(BlockLimits::of(self.head)).max(largest(self.target))
    }
}

/// Checks a transaction by itself and against its sender's account, in the order of the reference node. An
/// account may be ahead of its nonce in the state by `account_slots` nonces.
pub(super) fn check(
    context: &PoolContext<'_>,
    account_slots: u64,
    transaction: &Transaction,
    sender: &Address,
    account: Option<&AccountState>,
) -> Result<(), PoolError> {
    let rules = context.rules();
    let cost = context.basic_cost(transaction, sender);
    if account.is_none() && cost != 0 {
        return Err(PoolError::NoAccount);
    }
    let size = transaction.data.len();
    if transaction.to.is_none() && rules.has(Rule::Rskip438) && size > MAX_INIT_CODE {
        return Err(PoolError::InitCodeSize);
    }
    let encoded = transaction.encode().len();
    if encoded > MAX_TRANSACTION_SIZE {
        return Err(PoolError::Size(encoded));
    }
    if transaction.is_remasc() {
        return Err(PoolError::Remasc);
    }
    check_gas(context, transaction)?;
    check_nonce(transaction, account_slots, account)?;
    let price = transaction.gas_price.value();
    let gas = transaction.gas_limit.value();
    let balance = account.map_or(U256::ZERO, |account| account.balance);
    // Without the value, which `queue.rs` adds when the transaction can be mined, together with the sender's other transactions.
    if cost != 0 && price.checked_mul(gas).is_none_or(|fee| fee > balance) {
        return Err(PoolError::Funds);
    }
    check_price(context, price, U256::from(cost) > gas)?;
    fits_a_block_soon(context, transaction)
}

/// Checks the encoding of the nonce, and its distance to the nonce of the account.
fn check_nonce(
    transaction: &Transaction,
    account_slots: u64,
    account: Option<&AccountState>,
) -> Result<(), PoolError> {
    let nonce = transaction.nonce;
    if nonce.len() > MAX_NONCE_LEN {
        return Err(PoolError::NonceLength(nonce.len()));
    }
    // A single zero byte is a valid nonce of 0; longer encodings must have no leading zero.
    if nonce.len() > 1 && nonce.len() as usize > nonce.value().byte_len() {
        return Err(PoolError::NonceEncoding);
    }
    let next = U256::from(account.map_or(0, |account| account.nonce));
    if nonce.value() < next {
        return Err(PoolError::NonceTooLow);
    }
    // No nonce comes after the last one (EIP-2681).
    let last = U256::from(u64::MAX);
    if nonce.value() >= next.saturating_add(U256::from(account_slots)).min(last) {
        return Err(PoolError::NonceTooHigh);
    }
    Ok(())
}

/// Checks the gas price. `below_cost` says that the gas limit is below the intrinsic gas: the reference node checks this between the
/// two rules on prices.
fn check_price(context: &PoolContext<'_>, price: U256, below_cost: bool) -> Result<(), PoolError> {
    if price < context.target.minimum_gas_price {
        return Err(PoolError::MinimumGasPrice);
    }
    if below_cost {
        return Err(PoolError::BasicCost);
    }
    let rules = context.rules();
    let next = BlockLimits::of(context.head).towards(&context.target, rules);
    if ![next, context.target].iter().any(|limits| limits.allows(price, POOL_PRICE_CAP, rules)) {
        return Err(PoolError::GasPriceCap);
    }
    Ok(())
}

/// Checks the gas limit against the largest list of the head and of the target.
fn check_gas(context: &PoolContext<'_>, transaction: &Transaction) -> Result<(), PoolError> {
    let (gas, limit) = (transaction.gas_limit.value(), context.gas_limit());
    if gas > U256::from(limit.min(GAS_CAP)) {
        return Err(PoolError::GasLimit { gas, limit });
    }
    Ok(())
}

/// Checks that a block can hold the transaction: the next one, or one of those that approach the target
/// ([`BlockLimits::blocks_before`]).
fn fits_a_block_soon(context: &PoolContext<'_>, transaction: &Transaction) -> Result<(), PoolError> {
    let (head, rules) = (BlockLimits::of(context.head), context.rules());
    if head.blocks_before(transaction, &context.target, context.network, rules).is_some() {
        return Ok(());
    }
    let (gas, limit) = (transaction.gas_limit.value(), head.largest(context.network, rules));
    if gas > U256::from(limit) {
        return Err(PoolError::GasLimit { gas, limit });
    }
    let is_low = transaction.gas_price.value() < head.minimum_gas_price;
    Err(if is_low { PoolError::MinimumGasPrice } else { PoolError::GasPriceCap })
}
