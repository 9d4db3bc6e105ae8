//! Rootlight core: a verifying light client for Rootstock.
//!
//! No I/O, no clock, no threads: bytes come in, proven facts and JSON-RPC answers come out.
//! Layers, each knowing only those below it:
//! `rpc -> engine -> dev -> local -> light -> exec -> evm -> verify -> state -> consensus ->
//! trie -> types`.
#![cfg_attr(not(test), no_std)]
// Without local chains much of their code has no caller; linkers drop it.
#![cfg_attr(not(feature = "local"), allow(dead_code))]
// Bytes from outside must never panic: nothing here may unwrap, index or overflow unchecked.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::todo,
        clippy::unimplemented
    )
)]

extern crate alloc;

pub mod consensus;
pub mod dev;
pub mod engine;
pub mod evm;
pub mod exec;
pub mod light;
pub mod local;
pub mod rpc;
pub mod state;
pub mod trie;
pub mod types;
pub mod verify;
