//! Rootstock's peer-to-peer protocol, without I/O: machines that take bytes and give bytes.
//!
//! All bytes from a peer are untrusted. A message that decodes is well formed, no more: what it says is proven by the
//! crate `rootlight`, against headers whose proof of work was checked.
//!
//! The protocol is described by its reference implementation only; no RSKIP covers it.
#![cfg_attr(not(test), no_std)]
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

pub mod chunk;
pub mod discovery;
pub mod header;
pub mod message;
pub mod network;
pub mod rlpx;
pub mod session;
