//! JSON of the RPC interface: untrusted input from upstreams and our own answers.
//!
//! Reading (`members`, `slots`, `field`, `read_*`): an object is split into named fields kept as raw text, so that numbers of any
//! size and notation stay exact and unknown fields cost nothing. The JSON does not show everything that is hashed (the byte
//! form of numbers, an uncle's own uncle count, the full `v` on old nodes). The readers try the possible
//! values until the hash equals the claimed one.
//!
//! Writing (`write_*`, `object_text`): objects are built from decoded parts, with the field order and formats of the reference node.

mod error;
mod field;
mod members;
#[cfg(any(feature = "light", feature = "local"))]
mod object;
#[cfg(feature = "local")]
mod object_text;
mod read_header;
mod read_receipt;
mod read_transaction;
mod slots;
mod write_block;
mod write_head;
mod write_hex;
mod write_transaction;

pub use error::JsonError;
pub use members::{MembersError, for_each_member};
#[cfg(any(feature = "light", feature = "local"))]
pub use object::Object;
#[cfg(feature = "local")]
pub(crate) use object_text::ObjectText;
pub use read_header::{JsonBlock, JsonTransactions, block_from_json, block_with_header, header_from_json};
pub use read_receipt::{log_from_json, receipt_from_json};
pub use read_transaction::{location_from_json, transaction_from_json};
pub(crate) use slots::{MemberNames, RawMember, read_slots, slots};
pub use write_block::{BlockParts, RpcBlock, RpcTransactions};
pub use write_head::RpcHead;
pub use write_hex::{Data, Quantity};
pub use write_transaction::{Location, RpcLog, RpcReceipt, RpcTransaction};
