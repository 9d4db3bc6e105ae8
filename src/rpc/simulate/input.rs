//! The parameter of `eth_simulateV1`.

use alloc::{sync::Arc, vec::Vec};

use serde::Deserialize;

use crate::{
    exec::CallMessage,
    rpc::{
        block_override::{BlockOverride, BlockOverrideObject, block_override},
        call_object::{CallObject, OverrideObjects, check_calls, state_override},
        error::{ParamError, RpcError},
        params::Params,
        simulation_error::SimulationError,
    },
    state::StateOverride,
    types::json::Object,
};

/// Most blocks of one simulation, as in execution-apis (Ethereum's specification of JSON-RPC). Blocks that fill gaps between the
/// given numbers count too.
pub(super) const MAX_BLOCKS: u64 = 256;

/// The parameter as a caller writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SimulationObject {
    block_state_calls: Vec<Object<BlockObject>>,
    #[serde(default)]
    trace_transfers: Option<bool>,
    #[serde(default)]
    validation: Option<bool>,
    #[serde(default)]
    return_full_transactions: Option<bool>,
}

/// A block of the simulation as a caller writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockObject {
    #[serde(default)]
    block_overrides: Option<Object<BlockOverrideObject>>,
    #[serde(default)]
    state_overrides: Option<OverrideObjects>,
    #[serde(default)]
    calls: Option<Vec<Object<CallObject>>>,
}

/// The parsed parameter.
pub(in crate::rpc) struct SimulationInput {
    pub(in crate::rpc) blocks: Vec<BlockInput>,
    /// Whether transfers of value are shown as logs.
    pub(super) trace_transfers: bool,
    /// Whether nonces and gas prices are checked, as in a block. Gas and balances always are.
    pub(super) validation: bool,
    /// Whether the blocks of the answer have transaction objects instead of hashes.
    pub(super) full_transactions: bool,
}

/// A block of a simulation: its overrides, and the calls that run in it.
pub(in crate::rpc) struct BlockInput {
    pub(super) block: BlockOverride,
    pub(in crate::rpc) state: StateOverride,
    pub(in crate::rpc) calls: Vec<CallInput>,
}

/// A call, which is a transaction without a signature.
pub(in crate::rpc) struct CallInput {
    pub(in crate::rpc) message: CallMessage,
    pub(super) nonce: Option<u64>,
}

impl CallInput {
    fn of(Object(object): &Object<CallObject>) -> Result<Self, ParamError> {
        Ok(Self { message: object.message()?, nonce: object.nonce()? })
    }
}

impl SimulationInput {
    /// Reads the first parameter.
    pub(in crate::rpc) fn read(params: Params<'_>) -> Result<Arc<Self>, RpcError> {
        params.once(0, || {
            check_calls(params)?;
            let expected = "an object with blockStateCalls";
            let given: Option<SimulationObject> = params.object(0, expected)?;
            given.ok_or(ParamError::Type { position: 0, expected })?.parse()
        })
    }

    /// Whether state is overridden.
    pub(in crate::rpc) fn overrides(&self) -> bool {
        self.blocks.iter().any(|block| !block.state.accounts.is_empty())
    }
}

impl SimulationObject {
    fn parse(&self) -> Result<SimulationInput, RpcError> {
        match self.block_state_calls.len() {
            0 => return Err(SimulationError::Empty.into()),
            count if count as u64 > MAX_BLOCKS => {
                return Err(SimulationError::TooManyBlocks(MAX_BLOCKS).into());
            }
            _ => {}
        }
        let blocks: Result<Vec<BlockInput>, ParamError> =
            self.block_state_calls.iter().map(|Object(block)| block.parse()).collect();
        Ok(SimulationInput {
            blocks: blocks?,
            trace_transfers: self.trace_transfers.unwrap_or(false),
            validation: self.validation.unwrap_or(false),
            full_transactions: self.return_full_transactions.unwrap_or(false),
        })
    }
}

impl BlockObject {
    fn parse(&self) -> Result<BlockInput, ParamError> {
        let calls: Result<Vec<CallInput>, ParamError> =
            self.calls.iter().flatten().map(CallInput::of).collect();
        Ok(BlockInput {
            block: block_override(self.block_overrides.as_ref())?,
            state: state_override(self.state_overrides.as_ref())?,
            calls: calls?,
        })
    }
}
