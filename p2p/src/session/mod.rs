//! The base protocol over a connection: HELLO, STATUS, PING and DISCONNECT, up to the messages of `rsk/62`.
//!
//! [`Session`] is the whole of it. Source: the reference implementation (`org/ethereum/net/p2p`, `EthMessageCodes`,
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
