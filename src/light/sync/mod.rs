//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! There is one state machine per upstream, and one chain for all of them. The host runs a loop for each upstream:
//! ```text
//! loop { match sync.next(i, now) { Fetch(requests) => sync.feed(i, ask(i, requests), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is kept. A fault of one upstream stops its own machine, never the others.
//!
//! The chain is a `FollowedChain`. An upstream is a `SyncPeer`: who answers (`SourceState`), where its headers are looked for (`HeaderSearch`)
//! and what it is asked for (`Phase`). `phase.rs` lists the phases; the file of each says what follows from the
//! responses. An `UpstreamExchange` is all that a phase may touch; its methods are in `exchange.rs` and, for turns, in `lease.rs`.
//! Beside these, the machine has `ChainStart` (which block the chain starts at, and the proposals of the upstreams), `LeaseState`
//! (who fetches many headers), `RestoreState` (what is left of an earlier run) and a `BitcoinFollower` (what Bitcoin says of the chain).

mod above;
mod ask_bitcoin;
#[cfg(test)]
mod ask_bitcoin_test;
mod backfill;
mod backfill_range;
mod base;
mod bitcoin;
mod bitcoin_dates;
mod bitcoin_search;
mod elect;
mod exchange;
mod followed;
mod height;
mod host_headers;
mod judge;
mod lease;
mod lease_state;
mod machine;
mod options;
mod pages;
#[cfg(test)]
mod pages_test;
mod peer;
mod phase;
mod proposal;
mod propose;
mod ranking;
#[cfg(test)]
mod ranking_test;
mod restore;
mod state;
mod store;
#[cfg(test)]
mod stored_bitcoin_test;
mod uncles;
mod window;
mod window_judge;
mod window_record;

pub use bitcoin_dates::BitcoinDates;
pub use options::{SyncOptions, SyncStep};
pub use pages::{
    HeaderPage, HeaderStoreFault, MAX_PAGE_BYTES, PAGE_HEADERS, REPROVEN, ReadPage, WINDOW_PAGES,
};
pub use peer::Capabilities;
pub use ranking::{Observation, UpstreamState};
pub use state::HeaderSync;
pub use store::Restoring;
pub use window_judge::{WindowJudge, WindowVerdict};
pub use window_record::{ProvenMark, WindowRecord, WindowRecordError};
