//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! There is one state machine per upstream, and one chain for all of them. The host runs a loop for each upstream:
//! ```text
//! loop { match sync.next(i, now) { Fetch(requests) => sync.feed(i, ask(i, requests), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is kept. A fault of one upstream stops its own machine, never the others.
//!
//! The chain is a `Line`. An upstream is a `Peer`: who answers (`Source`), where its headers are looked for (`Search`)
//! and what it is asked for (`Phase`). `phase.rs` lists the phases; the file of each says what follows from the
//! responses. An `Exchange` is all that a phase may touch; its methods are in `exchange.rs` and, for turns, in `lease.rs`.
//! Beside these, the machine has `Start` (which block the chain starts at, and the proposals of the upstreams), `Turns`
//! (who fetches many headers) and `Store` (what is left of an earlier run).

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
mod restore;
mod standing;
#[cfg(test)]
mod standing_test;
mod state;
mod store;
mod told;
mod turns;
mod uncles;

pub use keep::{KeptFault, MAX_PAGE_BYTES, PAGE_HEADERS, Page, REPROVEN, ReadPage};
pub use options::{SyncOptions, SyncStep};
pub use peer::{Capabilities, DEFAULT_BATCH};
pub use standing::{Observation, UpstreamState};
pub use state::HeaderSync;
pub use store::Restoring;
