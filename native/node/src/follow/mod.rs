//! Follows another node by executing its blocks: fetches and imports them, and compares all roots.

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
