//! Bridge methods that write.

pub(super) mod change;
mod election;
mod events;
pub(super) mod headers;
pub(super) mod lists;
pub(super) mod release;
pub(super) mod union;
pub(super) mod update;
pub(super) mod votes;

use alloy_primitives::Address;

use super::session::{Bridge, Done};
use crate::evm::precompiles::abi::int_result;

/// A number as result.
fn code(number: i64) -> Done {
    Ok(Some(int_result(number)))
}

impl Bridge<'_> {
    /// The caller as events have it.
    fn caller(&self) -> Address {
        self.call.caller.unwrap_or_default()
    }

    /// Whether one of these calls.
    fn is_any(&self, of: &[Address]) -> bool {
        self.call.caller.is_some_and(|caller| of.contains(&caller))
    }

    /// Whether a member of the active or the retiring federation calls.
    fn is_federator(&mut self) -> bool {
        let Some(caller) = self.call.caller else { return false };
        let active = self.active_federation();
        let retiring = self.retiring_federation();
        [Some(active), retiring]
            .iter()
            .flatten()
            .any(|federation| super::members::accounts(federation).any(|account| account == caller))
    }
}
