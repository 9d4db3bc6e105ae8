//! Settings of a session: our HELLO and status, and the demands on the peer's.

use alloc::string::String;

use alloy_primitives::{B256, U256};

use super::hello::RSK_VERSION;
use super::status::SessionStatus;
use crate::rlpx::MAX_FRAME_READ;

/// Limits of one connection over any minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Messages of `rsk` that we send. The reference reads 1,001 in a minute of its clock and drops the rest without a
    /// word, so 1,000.
    pub sent: u64,
    /// Messages of any kind that are taken in. Most of them are gossip, which nodes send one transaction at a time and
    /// which no caller asked for: the limit is far above what a network sends, and what arrives below it is cheap to drop. At
    /// this limit decrypting short messages takes some percent of a processor.
    pub received: u64,
    /// Bytes that are taken in, gossip among them. Answers to 1,000 requests of the longest runs of headers or blocks have
    /// less than 300 MB.
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
    /// Whether we offer `snap/1`.
    pub serves_snap: bool,
    /// The network, in STATUS of both sides.
    pub network_id: u64,
    /// Hash of block 0, in STATUS of both sides.
    pub genesis_hash: B256,
    /// Our best block, in STATUS. A light client says the genesis block, which draws no requests.
    pub best_hash: B256,
    /// Total difficulty of our best block.
    pub total_difficulty: U256,
    /// Most bytes of a message that are read once the session is ready, at most 2^24 - 1.
    pub read_limit: usize,
    /// Limits by time.
    pub limits: RateLimits,
}

impl SessionConfig {
    /// A client that serves nothing and says the genesis block is its best.
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
