//! 0x01000006, the Bridge to Bitcoin.
//!
//! This module contains a table of all methods with their prices and rules, the methods that read Bridge
//! storage, and those that write it and are simulated. All other methods fail, or abort the run and name the method; docs/limits.md lists them.

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
