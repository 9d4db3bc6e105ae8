//! `eth_call`: one message on the state behind a block, with the block itself as its environment.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, B256, U256};

use super::limits::RunLimits;
use super::recorder::Recorder;
use super::result::{CallOutcome, CallResult, CallStop, OverrideError};
use crate::consensus::RuleSet;
use crate::evm::precompiles::Precompile;
use crate::evm::{
    intrinsic_gas, Abort, Direct, DirectEnd, FirstFrame, FrameEnd, HaltReason, Inspector, Machine,
    RunContext, Setting,
};
use crate::state::{OverriddenState, StateOverride, StateReader};
use crate::types::{Header, SealedHeader};

/// A message to execute. Nothing is checked of it: a local call needs neither balance nor nonce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallMessage {
    /// Sender; none is the reference's null sender: CALLER is 0, but account 0 is not involved.
    pub from: Option<Address>,
    /// Callee; none creates a contract.
    pub to: Option<Address>,
    /// Gas limit; none, and everything above the cap, means the cap.
    pub gas: Option<u64>,
    /// Gas price in wei, only for GASPRICE: fees are not charged.
    pub gas_price: U256,
    /// Value in wei.
    pub value: U256,
    /// Call data, or initialisation code.
    pub data: Bytes,
}

/// The block a call sees: the selected block itself, not the one after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEnvironment {
    /// Height.
    pub number: u64,
    /// Time in seconds since 1970.
    pub timestamp: u64,
    /// Miner.
    pub coinbase: Address,
    /// Its own difficulty, not the total.
    pub difficulty: U256,
    /// Gas limit.
    pub gas_limit: U256,
    /// Minimum gas price in wei: BASEFEE (RSKIP-412).
    pub minimum_gas_price: U256,
}

impl From<&Header> for BlockEnvironment {
    /// A header without a miner, which no valid block has, shows address 0.
    fn from(header: &Header) -> Self {
        Self {
            number: header.number,
            timestamp: header.timestamp,
            coinbase: header.coinbase.unwrap_or_default(),
            difficulty: header.difficulty.value(),
            gas_limit: header.gas_limit.value(),
            minimum_gas_price: header.minimum_gas_price.value(),
        }
    }
}

/// The blocks before the one a call sees, on its own branch. `None` is what is not at hand.
pub trait BlockHashes {
    /// Hash of the block at a height.
    fn block_hash(&self, number: u64) -> Option<B256>;

    /// Its header.
    fn header(&self, _number: u64) -> Option<SealedHeader> {
        None
    }

    /// Its uncles.
    fn uncles(&self, _number: u64) -> Option<Vec<Header>> {
        None
    }

    /// Total difficulty, uncles included, up to it.
    fn total_difficulty(&self, _number: u64) -> Option<U256> {
        None
    }
}

/// Where a call runs.
pub struct CallContext<'a> {
    /// State behind the block.
    pub state: &'a dyn StateReader,
    /// Hashes of its ancestors.
    pub hashes: &'a dyn BlockHashes,
    /// The block.
    pub block: &'a BlockEnvironment,
    /// Rules at its height.
    pub rules: RuleSet,
    /// Chain id.
    pub chain_id: u64,
}

/// Runs a message. A run that misses facts goes on with zeros to find more of them, and ends in
/// [`CallStop::Lacking`] with all of them; its result is thrown away.
pub fn call(
    context: &CallContext<'_>,
    message: &CallMessage,
    overrides: &StateOverride,
    limits: &RunLimits<'_>,
) -> Result<CallResult, CallStop> {
    call_watched(context, message, overrides, limits, None)
}

/// As [`call`], watched. A call straight to a native contract, and one with less gas than its
/// intrinsic price, shows no frame.
pub fn call_watched<'a>(
    context: &CallContext<'_>,
    message: &CallMessage,
    overrides: &StateOverride,
    limits: &'a RunLimits<'_>,
    inspector: Option<&'a mut dyn Inspector>,
) -> Result<CallResult, CallStop> {
    check_overrides(overrides, context.rules)?;
    let limit = message.gas.unwrap_or(u64::MAX).min(limits.gas_cap);
    let state = OverriddenState::new(context.state, overrides);
    let recorder = Recorder::new(&state, context.hashes, overrides, message.from, limits);
    let intrinsic = intrinsic_gas(&message.data, message.to.is_none(), context.rules);
    let Some(gas) = limit.checked_sub(intrinsic) else {
        return Ok(CallResult::new(out_of_gas(limit), recorder.finish()?));
    };
    let mut run = run_context(context, message, limits);
    run.inspector = inspector;
    let mut machine = Machine::new(recorder, setting(context, message), run);
    let first = FirstFrame {
        from: message.from,
        to: message.to,
        value: message.value,
        data: message.data.clone(),
        gas,
    };
    if let Some(precompile) = message.to.and_then(|to| Precompile::at(&to, context.rules)) {
        let ended = machine.run_direct(precompile, &first);
        let complete = machine.state().finish()?;
        return Ok(CallResult::new(settle_direct(ended.map_err(stop)?, limit, gas), complete));
    }
    let ended = machine.run(first);
    // What is missing comes first: a run on zeros may stop where a run on the state would not.
    let complete = machine.state().finish()?;
    let outcome = settle(ended.map_err(stop)?, limit);
    Ok(CallResult::new(outcome, complete))
}

fn check_overrides(overrides: &StateOverride, rules: RuleSet) -> Result<(), OverrideError> {
    match overrides.accounts.keys().find(|address| Precompile::at(address, rules).is_some()) {
        Some(address) => Err(OverrideError::Precompile(*address)),
        None => Ok(()),
    }
}

fn setting(context: &CallContext<'_>, message: &CallMessage) -> Setting {
    Setting {
        chain_id: context.chain_id,
        number: context.block.number,
        timestamp: context.block.timestamp,
        coinbase: context.block.coinbase,
        difficulty: context.block.difficulty,
        origin: message.from.unwrap_or(Address::ZERO),
    }
}

fn run_context<'a>(
    context: &CallContext<'_>,
    message: &CallMessage,
    limits: &'a RunLimits<'_>,
) -> RunContext<'a> {
    let mut run = RunContext::new(context.rules, limits.interrupt);
    run.gas_limit = context.block.gas_limit;
    run.minimum_gas_price = context.block.minimum_gas_price;
    run.gas_price = message.gas_price;
    run
}

/// A call straight to a native contract. One that refuses its input is a success without output,
/// as such a transaction's receipt has it; its input is not cut to length.
fn settle_direct(end: DirectEnd, limit: u64, gas: u64) -> CallOutcome {
    let output = match end.outcome {
        Direct::Done(output) => output,
        Direct::Failed => Bytes::new(),
        Direct::TooExpensive => return out_of_gas(limit),
    };
    let gas_used = limit.saturating_sub(gas.saturating_sub(end.price));
    CallOutcome::Success { output, gas_used, logs: end.logs }
}

fn out_of_gas(limit: u64) -> CallOutcome {
    CallOutcome::Halt { reason: HaltReason::OutOfGas, gas_used: limit }
}

/// Gas used: what is gone, less refunds of at most half of it.
fn settle(end: FrameEnd, limit: u64) -> CallOutcome {
    let spent = limit.saturating_sub(end.gas_left);
    match end.failure {
        Some(None) => CallOutcome::Revert { output: end.output, gas_used: spent },
        Some(Some(reason)) => CallOutcome::Halt { reason, gas_used: spent },
        None => {
            let gas_used = spent.saturating_sub(end.refund.min(spent / 2));
            CallOutcome::Success { output: end.output, gas_used, logs: end.logs }
        }
    }
}

fn stop(abort: Abort) -> CallStop {
    match abort {
        Abort::Stopped => CallStop::Interrupted,
        Abort::NotSimulated(method) => CallStop::NotSimulated(method),
        Abort::OverdrawnBalance(address) => CallStop::OverdrawnBalance(address),
        Abort::BalanceOverflow => CallStop::BalanceOverflow,
        Abort::TakenAddress(address) => CallStop::TakenAddress(address),
        Abort::UnpaidMemory => CallStop::UnpaidMemory,
    }
}
