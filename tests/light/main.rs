//! Tests of the light client and of the offline verifier.

#[path = "../support/mod.rs"]
mod support;

mod bitcoin_window;
mod blame;
mod client;
mod differential;
mod filters;
mod hosts;
mod offline;
mod own_sends;
mod places;
mod policy;
mod reference;
mod rounds;
mod scripts;
mod simulations;
mod sync;
mod unsimulated;
