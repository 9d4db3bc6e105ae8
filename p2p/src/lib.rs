//! Rootstock's peer-to-peer protocol, without I/O: machines that take bytes and give bytes.
//!
//! [`discovery`] finds nodes. A connection to a node has three layers: [`rlpx`] encrypts it, [`session`] agrees on the protocol, and
//! [`message`] reads and writes the messages. [`chunk`] proves ranges of state, and [`header`] expands headers.
//!
//! All bytes from a peer are untrusted. Decoding checks only that a message is well formed; the crate `rootlight` proves its contents
//! against headers whose proof of work was checked.
//!
//! Only the reference implementation (rskj, "the reference" in this crate) describes the protocol; no RSKIP covers it.
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
