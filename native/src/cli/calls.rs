//! Flags shared by all commands that execute calls.

use clap::{Args, ValueEnum, value_parser};
use rootlight::exec::{CALL_GAS_CAP, CallPolicy};

/// Command-line flags for `eth_call` and `eth_estimateGas`.
#[derive(Debug, Clone, Args)]
pub struct CallArgs {
    /// Answer of eth_call when execution halts (out of gas, invalid opcode): an error, or 0x as rskj answers
    #[arg(long, value_name = "error|rskj", value_enum, default_value = "error")]
    pub call_halt: CallHalt,
    /// Most gas that one eth_call or eth_estimateGas may use
    #[arg(long, value_name = "GAS", default_value_t = CALL_GAS_CAP, value_parser = value_parser!(u64).range(1..))]
    pub call_gas_cap: u64,
}

/// The answer of `eth_call` when execution halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallHalt {
    /// Error -32015 that names the halt.
    Error,
    /// An empty result, which looks like success.
    Rskj,
}

impl CallArgs {
    /// Returns the call policy that these flags describe.
    #[must_use]
    pub fn policy(&self) -> CallPolicy {
        CallPolicy { gas_cap: self.call_gas_cap, silent_halts: self.call_halt == CallHalt::Rskj }
    }
}
