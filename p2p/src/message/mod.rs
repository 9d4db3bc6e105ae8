//! Messages of the sub-protocol `rsk/62`, which all share code 0x18.
//!
//! | file | contents |
//! |---|---|
//! | `envelope` | [`Message`]: the type byte, the body, and the id of requests and responses |
//! | `request`, `response`, `push` | the messages by their use |
//! | `block` | blocks, bodies and header extensions, split into their parts |
//! | `items` | lists of RLP items that are not copied |
//! | `field`, `limits`, `error` | single fields, limits, errors |
//!
//! A message borrows from the received bytes. Headers, transactions and blocks stay in RLP, and are not compared with the request.

mod block;
mod envelope;
mod error;
mod field;
mod items;
pub mod limits;
mod push;
mod request;
mod response;

pub use block::{BlockParts, Body, Extension, ExtensionFields};
pub use envelope::{Message, RSK_MESSAGE};
pub use error::MessageError;
pub use items::{Items, list_payload, string_payload};
pub use push::{Parent, Push, Status};
pub use request::{ChunkRequest, Request};
pub use response::{Chunk, Response, SnapBlocks, SnapStatus};
