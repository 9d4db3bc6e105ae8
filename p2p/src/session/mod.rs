//! The base protocol over an encrypted connection (HELLO, PING and DISCONNECT) and STATUS of `rsk/62`. The other messages of `rsk/62` are
//! passed on as bytes, which [`crate::message`] reads.
//!
//! [`Session`] does all of it. Source: the reference implementation (`org/ethereum/net/p2p`, `EthMessageCodes`,
//! `RskWireProtocol`).

mod close;
mod config;
mod disconnect;
mod hello;
mod machine;
mod rate;
mod status;

pub use close::{CloseReason, SendError};
pub use config::{RateLimits, SessionConfig};
pub use disconnect::DisconnectReason;
pub use hello::{Capability, Hello, RSK_VERSION, SNAP_VERSION};
pub use machine::{Event, HANDSHAKE_TIMEOUT_MS, Peer, SILENCE_TIMEOUT_MS, Session};
pub use rate::RateWindow;
pub use status::SessionStatus;
