//! Bridge methods that write.

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
        let active = self.active_federation();
        let retiring = self.retiring_federation();
        self.is_member(&active) || retiring.is_some_and(|retiring| self.is_member(&retiring))
    }

    /// Whether a member of a federation calls.
    fn is_member(&self, federation: &Federation) -> bool {
        members::accounts(federation).any(|account| self.call.caller == Some(account))
    }
}
