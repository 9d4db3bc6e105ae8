//! Traces of calls that are no transactions, each on the state that the earlier ones left: `debug_traceCall*` and
//! `trace_call*` use it.

use alloc::vec::Vec;

use super::{
    block_override::BlockOverride,
    call::CallBlock,
    error::{ParamError, RpcError},
    method::Failure,
    shared_gas::SharedGas,
    trace::too_large,
};
#[cfg(feature = "catalogue")]
use crate::exec::trace::{ScriptBlock, ScriptTracer};
use crate::{
    engine::{BlockHeader, View},
    evm::Inspector,
    exec::{
        CallContext, CallMessage, CallStop, Executed, IndexedTransaction, Simulation, simulate,
        trace::{RunTracer, TraceBudget, Tracer, TransactionTrace},
    },
    state::StateOverride,
    types::Transaction,
};

/// A call to run and trace.
pub(super) struct TracedCall {
    pub(super) message: CallMessage,
    /// The data to collect.
    pub(super) tracer: Tracer,
    /// The overrides of the block that the call sees.
    pub(super) block: BlockOverride,
}

/// The script that traces the calls; `None` if the tracer of each call does.
#[cfg(feature = "catalogue")]
type CallScript<'r> = Option<&'r mut ScriptTracer>;
/// A build without scripts has none.
#[cfg(not(feature = "catalogue"))]
type CallScript<'r> = core::marker::PhantomData<&'r ()>;

/// Runs calls on the state after a block, as part of that block, and returns their traces.
pub(super) fn traced_run(
    view: &dyn View,
    base: &BlockHeader,
    overrides: &StateOverride,
    calls: &[TracedCall],
) -> Result<Vec<TransactionTrace>, Failure> {
    run(view, base, overrides, calls, CallScript::default())
}

/// As [`traced_run`], with a script that observes the calls and stores their traces itself.
#[cfg(feature = "catalogue")]
pub(super) fn traced_by_script(
    view: &dyn View,
    base: &BlockHeader,
    overrides: &StateOverride,
    calls: &[TracedCall],
    script: &mut ScriptTracer,
) -> Result<(), Failure> {
    run(view, base, overrides, calls, Some(script)).map(drop)
}

/// Runs the calls, traced by the script if there is one; the returned traces have no data then.
fn run(
    view: &dyn View,
    base: &BlockHeader,
    overrides: &StateOverride,
    calls: &[TracedCall],
    script: CallScript<'_>,
) -> Result<Vec<TransactionTrace>, Failure> {
    if !overrides.accounts.is_empty() && !view.policy().calls.overrides {
        return Err(ParamError::OverrideRefused.into());
    }
    let mut budget = TraceBudget::default();
    // The first error is a run that stopped, the second a call that breaks a rule.
    let traces = CallBlock::inside(base.clone()).run(view, |context, limits| {
        simulate(context.state, limits, |simulation| {
            let (budget, gas) = (&mut budget, SharedGas::new(limits.gas_cap));
            CallRun { view, context, simulation, budget, gas, first_log: 0, script }.all(overrides, calls)
        })
    })??;
    if budget.exceeded() { Err(too_large()) } else { Ok(traces) }
}

/// The run of all calls of a request.
struct CallRun<'r, 'a> {
    view: &'r dyn View,
    /// The block without the overrides of a call.
    context: &'r CallContext<'r>,
    simulation: &'r mut Simulation<'a>,
    /// The memory that further traces may take.
    budget: &'r mut TraceBudget,
    gas: SharedGas,
    /// Number of logs of the earlier calls.
    first_log: usize,
    #[cfg_attr(not(feature = "catalogue"), allow(dead_code, reason = "hosts alone have scripts"))]
    script: CallScript<'r>,
}

impl CallRun<'_, '_> {
    /// Runs the calls in order. The outer error is a run that stopped, such as for missing state; the inner one is a rule that a
    /// call breaks.
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
            let message = &call.message;
            let is_last = traces.len().saturating_add(1) == calls.len();
            // `None`: a traced call has the next nonce of its sender, whatever nonce the caller states.
            match self.gas.transaction(self.simulation, &context, message, None, message.gas) {
                Ok(transaction) if is_last && !self.has_script() => {
                    // No later call and no script reads the changes of this call, so that they need not be kept.
                    self.simulation.drop_changes_of_next();
                    traces.push(self.call(&context, call, transaction, traces.len())?);
                }
                Ok(transaction) => traces.push(self.call(&context, call, transaction, traces.len())?),
                // The simulation has read missing state as zero, so that the error may be wrong. The result is discarded anyway,
                // and the other calls find more missing state.
                Err(_) if self.simulation.is_incomplete() => {}
                Err(error) => return Ok(Err(error.into())),
            }
        }
        Ok(Ok(traces))
    }

    /// Whether a script traces, which can read the state after each call.
    fn has_script(&self) -> bool {
        #[cfg(feature = "catalogue")]
        return self.script.is_some();
        #[cfg(not(feature = "catalogue"))]
        return false;
    }

    /// Runs a call as the transaction at this index, and returns its trace.
    fn call(
        &mut self,
        context: &CallContext<'_>,
        call: &TracedCall,
        transaction: Transaction,
        index: usize,
    ) -> Result<TransactionTrace, CallStop> {
        // The zero address for a call without a sender, as `SharedGas::transaction` has checked it.
        let sender = call.message.from.unwrap_or_default();
        let mut tracer = RunTracer::new(&call.tracer, *self.budget);
        let item = IndexedTransaction { index, transaction: &transaction, sender };
        #[cfg_attr(not(feature = "catalogue"), allow(unused_mut, reason = "hosts alone have scripts"))]
        let mut inspector: &mut dyn Inspector = &mut tracer;
        #[cfg(feature = "catalogue")]
        if let Some(script) = self.script.as_deref_mut() {
            script.start(ScriptBlock { number: context.block.number, hash: None, rules: context.rules });
            inspector = script;
        }
        let run = self.simulation.run(context, item, Some(inspector))?;
        self.gas.spend(run.gas_used);
        let executed = Executed {
            transaction: &transaction,
            sender,
            success: run.failure.is_none(),
            gas_used: run.gas_used,
            logs: &run.logs,
            output: &run.output,
            failure: run.failure,
        };
        #[cfg(feature = "catalogue")]
        if let Some(script) = self.script.as_deref_mut() {
            script.end(index, &executed, self.simulation);
        }
        let trace = tracer.finish((index, self.first_log), &executed, self.budget);
        self.first_log = self.first_log.saturating_add(run.logs.len());
        Ok(trace)
    }
}
