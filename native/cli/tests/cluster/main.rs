//! Tests of a service on many machines, with a real store and a real PostgreSQL server.
#![cfg(feature = "cluster")]

mod admin;
mod admin_program;
mod agreement;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod fan_out;
mod filters;
mod foreign;
mod front_ends;
// The decisions of front ends, for the model of them in `agreement`.
#[allow(dead_code)]
#[path = "../../../cluster/src/serve/head_agreement.rs"]
mod head_agreement;
// Also for the model in `agreement`.
#[allow(dead_code)]
mod heads;
mod kept;
mod keys;
mod million;
mod pending;
mod promotion;
mod quotas;
mod serve;
mod servers;
mod setup;
mod stalls;
mod store;
mod tls;
mod traces;
mod usage;
