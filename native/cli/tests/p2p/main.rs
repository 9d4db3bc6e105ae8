//! Light clients whose upstreams are nodes of the peer-to-peer network: a server of this project on recorded and on
//! development chains.

#[path = "../common/mod.rs"]
mod common;

mod balance;
mod chain;
mod convict;
mod dev;
mod find;
mod hostile;
mod hostile_peer;
mod large_state;
mod liar;
mod many_headers;
mod methods;
mod receipts;
mod recorded;
mod sessions;
mod support;
mod turns;
mod work;
