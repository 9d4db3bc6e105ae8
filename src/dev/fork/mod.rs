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
//! | `values`, `headers`, `blocks` | state, headers, and blocks below, that are fetched |
//! | `error` | why something cannot be had |
//! | `growing_map` | a map that only grows |

mod blocks;
mod error;
mod exchanges;
mod growing_map;
mod headers;
mod missing;
mod state;
mod values;

use alloy_primitives::B256;

pub use blocks::fetch_blocks;
pub use error::ForkError;
pub use exchanges::{Exchanges, Fetched, Stop};
pub use headers::{MOST_FOR_REMASC, ancestors, below, is_replaced, nearest, trusted_block, trusted_header};
pub use missing::{Missing, MissingNotes, MissingSet, OtherStart, SharedNotes, Wanted};
pub use state::ForkState;
pub use values::{Learned, fetch_values};

/// The block on which a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkBlock {
    /// The newest verified one.
    Head,
    /// The block at a height of the verified chain.
    Number(u64),
    /// A trusted block, by height and hash.
    Trusted(u64, B256),
}

/// Most rounds of requests for one message. Each of them gets what the run before it has missed; code that walks through a list
/// misses one slot at a time.
pub const MOST_ROUNDS: usize = 1_000;

/// Limit of the time of one message in seconds, as of a light client's.
pub const RUN_SECONDS: u64 = 60;

/// Longest time in seconds for finding another block to begin on, which a light client verifies.
pub const RESET_SECONDS: u64 = 600;
