//! The chains that answer JSON-RPC: each is a service (`rootlight_server::service::Service`), to which a server passes the messages of
//! its callers.
//!
//! | module | contents |
//! |---|---|
//! | [`light`] | the light client, and upstreams that are not asked while they are banned ([`ban_guard`]) |
//! | [`local`], [`follow`] | a chain that this program executes: mined by callers, or imported from another node |
//! | [`fork`] | what a development chain reads of the network on which it begins |
//! | [`bitcoin_chain`] | a Bitcoin chain beside a development chain |
//! | [`store`], [`index`] | the database of an executed chain, and its index of logs |
//! | [`scripts`] | tracers in JavaScript |
//! | [`sidecar`] | proofs of the states of a full node beside this program |
//! | `rskj_store` | the trie store of the reference node (rskj), for the sidecar: with the feature `rskj-store`, which needs RocksDB |
//! | [`peer_server`] | a server for nodes of the peer-to-peer network |

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
