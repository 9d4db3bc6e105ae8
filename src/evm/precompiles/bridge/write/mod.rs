//! Bridge methods that write cells, as far as they are simulated; `methods.rs` names the function of each. Most return a number, which is
//! an error code if negative.

pub(super) mod change;
mod election;
mod events;
pub(super) mod headers;
pub(super) mod lists;
pub(super) mod pegin;
pub(super) mod release;
pub(super) mod union;
pub(super) mod update;
pub(super) mod votes;

use alloy_primitives::Address;

use super::federation::Federation;
use super::members;
use super::session::{Bridge, BridgeResult};
use crate::evm::precompiles::abi::int_result;

/// A numeric result.
fn code(number: i64) -> BridgeResult {
    Ok(Some(int_result(number)))
}

impl Bridge<'_> {
    /// The caller, for events; the zero address for the null sender of local calls.
    fn caller(&self) -> Address {
        self.call.caller.unwrap_or_default()
    }

    /// Whether the caller is one of these accounts.
    fn is_any(&self, accounts: &[Address]) -> bool {
        self.call.caller.is_some_and(|caller| accounts.contains(&caller))
    }

    /// Whether the caller is a member of the active or the retiring federation.
    fn is_federator(&mut self) -> bool {
        let active = self.active_federation();
        let retiring = self.retiring_federation();
        self.is_member(&active) || retiring.is_some_and(|retiring| self.is_member(&retiring))
    }

    /// Whether the caller is a member of this federation.
    fn is_member(&self, federation: &Federation) -> bool {
        members::accounts(federation).any(|account| self.call.caller == Some(account))
    }
}
