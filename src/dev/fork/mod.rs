//! The block of another network on which a chain begins: what is known of it, and how the rest is fetched.
//!
//! Nothing here waits. A run of the chain notes what it has found missing ([`MissingNotes`]); fetching that is a function that
//! runs again with each response, until it needs no further one ([`Exchanges`]). The host sends the requests.
//!
//! | file | holds |
//! |---|---|
//! | `state` | what is known of the block, as the chain reads it |
//! | `missing` | what runs have found missing |
//! | `exchanges` | requests to upstreams, and their responses |
//! | `search` | the search for the block |
//! | `rounds` | rounds of one message |
//! | `values`, `headers`, `blocks` | state, headers, and blocks below, that are fetched |
//! | `kept` | blocks that the host keeps for later runs |
//! | `error` | why something cannot be had |
//! | `growing_map` | a map that only grows |

mod blocks;
mod error;
mod exchanges;
mod growing_map;
mod headers;
mod kept;
mod missing;
mod rounds;
mod search;
mod state;
mod values;

pub use error::ForkError;
pub use exchanges::{Exchanges, Fetched, Stop};
pub use headers::{is_replaced, trusted_block};
pub use kept::{Entry, ForkKeeper, Keeper};
pub use missing::{Missing, MissingNotes, MissingSet, OtherStart, SharedNotes, Wanted};
pub use rounds::{RESET_SECONDS, Rounds};
pub use search::{ForkBlock, MOST_FOR_REMASC, Search};
pub use state::ForkState;
pub use values::Learned;

/// Limit of the time of one message in seconds, as of a light client's.
pub const RUN_SECONDS: u64 = 60;
