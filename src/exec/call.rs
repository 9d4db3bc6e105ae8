//! Local calls (`eth_call`): run a message on the state after a block, with that block as the environment.

use alloy_primitives::{Address, Bytes, U256};

use super::block_hashes::BlockHashes;
use super::limits::RunLimits;
use super::recorder::ReadRecorder;
use super::result::{CallOutcome, CallResult};
use super::stop::{CallStop, OverrideError};
use crate::consensus::RuleSet;
use crate::evm::precompiles::Precompile;
use crate::evm::{
    Abort, DirectCallResult, DirectOutcome, FirstFrame, FrameEnd, HaltReason, Inspector, Machine, RunContext,
    RunEnvironment, intrinsic_gas,
};
use crate::state::{OverriddenState, StateOverride, StateReader};
use crate::types::Header;
#[cfg(any(feature = "light", feature = "local"))]
use crate::types::{RawUint, Transaction};

/// A message to execute. A local call needs neither balance nor nonce, so neither is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallMessage {
    /// Sender. `None` is the null sender of the reference node: CALLER is 0, but account 0 is not involved.
    pub from: Option<Address>,
    /// Callee; `None` creates a contract.
    pub to: Option<Address>,
    /// Gas limit, at most the cap; `None` is the cap.
    pub gas: Option<u64>,
    /// Gas price in wei, for GASPRICE only. No fee is charged.
    pub gas_price: U256,
    /// Value in wei.
    pub value: U256,
    /// Call data, or initialisation code.
    pub data: Bytes,
}

impl CallMessage {
    /// The message as a transaction without a signature.
    #[cfg(any(feature = "light", feature = "local"))]
    pub(crate) fn unsigned(&self, nonce: u64, gas: u64) -> Transaction {
        Transaction {
            nonce: RawUint::from(nonce),
            gas_price: RawUint::padded(self.gas_price, 1),
            gas_limit: RawUint::from(gas),
            to: self.to,
            value: self.value,
            data: self.data.clone(),
            v: 0,
            r: U256::ZERO,
            s: U256::ZERO,
        }
    }
}

/// The fields of the block in which code runs. For a local call, the selected block itself, not a block after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEnvironment {
    /// Block number.
    pub number: u64,
    /// Time in seconds since 1970.
    pub timestamp: u64,
    /// Miner.
    pub coinbase: Address,
    /// Difficulty of the block, not the total difficulty.
    pub difficulty: U256,
    /// Gas limit.
    pub gas_limit: U256,
    /// Minimum gas price in wei, which BASEFEE pushes (RSKIP-412).
    pub minimum_gas_price: U256,
}

impl From<&Header> for BlockEnvironment {
    /// The coinbase is address 0 if the header has no miner. Every valid header has one.
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

/// The context of a call.
pub struct CallContext<'a> {
    /// State after the block.
    pub state: &'a dyn StateReader,
    /// Hashes of the block's ancestors.
    pub hashes: &'a dyn BlockHashes,
    /// The block.
    pub block: &'a BlockEnvironment,
    /// Rules at the height of the block.
    pub rules: RuleSet,
    /// Chain id.
    pub chain_id: u64,
}

/// Runs a message. If data are missing, the run continues with zeros to find more missing data, and ends in
/// [`CallStop::Missing`] with all of them. Its result is then discarded. The inspector gets no frame if a native contract is called
/// directly, or if the gas is below the intrinsic gas.
pub fn call<'a>(
    context: &CallContext<'_>,
    message: &CallMessage,
    overrides: &StateOverride,
    limits: &'a RunLimits<'_>,
    inspector: Option<&'a mut dyn Inspector>,
) -> Result<CallResult, CallStop> {
    check_overrides(overrides, context.rules)?;
    let limit = message.gas.unwrap_or(u64::MAX).min(limits.gas_cap);
    let state = OverriddenState::new(context.state, overrides);
    let recorder = ReadRecorder::new(&state, context.hashes, overrides, message.from, limits);
    let intrinsic = intrinsic_gas(&message.data, message.to.is_none(), context.rules);
    let Some(gas) = limit.checked_sub(intrinsic) else {
        return Ok(CallResult::new(out_of_gas(limit), recorder.finish()?));
    };
    let mut run = run_context(context, message.gas_price, limits);
    run.inspector = inspector;
    let origin = message.from.unwrap_or(Address::ZERO);
    let mut machine = Machine::new(recorder, run_environment(context, origin), run);
    let first = FirstFrame {
        from: message.from,
        to: message.to,
        value: message.value,
        data: message.data.clone(),
        gas,
    };
    let native = message.to.and_then(|to| Precompile::at(&to, context.rules));
    let ended = match native {
        Some(native) => machine.run_direct(native, &first).map(|end| outcome_of_direct_call(end, limit, gas)),
        None => machine.run(first).map(|end| outcome_of_run(end, limit)),
    };
    check_inline_run(limits, ended.as_ref().err())?;
    #[cfg(feature = "local")]
    machine.report_accounts();
    // Missing data are reported first: a run on zeros may stop where a run on the real state would not.
    let complete = machine.state().finish()?;
    Ok(CallResult::new(ended.map_err(stop)?, complete))
}

/// Reports an inline run that ended early as interrupted, even if data are missing: the run without the limits of an inline run finds all
/// missing data.
fn check_inline_run(limits: &RunLimits<'_>, abort: Option<&Abort>) -> Result<(), CallStop> {
    if limits.is_inline && abort == Some(&Abort::Stopped) { Err(CallStop::Interrupted) } else { Ok(()) }
}

/// Refuses overrides of native contracts, whose code cannot be replaced.
pub(super) fn check_overrides(overrides: &StateOverride, rules: RuleSet) -> Result<(), OverrideError> {
    match overrides.accounts.keys().find(|address| Precompile::at(address, rules).is_some()) {
        Some(address) => Err(OverrideError::Precompile(*address)),
        None => Ok(()),
    }
}

/// The fields of the block for the machine.
pub(super) fn run_environment(context: &CallContext<'_>, origin: Address) -> RunEnvironment {
    RunEnvironment {
        chain_id: context.chain_id,
        number: context.block.number,
        timestamp: context.block.timestamp,
        coinbase: context.block.coinbase,
        difficulty: context.block.difficulty,
        origin,
    }
}

/// The context of a run at this gas price in wei.
pub(super) fn run_context<'a>(
    context: &CallContext<'_>,
    gas_price: U256,
    limits: &'a RunLimits<'_>,
) -> RunContext<'a> {
    let mut run = RunContext::new(context.rules, limits.interrupt);
    run.gas_limit = context.block.gas_limit;
    run.minimum_gas_price = context.block.minimum_gas_price;
    run.gas_price = gas_price;
    run.is_inline = limits.is_inline;
    run
}

/// The outcome of a direct call of a native contract. If the contract fails, the call succeeds without output, as the receipt of such a
/// transaction says. `limit` is the gas limit of the call, `gas` the part of it after the intrinsic gas.
fn outcome_of_direct_call(end: DirectCallResult, limit: u64, gas: u64) -> CallOutcome {
    let output = match end.outcome {
        DirectOutcome::Done(output) => output,
        DirectOutcome::Failed => Bytes::new(),
        DirectOutcome::TooExpensive => return out_of_gas(limit),
    };
    let gas_used = limit.saturating_sub(gas.saturating_sub(end.price));
    CallOutcome::Success { output, gas_used, logs: end.logs }
}

/// The outcome of a call that runs out of gas.
fn out_of_gas(limit: u64) -> CallOutcome {
    CallOutcome::Halt { reason: HaltReason::OutOfGas, gas_used: limit }
}

/// The outcome of a run with this gas limit. Gas used is the gas spent, minus refunds of at most half of it.
fn outcome_of_run(end: FrameEnd, limit: u64) -> CallOutcome {
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

/// The reason of an aborted run, for the caller.
pub(super) fn stop(abort: Abort) -> CallStop {
    match abort {
        Abort::Stopped => CallStop::Interrupted,
        Abort::NotSimulated(method) => CallStop::NotSimulated(method),
        Abort::OverdrawnBalance(address) => CallStop::OverdrawnBalance(address),
        Abort::BalanceOverflow => CallStop::BalanceOverflow,
        Abort::TakenAddress(address) => CallStop::TakenAddress(address),
        Abort::UnpaidMemory => CallStop::UnpaidMemory,
    }
}
