//! Upstreams that lie, omit, stall and disagree, under a simulated clock. Each threat of docs/attacks.md has its test
//! here; `scenarios` draws mixtures of them from seeds.

#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod actor;
mod chains;
mod facts;
mod kept;
mod mainnet;
mod network;
mod scenarios;
mod served;

use support::{shared, upstream::RecordedUpstream};

/// The recorded development chain, cut off at a height.
fn recording(head: u64) -> Option<RecordedUpstream> {
    Some(RecordedUpstream::open(&shared()?.join("vectors/chain"), head))
}
