//! Follows another node by executing its blocks: fetches and imports them, and compares all roots. A window here is a run of up to
//! [`WINDOW`] consecutive blocks that are requested together, not the window from which a light client starts.
//!
//! | file | contents |
//! |---|---|
//! | `driver` | the loop: imports windows of blocks, and steps back at a fork |
//! | `prefetch` | fetches windows while earlier ones are imported |
//! | `fetch`, `whole` | blocks from an upstream: windows by number; single blocks, and headers that the JSON states in part |
//! | `error`, `progress` | why a block cannot be fetched; the bar or log lines of a long import |

mod driver;
mod error;
mod fetch;
mod prefetch;
mod progress;
mod whole;

pub use driver::{FollowError, FollowOptions, FollowTarget, follow};
pub use error::FetchError;
pub use fetch::{Fetched, WINDOW, fetch_blocks, fetch_bodies, fetch_headers, fetch_uncles};
pub use whole::{fetch_block, fetch_header};
