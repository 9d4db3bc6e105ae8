//! Front ends without state of their own: `rootlight serve`.
//!
//! A front end is a light client whose upstreams are the backends, so it verifies the responses of backends as those of any
//! upstream. The state that front ends share is in a store ([`crate::store`]): announcements of new blocks, the block that all
//! front ends show, filters, cached answers, and the transactions that callers have sent. [`AdminPage`] serves operators on a port of its
//! own.

mod admin;
mod answer_cache;
mod backend;
mod cache_sizes;
mod calls;
mod fan_out;
mod filters;
mod front_end;
mod head_agreement;
mod heads;
mod next_block_wait;
mod sent_transactions;

pub use admin::{AdminPage, AdminParts, AdminToken, TokenError};
pub use backend::NewBlocks;
pub use cache_sizes::CacheSizes;
pub use front_end::{FrontEnd, FrontEndParts};

/// Reads a message as a server does.
#[cfg(test)]
fn read(message: &[u8]) -> rootlight::rpc::Message {
    use rootlight::rpc::envelope::MAX_BATCH;
    rootlight::rpc::Message::read(message, rootlight_server::methods::dispatcher(), MAX_BATCH)
}
