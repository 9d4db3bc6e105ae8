//! The Rootstock virtual machine. Only this layer uses `revm`.
//!
//! `revm` provides the interpreter, the journal and the frames. This layer adds the differences of Rootstock:
//! opcodes and prices per rule set, calls without the 63/64 rule, account existence instead of emptiness, and
//! the native contracts. The caller passes the rules as a [`RuleSet`](crate::consensus::RuleSet), so one
//! machine runs blocks of every era.
//!
//! `exec` makes a [`Machine`] for each call and transaction: `machine` and `context` set it up, `run` starts it, `frame` is its loop over
//! frames, `opcodes` has the table of instructions, `native` calls native contracts, and `changes` returns what the run has changed. `live`
//! shows the state between instructions to tracers in JavaScript, which browser modules leave out with the feature `catalogue`.

mod accounts;
mod calls;
mod changes;
mod code;
mod collisions;
mod common_opcodes;
mod context;
mod creates;
mod database;
mod frame;
mod gas;
mod halt;
mod inline_run;
mod inspect;
mod inspect_hooks;
#[cfg(feature = "catalogue")]
mod live;
mod machine;
mod native;
mod opcodes;
pub mod precompiles;
mod run;
mod touches;
#[cfg(feature = "local")]
mod used_accounts;

pub use changes::{ChangedAccount, StateChanges};
pub use context::{Abort, NativeCallRecord, RunContext};
pub use database::{EvmAccount, EvmState, ReadyCode};
pub use gas::{MAX_INIT_CODE, intrinsic_gas};
pub use halt::HaltReason;
#[cfg(feature = "catalogue")]
pub use inspect::LiveState;
pub use inspect::{AccountValues, FrameClose, FrameKind, FrameStart, Inspector, StepEnd, StepStart};
pub use machine::{Machine, RunEnvironment};
pub use native::{DirectCallResult, DirectOutcome};
pub use run::{FirstFrame, FrameEnd};
pub(crate) use touches::Touch;
