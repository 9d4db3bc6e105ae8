//! Following another node by executing its blocks: fetch, import, compare, go on.

mod fetch;

pub use fetch::{fetch_blocks, FetchError};
