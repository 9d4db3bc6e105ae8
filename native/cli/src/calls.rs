//! Flags shared by all commands that execute calls.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum, value_parser};
use rootlight::exec::{CALL_GAS_CAP, CallPolicy, REVERTED};

/// Command-line flags for `eth_call` and `eth_estimateGas`.
#[derive(Debug, Clone, Args)]
pub struct CallArgs {
    /// Answer of eth_call when execution halts (out of gas, invalid opcode): an error, or 0x as rskj answers
    #[arg(long, value_name = "error|rskj", value_enum, default_value = "error")]
    pub call_halt: CallHalt,
    /// Most gas that one eth_call or eth_estimateGas may use
    #[arg(long, value_name = "GAS", default_value_t = CALL_GAS_CAP, value_parser = value_parser!(u64).range(1..))]
    pub call_gas_cap: u64,
    /// Error code of eth_call and eth_estimateGas when execution reverts: Rootstock's, or 3 as in geth, from
    /// which viem and web3.py decode the reason
    #[arg(long, value_name = "3|-32015", default_value = "-32015", allow_negative_numbers = true, value_parser = revert_codes())]
    pub revert_code: i32,
    /// Behave as this release of the reference node where they differ: before 7.2.0 eth_call takes no state
    /// override, before 6.5.0 eth_estimateGas does not check the sender's balance [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    pub compat: Option<Release>,
}

/// The answer of `eth_call` when execution halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallHalt {
    /// Error -32015 that names the halt.
    Error,
    /// An empty result, which looks like success.
    Rskj,
}

/// A release of the reference node: three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release([u32; 3]);

/// The first release in which `eth_estimateGas` fails if the sender lacks the funds.
const CHECKS_FUNDS: Release = Release([6, 5, 0]);
/// The first release in which `eth_call` takes a state override.
const OVERRIDES: Release = Release([7, 2, 0]);

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        numbers.map(Self).ok_or_else(|| format!("{text:?} is not a release such as 7.2.0"))
    }
}

/// The two codes that the flag takes; both parse as a number.
fn revert_codes() -> impl clap::builder::TypedValueParser<Value = i32> {
    PossibleValuesParser::new(["3", "-32015"]).map(|code| code.parse().unwrap_or(REVERTED))
}

impl CallArgs {
    /// Returns the call policy that these flags describe. Without `--compat`, the policy has every change of a release.
    pub fn policy(&self) -> CallPolicy {
        let has_change = |release| self.compat.is_none_or(|compat| compat >= release);
        CallPolicy {
            gas_cap: self.call_gas_cap,
            silent_halts: self.call_halt == CallHalt::Rskj,
            revert_code: self.revert_code,
            overrides: has_change(OVERRIDES),
            checks_funds: has_change(CHECKS_FUNDS),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        calls: CallArgs,
    }

    fn policy(flags: &[&str]) -> Option<CallPolicy> {
        let flags = Flags::try_parse_from([&["rootlight"], flags].concat()).ok()?;
        Some(flags.calls.policy())
    }

    #[test]
    fn the_default_policy_is_the_newest_release_with_its_revert_code() {
        assert_eq!(policy(&[]), Some(CallPolicy::default()));
        assert_eq!(policy(&["--revert-code", "3"]).map(|policy| policy.revert_code), Some(3));
        assert_eq!(policy(&["--revert-code", "-32015"]).map(|policy| policy.revert_code), Some(-32015));
        assert_eq!(policy(&["--revert-code", "7"]), None);
    }

    #[test]
    fn a_release_has_the_behaviour_that_it_introduced() {
        let of =
            |release| policy(&["--compat", release]).map(|policy| (policy.overrides, policy.checks_funds));
        assert_eq!(of("7.2.0"), Some((true, true)));
        assert_eq!(of("9.10.1"), Some((true, true)));
        assert_eq!(of("7.1.9"), Some((false, true)));
        assert_eq!(of("6.5.0"), Some((false, true)));
        assert_eq!(of("6.4.99"), Some((false, false)));
        for wrong in ["7", "7.2", "7.2.0.1", "latest", ""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
