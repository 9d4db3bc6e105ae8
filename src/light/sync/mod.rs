//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! There is one state machine per upstream, and one chain for all of them. The host runs a loop for each upstream:
//! ```text
//! loop { match sync.next(i, now) { Fetch(requests) => sync.feed(i, ask(i, requests), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is kept. A fault of one upstream stops its own machine, never the others.

mod backfill;
mod backfill_range;
mod elect;
mod headers;
mod keep;
#[cfg(test)]
mod keep_test;
mod line;
mod machine;
mod peer;
mod standing;
#[cfg(test)]
mod standing_test;
mod state;
#[cfg(feature = "hosted")]
mod told;
mod uncles;

pub use keep::{KeptFault, MAX_PAGE_BYTES, PAGE_HEADERS, Page, REPROVEN, ReadPage};
pub use peer::{Capabilities, DEFAULT_BATCH};
pub use standing::{Observation, UpstreamState};
pub use state::{HeaderSync, Restoring, SyncOptions, SyncStep};
#[cfg(feature = "hosted")]
pub use told::{MAX_TOLD, ToldError};
