//! Following another node by executing its blocks: fetch, import, compare, go on.

mod driver;
mod fetch;
mod progress;

pub use driver::{follow, FollowError, FollowOptions, Target};
pub use fetch::{fetch_blocks, fetch_uncles, FetchError, Fetched};
