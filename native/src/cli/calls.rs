//! Flags of calls, for every mode that runs them.

use clap::{Args, ValueEnum};
use rootlight::exec::{CALL_GAS_CAP, CallPolicy};

/// Flags of calls.
#[derive(Debug, Clone, Args)]
pub struct CallArgs {
    /// What eth_call answers when a run halts (out of gas, invalid opcode): an error, or 0x as rskj does
    #[arg(long, value_name = "error|rskj", value_enum, default_value = "error")]
    pub call_halt: CallHalt,
    /// Gas of one eth_call or estimate at most
    #[arg(long, value_name = "GAS", default_value_t = CALL_GAS_CAP)]
    pub call_gas_cap: u64,
}

/// What `eth_call` answers when a run halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallHalt {
    /// Error -32015 that names the halt.
    Error,
    /// An empty result, which reads like success.
    Rskj,
}

impl CallArgs {
    /// What these flags ask for.
    #[must_use]
    pub fn policy(&self) -> CallPolicy {
        CallPolicy { gas_cap: self.call_gas_cap, silent_halts: self.call_halt == CallHalt::Rskj }
    }
}
