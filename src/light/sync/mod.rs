//! Header synchronization: from a checkpoint to the head of the heaviest proven chain, with several upstreams at once.
//!
//! There is one state machine per upstream, and one chain for all of them. The host runs a loop for each upstream:
//! ```text
//! loop { match sync.next(i, now) { Fetch(requests) => sync.feed(i, ask(i, requests), now), Wait(millis) => sleep(millis) } }
//! ```
//! Every header is verified before it is added. A fault of one upstream stops its own machine, never the others.
//!
//! The chain is a `FollowedChain`. An upstream is a `SyncPeer`: the source that responds (`SourceState`), the position of its next
//! headers (`HeaderSearch`) and the present requests (`Phase`). `phase.rs` lists the phases; each has a file that takes its
//! responses. A phase may change only what its `UpstreamExchange` has; the methods are in `exchange.rs` and, for leases, in `lease.rs`.
//! The machine also has a `ChainStart` (which block the chain starts at, and the proposals of the upstreams), a `LeaseState`
//! (the upstream that fetches many headers), a `RestoreState` (headers of an earlier run) and a `BitcoinFollower` (the judgement of the
//! chain by Bitcoin's).

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
