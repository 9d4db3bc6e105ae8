//! Chains as services: what answers the messages that a server reads.
//!
//! | module | contents |
//! |---|---|
//! | [`light`] | the light client, and upstreams that are not asked while they are banned ([`ban_guard`]) |
//! | [`local`], [`follow`] | a chain that is executed here: made by callers, or followed |
//! | [`fork`] | what a development chain reads of the network on which it begins |
//! | [`bitcoin_chain`] | a Bitcoin chain beside a development chain |
//! | [`store`], [`index`] | its database, and its index of logs |
//! | [`scripts`] | tracers in JavaScript |
//! | [`sidecar`] | proofs beside a full node |
//! | [`peer_server`] | a server for peers |

pub mod ban_guard;
pub mod bitcoin_chain;
pub mod follow;
pub mod fork;
pub mod index;
pub mod light;
pub mod local;
pub mod peer_server;
mod progress;
mod recovery;
#[cfg(feature = "rskj-store")]
pub mod rskj_store;
pub mod scripts;
pub mod sidecar;
pub mod store;
