//! Follows another node by executing its blocks: fetches and imports them, and compares all roots.

mod ahead;
mod driver;
mod fetch;
mod progress;

pub use driver::{FollowError, FollowOptions, Target, follow};
pub use fetch::{FetchError, Fetched, fetch_blocks, fetch_uncles};
#[cfg(feature = "cluster")]
pub(crate) use fetch::{WINDOW, fetch_bodies};
