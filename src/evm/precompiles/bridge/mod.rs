//! 0x01000006, the Bridge to Bitcoin: the native contract that locks bitcoins (peg-in) and releases them (peg-out). A federation holds the
//! bitcoins.
//!
//! `methods` is the table of all methods with their prices and rules, `dispatch` the entry of a call, `write` has the simulated methods
//! that write the Bridge's cells, and the other files have those that read them. All other methods fail, or abort the run and name the
//! method; docs/limits.md lists them.

mod address;
mod checkpoints;
mod constants;
mod dispatch;
mod federation;
mod members;
mod methods;
mod payees;
mod queue;
mod reads;
mod session;
mod store;
mod whitelist;
mod write;

pub(super) use dispatch::{price, run};
pub use payees::{federation_payees, is_free_transaction};
use session::{Bridge, BridgeResult};

use super::{NativeCall, NativeFailure, NativeHost};
