//! Following another node by executing its blocks: fetch, import, compare, go on.

mod driver;
mod fetch;
mod progress;

pub use driver::{FollowError, FollowOptions, Target, follow};
pub use fetch::{FetchError, Fetched, fetch_blocks, fetch_uncles};
