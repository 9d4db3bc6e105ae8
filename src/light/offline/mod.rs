//! Offline checks: what a document that somebody handed over proves, without any upstream.
//!
//! A document is JSON text. Hexadecimal strings carry `0x`; a JSON-RPC answer may stand wherever its `result` may. The
//! outcome is a [`Report`] of what was shown, by which rules and in which order, or a [`Failure`] that names the rule
//! that is broken.

mod account;
mod document;
mod receipt;
mod report;

pub use account::check_account;
pub use receipt::check_receipt;
pub use report::{Check, Facts, Failure, Report, Rule};
