//! Settings of a session: our HELLO and status, and the demands on the peer's.

use alloc::string::String;

use alloy_primitives::{B256, U256};

use super::hello::RSK_VERSION;
use super::status::SessionStatus;
use crate::rlpx::MAX_FRAME_READ;

/// Limits of one connection over any minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Most messages of `rsk` that we send. The reference reads 1,001 in a minute of its clock and drops further ones without an answer.
    pub sent: u64,
    /// Most messages of any kind that are received. Most of them are gossip: announcements that nodes send unasked, one transaction at a
    /// time. The limit is far above the gossip of a network. At the limit, decrypting short messages takes some percent of a processor.
    pub received: u64,
    /// Most bytes that are received, gossip included. The responses to 1,000 requests of most headers or blocks have less than 300 MB.
    pub received_bytes: u64,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { sent: 1000, received: 240_000, received_bytes: 512 << 20 }
    }
}

/// Our HELLO and STATUS, and the demands on the peer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// Our client's name: printable ASCII, at most 128 characters.
    pub client_id: String,
    /// Our TCP port, 0 if we do not listen.
    pub listen_port: u16,
    /// Whether our HELLO offers `snap/1`: we serve state chunks.
    pub serves_snap: bool,
    /// The number of the network, which must be the same in STATUS of both sides.
    pub network_id: u64,
    /// Hash of block 0, which must be the same in STATUS of both sides.
    pub genesis_hash: B256,
    /// Our best block, in STATUS. A light client states the genesis block, so that peers send it no requests.
    pub best_hash: B256,
    /// Total difficulty of our best block.
    pub total_difficulty: U256,
    /// Most bytes of a message that are read once the session is ready, at most 2^24 - 1.
    pub read_limit: usize,
    /// Limits of messages and bytes over any minute.
    pub limits: RateLimits,
}

impl SessionConfig {
    /// A client that serves nothing, and states the genesis block as its best one.
    pub fn new(client_id: &str, network_id: u64, genesis_hash: B256, genesis_difficulty: U256) -> Self {
        Self {
            client_id: client_id.into(),
            listen_port: 0,
            serves_snap: false,
            network_id,
            genesis_hash,
            best_hash: genesis_hash,
            total_difficulty: genesis_difficulty,
            read_limit: MAX_FRAME_READ,
            limits: RateLimits::default(),
        }
    }

    /// Our STATUS.
    pub(super) const fn status(&self) -> SessionStatus {
        SessionStatus {
            version: RSK_VERSION,
            network_id: self.network_id,
            total_difficulty: self.total_difficulty,
            best_hash: self.best_hash,
            genesis_hash: self.genesis_hash,
        }
    }
}
