//! Traces of calls, each on the state that the earlier ones left.

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::{
    block_override::BlockOverride,
    call::CallBlock,
    error::{ParamError, RpcError},
    method::Failure,
    simulation_error::SimulationError,
    trace::too_large,
};
use crate::{
    engine::{BlockHeader, View},
    exec::{
        CallContext, CallMessage, CallStop, Executed, IndexedTransaction, Simulation, intrinsic_gas,
        simulate,
        trace::{RunTracer, TraceBudget, Tracer, TransactionTrace},
    },
    state::StateOverride,
    types::Transaction,
};

/// A call that is traced.
pub(super) struct TracedCall {
    pub(super) message: CallMessage,
    pub(super) tracer: Tracer,
    /// What is changed in the block that it sees.
    pub(super) block: BlockOverride,
}

/// Runs calls on the state after a block, as part of that block, and returns their traces.
pub(super) fn traced_run(
    view: &dyn View,
    base: &BlockHeader,
    overrides: &StateOverride,
    calls: &[TracedCall],
) -> Result<Vec<TransactionTrace>, Failure> {
    if !overrides.accounts.is_empty() && !view.policy().calls.overrides {
        return Err(ParamError::OverrideRefused.into());
    }
    let mut room = TraceBudget::default();
    let traces = CallBlock::inside(base.clone()).run(view, |context, limits| {
        simulate(context.state, limits, |simulation| {
            let room = &mut room;
            let (gas_cap, gas_left) = (limits.gas_cap, limits.gas_cap);
            CallRun { view, context, simulation, room, gas_cap, gas_left, first_log: 0 }.all(overrides, calls)
        })
    })??;
    if room.exceeded() { Err(too_large()) } else { Ok(traces) }
}

struct CallRun<'r, 'a> {
    view: &'r dyn View,
    context: &'r CallContext<'r>,
    simulation: &'r mut Simulation<'a>,
    room: &'r mut TraceBudget,
    /// The gas that all calls may use together, and what is left of it.
    gas_cap: u64,
    gas_left: u64,
    first_log: usize,
}

impl CallRun<'_, '_> {
    fn all(
        mut self,
        overrides: &StateOverride,
        calls: &[TracedCall],
    ) -> Result<Result<Vec<TransactionTrace>, RpcError>, CallStop> {
        self.simulation.override_state(self.context, overrides)?;
        let mut traces = Vec::new();
        for call in calls {
            let mut block = self.context.block.clone();
            call.block.apply(&mut block);
            let rules = self.view.policy().network.rules(block.number);
            let context = CallContext { block: &block, rules, ..*self.context };
            match self.transaction(&context, &call.message) {
                Ok(transaction) => traces.push(self.call(&context, call, transaction, traces.len())?),
                // Nothing that was read has a meaning. The other calls show more of what is missing.
                Err(_) if self.simulation.is_incomplete() => {}
                Err(error) => return Ok(Err(error.into())),
            }
        }
        Ok(Ok(traces))
    }

    fn call(
        &mut self,
        context: &CallContext<'_>,
        call: &TracedCall,
        transaction: Transaction,
        index: usize,
    ) -> Result<TransactionTrace, CallStop> {
        let sender = call.message.from.unwrap_or_default();
        let mut tracer = RunTracer::new(&call.tracer, *self.room);
        let item = IndexedTransaction { index, transaction: &transaction, sender };
        let run = self.simulation.run(context, item, 0, Some(&mut tracer))?;
        self.gas_left = self.gas_left.saturating_sub(run.receipt.gas_used);
        let executed = Executed {
            transaction: &transaction,
            sender,
            receipt: &run.receipt,
            output: &run.output,
            failure: run.failure,
        };
        let trace = tracer.finish((index, self.first_log), &executed, self.room);
        self.first_log = self.first_log.saturating_add(run.receipt.logs.len());
        Ok(trace)
    }

    /// The call as a transaction, without a signature.
    fn transaction(
        &mut self,
        context: &CallContext<'_>,
        message: &CallMessage,
    ) -> Result<Transaction, SimulationError> {
        let from = message.from.unwrap_or_default();
        let account = self.simulation.account(from);
        let needed = intrinsic_gas(&message.data, message.to.is_none(), context.rules);
        let gas = message.gas.unwrap_or(self.gas_cap);
        if gas < needed {
            return Err(SimulationError::IntrinsicGas { given: gas, needed });
        }
        if self.gas_left < needed {
            return Err(SimulationError::TotalGas(self.gas_cap));
        }
        let gas = gas.min(self.gas_left);
        let fee = message.gas_price.saturating_mul(U256::from(gas));
        let needed = message.value.saturating_add(fee);
        if account.balance < needed {
            return Err(SimulationError::Funds { from, balance: account.balance, needed });
        }
        Ok(message.unsigned(account.nonce, gas))
    }
}
