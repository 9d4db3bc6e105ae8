//! Tests of upstreams, of the light client that uses them, and of following a chain.

#[path = "../common/mod.rs"]
mod common;

mod bitcoin;
mod bitcoin_judge;
mod default_start;
mod follow;
mod follow_branches;
mod fork;
mod fork_again;
mod fork_faults;
mod fork_turns;
mod proofs;
mod propose;
mod renewal;
mod replay;
mod service;
mod spread;
mod store;
mod upstream_http;
mod upstream_ws;
mod warm_start;
mod window;
#[cfg(feature = "cluster")]
mod with_index;
