//! The machine that runs one call or transaction: its set-up over `revm`. `run.rs` has the runs, `changes.rs` the results.

use alloy_primitives::{Address, U256};
use revm::context::{BlockEnv, CfgEnv, Context, Evm, Journal, LocalContext, TxEnv};
use revm::context_interface::JournalTr as _;
use revm::context_interface::local::FrameStack;
use revm::handler::EthFrame;
use revm::interpreter::interpreter::EthInterpreter;
use revm::primitives::hardfork::SpecId;

use super::context::{EvmContext, RunContext, Spec};
use super::database::{Adapter, EvmState};
use super::gas::{MAX_CODE, gas_params};
use super::opcodes::{Instructions, instructions};
use super::precompiles::NoPrecompiles;

/// `revm`'s machine with the types of this layer.
type InnerEvm<'a, DB> =
    Evm<EvmContext<'a, DB>, (), Instructions<'a, DB>, NoPrecompiles, EthFrame<EthInterpreter>>;

/// A machine for one call or transaction.
///
/// [`Self::run`] makes a local call, [`Self::run_transaction`] runs a transaction. After a transaction,
/// [`Self::into_changes`] returns its changes.
pub struct Machine<'a, S: EvmState> {
    pub(super) evm: InnerEvm<'a, Adapter<S>>,
}

/// The data of block and sender that `revm`'s own fields hold. The block's gas limit, its minimum gas price (BASEFEE) and the gas price
/// are in [`RunContext`], where Rootstock's instructions (`opcodes.rs`) read them. `revm`'s fields for these keep their defaults.
#[derive(Clone, Copy, Debug)]
pub struct RunEnvironment {
    /// Chain id (RSKIP-152).
    pub chain_id: u64,
    /// Block number.
    pub number: u64,
    /// Block time in seconds since 1970.
    pub timestamp: u64,
    /// Miner of the block.
    pub coinbase: Address,
    /// Difficulty of the block.
    pub difficulty: U256,
    /// The address that ORIGIN pushes.
    pub origin: Address,
}

impl<'a, S: EvmState> Machine<'a, S> {
    /// Creates a machine over this state, for one block and one rule set.
    pub fn new(state: S, environment: RunEnvironment, run: RunContext<'a>) -> Self {
        let rules = run.rules;
        let mut cfg = CfgEnv::new_with_spec(Spec(rules));
        cfg.chain_id = environment.chain_id;
        cfg.limit_contract_code_size = Some(MAX_CODE);
        cfg.set_gas_params(gas_params(rules));
        let mut context: EvmContext<'a, Adapter<S>> = Context {
            block: BlockEnv {
                number: U256::from(environment.number),
                timestamp: U256::from(environment.timestamp),
                beneficiary: environment.coinbase,
                difficulty: environment.difficulty,
                ..BlockEnv::default()
            },
            tx: TxEnv { caller: environment.origin, ..TxEnv::default() },
            cfg,
            journaled_state: Journal::new(Adapter(state)),
            chain: run,
            local: LocalContext::default(),
            error: Ok(()),
        };
        // The specification from before EIP-161 makes the journal ask whether accounts exist, not whether they are empty, and keep
        // empty ones.
        context.journaled_state.set_spec_id(SpecId::TANGERINE);
        Self {
            evm: Evm {
                ctx: context,
                inspector: (),
                instruction: instructions(rules),
                precompiles: NoPrecompiles::default(),
                // Frames are allocated when they are opened: each has a stack of 32 KiB, and most runs open
                // only one.
                frame_stack: FrameStack::new(),
            },
        }
    }

    /// The state below the run, with the reads that it has recorded.
    pub fn state(&self) -> &S {
        &self.evm.ctx.journaled_state.database.0
    }

    /// As [`Self::state`], when the run has ended; drops the changes of the run.
    pub fn into_state(self) -> S {
        self.evm.ctx.journaled_state.database.0
    }
}
