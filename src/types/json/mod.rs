//! The JSON of nodes: hostile input, and our own answers.
//!
//! Reading: objects are split into named fields kept as raw text, so that numbers of any size
//! and in any notation stay exact and unknown fields cost nothing. What a node hides (the raw
//! bytes of numbers, an uncle's own uncle count, an old node's `v`) is tried out until the hash
//! is the claimed one.
//!
//! Writing: objects built from decoded parts, with the reference's field order and formats.

mod error;
mod field;
mod read_header;
mod read_receipt;
mod read_transaction;
mod write_block;
mod write_head;
mod write_hex;
mod write_transaction;

pub use error::JsonError;
pub use read_header::{block_from_json, block_with_header, header_from_json, JsonBlock, JsonTransactions};
pub use read_receipt::{log_from_json, receipt_from_json};
pub use read_transaction::{location_from_json, transaction_from_json};
pub use write_block::{BlockParts, RpcBlock, RpcTransactions};
pub use write_head::RpcHead;
pub use write_hex::{Data, Quantity};
pub use write_transaction::{Location, RpcLog, RpcReceipt, RpcTransaction};
