//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! One state machine per upstream over one chain. For each upstream the host runs a loop of its own:
//! ```text
//! loop { match sync.next(i, now) { Fetch(calls) => sync.feed(i, ask(i, calls), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is kept. What an upstream does wrong stops its own machine, never the others.

mod below;
mod below_range;
mod elect;
mod headers;
mod keep;
#[cfg(test)]
mod keep_test;
mod machine;
mod peer;
mod standing;
#[cfg(test)]
mod standing_test;
mod state;
mod uncles;

pub use keep::{KeptFault, PAGE_HEADERS, Page, REPROVEN, ReadPage};
pub use peer::{Capabilities, DEFAULT_BATCH};
pub use standing::{Observation, UpstreamState};
pub use state::{Restoring, Sync, SyncOptions, SyncStep};
