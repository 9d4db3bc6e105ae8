//! Tests that start the program `rootlight`.

#[path = "../common/mod.rs"]
mod common;

mod cli;
mod closed_log;
mod dev;
mod doctor;
mod errors;
#[cfg(feature = "cluster")]
mod index;
mod inputs;
mod keys;
mod light;
mod manual;
mod names;
mod operations;
mod peers;
#[cfg(feature = "js-tracers")]
mod scripts;
mod tls;
mod verify;
mod verify_table;
