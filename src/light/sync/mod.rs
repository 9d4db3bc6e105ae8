//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! There is one state machine per upstream, and one chain for all of them. The host runs a loop for each upstream:
//! ```text
//! loop { match sync.next(i, now) { Fetch(requests) => sync.feed(i, ask(i, requests), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is kept. A fault of one upstream stops its own machine, never the others.

mod above;
mod backfill;
mod backfill_range;
mod base;
mod elect;
mod exchange;
mod height;
mod keep;
#[cfg(test)]
mod keep_test;
mod lease;
mod line;
mod machine;
mod options;
mod peer;
mod phase;
mod proposal;
mod propose;
mod standing;
#[cfg(test)]
mod standing_test;
mod state;
#[cfg(feature = "hosted")]
mod told;
mod turns;
mod uncles;

pub use keep::{KeptFault, MAX_PAGE_BYTES, PAGE_HEADERS, Page, REPROVEN, ReadPage};
pub use options::{SyncOptions, SyncStep};
pub use peer::{Capabilities, DEFAULT_BATCH};
pub use standing::{Observation, UpstreamState};
pub use state::{HeaderSync, Restoring};
#[cfg(feature = "hosted")]
pub use told::{MAX_TOLD, ToldError};
