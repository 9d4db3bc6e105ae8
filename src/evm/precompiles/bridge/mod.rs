//! 0x01000006, the Bridge to Bitcoin.
//!
//! A table of all methods with their prices and rules; those that read Bridge storage; and, with
//! the feature `bridge-write`, those that write it as far as they are simulated. What is not
//! fails, or ends the run, by name; docs/limits.md has the list.

mod address;
mod checkpoints;
mod constants;
mod federation;
mod members;
mod methods;
mod payees;
mod queue;
mod reads;
mod session;
mod store;
mod whitelist;
#[cfg(feature = "bridge-write")]
mod write;

use alloc::vec::Vec;

use alloy_primitives::Bytes;

pub use payees::{federation_payees, is_free_transaction};
pub(super) use session::{price, run};
use session::{Bridge, Done};

use super::{NativeCall, NativeHost, Refusal};

/// Cells that pricing a call leaves to be written once the call has gone well.
pub(super) type Carried = Vec<(alloy_primitives::U256, Bytes)>;
