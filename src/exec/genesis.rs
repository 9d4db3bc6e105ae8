//! Block 0 and its state, with which an executed chain begins.

use crate::consensus::{Genesis, GenesisError, Network};
use crate::trie::Trie;
use crate::types::SealedHeader;

/// Block 0 of a network.
#[derive(Clone, Debug)]
pub struct GenesisBlock {
    /// Header of the block.
    pub header: SealedHeader,
    /// State after the block.
    pub state: Trie,
}

impl GenesisBlock {
    /// The regtest genesis of the reference node, byte for byte.
    #[must_use]
    pub fn regtest() -> Self {
        Self::new(&Genesis::regtest(), &Network::regtest())
    }

    /// Block 0 of a genesis on a network.
    #[must_use]
    pub fn new(genesis: &Genesis, network: &Network) -> Self {
        Self { header: genesis.header(network), state: genesis.computed_state(network) }
    }

    /// Block 0 of an allocation file in the format of the reference node.
    ///
    /// # Errors
    /// The file is not a valid genesis.
    pub fn from_json(text: &str, network: &Network) -> Result<Self, GenesisError> {
        Ok(Self::new(&Genesis::from_json(text)?, network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regtest_genesis_equals_that_of_the_reference_node() {
        let block = GenesisBlock::regtest();
        assert_eq!(block.header.hash(), Network::regtest().genesis_hash);
        assert_eq!(block.header.state_root, block.state.root());
    }

    #[test]
    fn contracts_of_an_allocation_file_are_in_the_state() {
        let text = r#"{"alloc":{"00":{},"1111111111111111111111111111111111111111":{"balance":"7","nonce":"2",
            "contract":{"code":"6001","data":{"05":"2a"}}}},"timestamp":"0x00","extraData":"0x","gasLimit":"0x989680",
            "difficulty":"0x01","coinbase":"0x3333333333333333333333333333333333333333","minimumGasPrice":"0x00"}"#;
        let block = GenesisBlock::from_json(text, &Network::regtest()).unwrap();
        let mut world = crate::state::World::new(block.state);
        let address = crate::types::Address::repeat_byte(0x11);
        let account = world.account(&address).unwrap();
        assert_eq!((account.nonce, account.balance), (2, crate::types::U256::from(7)));
        assert_eq!(world.code_of(&address)[..], [0x60, 1]);
        assert_eq!(world.word(&address, &crate::types::U256::from(5)), crate::types::U256::from(42));
        assert!(world.marker(&address));
    }
}
