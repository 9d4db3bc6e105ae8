//! `eth_simulateV1` (of execution-apis, Ethereum's specification of JSON-RPC): blocks of calls on top of a block, each call on the
//! state that the earlier ones left.
//!
//! Gas, opcodes, native contracts and fees are Rootstock's. A simulated block has no REMASC transaction, and its state root
//! is zero: a state root would need the whole state.

mod ancestors;
mod blocks;
mod input;
mod plan;
mod shape;
mod transfers;

use alloc::vec::Vec;

use super::{
    call::{CallBlock, block},
    error::{ParamError, RpcError},
    limits::MAX_RESPONSE,
    method::{AT_BLOCK, Failure, Method, Param, ParamSubject, Runs, required, verified},
    params::Params,
    shared_gas::SharedGas,
};
use crate::{
    engine::{BlockHeader, View},
    exec::{CallContext, CallStop, RunLimits},
};
use ancestors::SimulatedBlock;
pub(super) use input::SimulationInput;
use plan::{BlockPlan, plan};

const SIMULATION: &[Param] = &[required("simulation", "SIMULATION").of(ParamSubject::Simulation), AT_BLOCK];

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_simulateV1",
    SIMULATION,
    "array of block objects with calls",
    "Runs blocks of calls, each on the state that the earlier ones left, with overrides of state and blocks.",
    |view, params| {
        let input = SimulationInput::read(params)?;
        let (call_block, base, plans) = prepare(view, params, &input)?;
        // The total difficulty is shown if it is known. It is no reason to fetch anything or to refuse the simulation.
        let total = view.total_difficulty(base.hash()).ok().flatten();
        // The first error is a run that stopped, the second a simulation that breaks a rule.
        let blocks =
            call_block.run(view, |context, limits| run(view, &base, &input, &plans, context, limits))??;
        verified(&shape::blocks(&blocks, total, input.full_transactions))
    },
)
.runs(Runs::Calls)
.costs(500)];

/// The call block of a simulation, the block of the chain below it, and the plans of its blocks.
fn prepare(
    view: &dyn View,
    params: Params<'_>,
    input: &SimulationInput,
) -> Result<(CallBlock, BlockHeader, Vec<BlockPlan>), Failure> {
    if input.overrides() && !view.policy().calls.overrides {
        return Err(ParamError::OverrideRefused.into());
    }
    let base = block(view, &params.call_block(1)?)?;
    let plans = plan(input, &base)?;
    Ok((CallBlock::after(view, base.clone()), base, plans))
}

/// The blocks of a simulation, or the error with which it is answered.
type Simulated = Result<Vec<SimulatedBlock>, RpcError>;

/// Runs a simulation.
fn run(
    view: &dyn View,
    base: &BlockHeader,
    input: &SimulationInput,
    plans: &[BlockPlan],
    context: &CallContext<'_>,
    limits: &RunLimits<'_>,
) -> Result<Simulated, CallStop> {
    crate::exec::simulate(context.state, limits, |simulation| {
        let network = view.policy().network;
        blocks::Run {
            network,
            base,
            input,
            context,
            simulation,
            gas: SharedGas::new(limits.gas_cap),
            // The answer has the bytes in hex, which takes twice as many characters.
            bytes_left: MAX_RESPONSE / 2,
        }
        .all(plans)
    })
}

/// The keys of all state that a simulation reads, with the block whose state it is.
#[cfg(feature = "local")]
pub(super) fn keys_of_simulation(
    view: &dyn View,
    params: Params<'_>,
) -> Result<(BlockHeader, alloc::collections::BTreeSet<crate::state::StateKey>), Failure> {
    let input = SimulationInput::read(params)?;
    let (call_block, base, plans) = prepare(view, params, &input)?;
    // The result is ignored, also if the simulation breaks a rule: the keys read so far are enough to find that again.
    call_block.keys_of(view, |context, limits| run(view, &base, &input, &plans, context, limits).map(drop))
}

/// The contracts that the calls of a simulation are sent to; `None` if one creates a contract, or if the handler refuses the
/// parameter.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn contracts(params: Params<'_>) -> Option<Vec<alloy_primitives::Address>> {
    let input = SimulationInput::read(params).ok()?;
    input.blocks.iter().flat_map(|block| &block.calls).map(|call| call.message.to).collect()
}

/// Whether a simulation overrides state.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn overrides(params: Params<'_>) -> bool {
    SimulationInput::read(params).is_ok_and(|input| input.overrides())
}
