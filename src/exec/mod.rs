//! Execution: local calls on proven state, which return a result or the list of missing data; transactions
//! and blocks on complete states, up to the resulting state root.
//!
//! | file | contents |
//! |---|---|
//! | `call`, `block_hashes`, `code_cache`, `recorder`, `result`, `stop`, `limits`, `estimate` | local calls |
//! | `simulation` | several calls that run as transactions, one after the other, on the state of a call |
//! | `transaction`, `transaction_state`, `transaction_error`, `basic_cost`, `run_end` | one transaction: rules, run, fee, receipt |
//! | `block`, `block_context`, `block_error`, `sublists`, `activation` | execution and validation of a block |
//! | `remasc`, `remasc_share` | the fee distribution that ends every block |
//! | `build`, `schedule` | a new block |
//! | `genesis` | block 0 and its state |
//! | `recovery` | recovery of many senders at once by the host |
//! | `interrupts` | interrupts of block execution by the host |
//! | `observer`, `trace` | observers and traces |

mod activation;
mod basic_cost;
mod block;
mod block_context;
mod block_error;
mod block_hashes;
mod build;
mod call;
mod code_cache;
mod estimate;
mod genesis;
mod interrupts;
mod limits;
mod observer;
mod recorder;
mod recovery;
mod remasc;
mod remasc_share;
#[cfg(test)]
mod remasc_test;
mod result;
mod run_end;
mod schedule;
mod simulation;
mod stop;
mod sublists;
pub mod trace;
mod transaction;
mod transaction_error;
mod transaction_state;

pub use crate::evm::ReadyCode;
pub use crate::evm::{
    FrameClose, FrameKind, FrameStart, HaltReason, Inspector, MAX_INIT_CODE, StepEnd, StepStart,
    intrinsic_gas,
};
pub use basic_cost::basic_cost;
#[cfg(all(feature = "catalogue", feature = "local"))]
pub(crate) use block::state_before;
pub use block::{BlockInput, ExecutedBlock, PRICE_CAP, check_block, execute_block, execute_in};
pub use block_context::{Ancestry, BlockContext, OnUnsimulated};
pub use block_error::{BlockError, Mismatch};
pub use block_hashes::BlockHashes;
pub use build::{BuiltBlock, TransactionCandidate, build_block, build_in};
pub use call::{BlockEnvironment, CallContext, CallMessage, call};
pub use code_cache::{CodeCache, SharedCodes};
pub use estimate::{Estimate, estimate};
pub use genesis::GenesisBlock;
pub use interrupts::{Interrupts, Watchdog};
pub use limits::{CALL_GAS_CAP, CallPolicy, MAX_KEYS, MAX_LISTED_CELLS, MAX_MISSING, REVERTED, RunLimits};
pub use observer::{BlockObserver, Executed, NoObserver};
pub use recovery::Recovery;
pub use remasc::UnknownAncestor;
pub use result::{CallOutcome, CallResult};
pub use simulation::{SimulatedRun, Simulation, simulate};
pub use stop::{CallStop, OverrideError};
pub use sublists::{EdgeError, ListLimits};
pub use transaction::{IndexedTransaction, SharedCalls, TransactionEnd, TransactionList};
pub use transaction_error::{NotExecuted, TxError};
