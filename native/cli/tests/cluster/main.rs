//! Tests of a service on many machines, with a real store and a real PostgreSQL server.
#![cfg(feature = "cluster")]

mod admin;
mod admin_program;
// What front ends decide, for the model of them.
mod agreement;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod fan_out;
mod filters;
mod foreign;
mod front_ends;
#[allow(dead_code)]
#[path = "../../../cluster/src/serve/head_agreement.rs"]
mod head_agreement;
// The model of the script that counts.
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
