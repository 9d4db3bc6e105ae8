//! The block of another network on which a development chain begins (a fork), with its state and its ancestors: the data fetched so far,
//! and the functions that fetch more.
//!
//! Nothing here waits. A run of a message notes the data that it has found missing ([`MissingNotes`]). A fetch is a function that runs
//! again with each response, until it needs no further one ([`Exchanges`]); the host sends the requests. Then the host discards the
//! result of the first run, and runs the message again ([`Rounds`]).
//!
//! | file | holds |
//! |---|---|
//! | `state` | the fetched data of the block and its ancestors, as the chain reads them |
//! | `missing` | the data that runs have found missing |
//! | `exchanges` | requests to upstreams, and their responses |
//! | `search` | the search for the block on which a fork begins |
//! | `rounds` | rounds of one message: limits, and the fetches between its runs |
//! | `values`, `headers`, `blocks` | fetches of state, of headers, and of transactions, receipts and uncles |
//! | `cache` | data that the host stores for later runs of the program |
//! | `error` | the errors of a fork |
//! | `growing_map` | a map that only grows |

mod blocks;
mod cache;
mod error;
mod exchanges;
mod growing_map;
mod headers;
mod missing;
mod rounds;
mod search;
mod state;
mod values;

pub use cache::{Entry, ForkCache, HostCache};
pub use error::ForkError;
pub use exchanges::{Exchanges, Fetched, Stop};
pub use headers::{is_replaced, trusted_block};
pub use missing::{Missing, MissingNotes, MissingSet, OtherStart, SharedNotes, Wanted};
pub use rounds::{RESET_SECONDS, Rounds};
pub use search::{ForkBlock, MOST_FOR_REMASC, Search};
pub use state::ForkState;
pub use values::FetchedState;

/// Limit of the time of one message in seconds, the same as for messages of a light client.
pub const RUN_SECONDS: u64 = 60;
