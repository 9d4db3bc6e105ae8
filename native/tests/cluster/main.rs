//! Tests of a service on many machines, with a real store and a real PostgreSQL server.
#![cfg(feature = "cluster")]

mod commands;
// The model of the script that counts.
#[allow(dead_code)]
#[path = "../../src/keys/gcra.rs"]
mod gcra;
mod keys;
mod quotas;
mod servers;
mod setup;
mod store;
