//! The message STATUS of `rsk`: a node's network, genesis block and best block.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};
use rootlight::types::FieldError;
use rootlight::types::rlp::{ListBuf, RlpReader, fixed, put_str, put_u64, put_u256, uint, uint63};

/// The message with code 0x10, once from each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    /// Version of `rsk`.
    pub version: u64,
    /// The number of the network: 775 on mainnet, 8100 on testnet.
    pub network_id: u64,
    /// Total difficulty of the best block, as the node states it; not proven.
    pub total_difficulty: U256,
    /// Hash of the best block, as the node states it; not proven.
    pub best_hash: B256,
    /// Hash of block 0.
    pub genesis_hash: B256,
}

impl SessionStatus {
    /// Reads the payload of a STATUS.
    pub fn decode(payload: &[u8]) -> Result<Self, FieldError> {
        let mut items = RlpReader::list(payload, "status")?;
        let status = Self {
            version: uint63(items.next_str("status.version")?, "status.version")?,
            network_id: uint63(items.next_str("status.networkId")?, "status.networkId")?,
            total_difficulty: uint(items.next_str("status.totalDifficulty")?, "status.totalDifficulty")?,
            best_hash: fixed(items.next_str("status.bestHash")?, "status.bestHash")?.into(),
            genesis_hash: fixed(items.next_str("status.genesisHash")?, "status.genesisHash")?.into(),
        };
        items.finish("status")?;
        Ok(status)
    }

    /// The payload of a STATUS.
    pub fn encode(&self) -> Vec<u8> {
        let mut list = ListBuf::with_capacity(128);
        put_u64(list.items(), self.version);
        put_u64(list.items(), self.network_id);
        put_u256(list.items(), &self.total_difficulty);
        put_str(list.items(), self.best_hash.as_slice());
        put_str(list.items(), self.genesis_hash.as_slice());
        list.into_list()
    }
}
