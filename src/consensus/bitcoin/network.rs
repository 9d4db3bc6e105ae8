//! The Bitcoin networks whose miners mine a Rootstock network.

use alloy_primitives::b256;

use crate::types::B256;

/// The last block of a retarget period (2,016 blocks), which a client trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitcoinCheckpoint {
    /// Height of the block.
    pub height: u32,
    /// Hash of the block, in internal byte order.
    pub hash: B256,
    /// Target of the next period, in compact form.
    pub next_bits: u32,
    /// Time that its header states, or a later one, in seconds since 1970; zero if none is available. A later time makes
    /// [`BitcoinChain::is_slow`](super::BitcoinChain::is_slow) accept slightly slower blocks.
    pub time: u32,
}

/// A Bitcoin network: everything that a verifier of its headers must know in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitcoinNetwork {
    /// The block above which headers are verified.
    pub checkpoint: BitcoinCheckpoint,
    /// The highest target that a block may have, in compact form.
    pub limit: u32,
    /// Whether the target changes after each period of 2,016 blocks.
    pub retargets: bool,
}

impl BitcoinNetwork {
    /// The production network. `cargo xtask checkpoint` writes a newer checkpoint.
    pub const MAINNET: Self = Self {
        checkpoint: BitcoinCheckpoint {
            height: 953_567,
            // The hash 00000000000000000001b315e72169bef4867bf780527aa97c625ee9c001dc5d, reversed.
            hash: b256!("5ddc01c0e95e627ca97a5280f77b86f4be6921e715b301000000000000000000"),
            next_bits: 0x1702_40c3,
            time: 1_784_000_000,
        },
        limit: 0x1d00_ffff,
        retargets: true,
    };

    /// Bitcoin's local network, from its block 0: a block takes two hashes on average.
    pub const REGTEST: Self = Self {
        checkpoint: BitcoinCheckpoint {
            height: 0,
            hash: b256!("06226e46111a0b59caaf126043eb5bbf28c34f3a5e332a1fc7b2b73cf188910f"),
            next_bits: 0x207f_ffff,
            time: 0,
        },
        limit: 0x207f_ffff,
        retargets: false,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::Network;
    use crate::consensus::bitcoin::hash::{double_sha256, hash_number};
    use crate::consensus::bitcoin::target::{PERIOD, bits_of, target_of};

    #[test]
    fn the_checkpoint_of_mainnet_is_the_end_of_a_period() {
        let BitcoinNetwork { checkpoint, limit, .. } = BitcoinNetwork::MAINNET;
        let BitcoinCheckpoint { height, hash, next_bits, .. } = checkpoint;
        assert_eq!((height + 1) % PERIOD, 0);
        let target = target_of(next_bits).unwrap();
        assert_eq!(bits_of(target), next_bits);
        // The target changes by a factor of four at most.
        assert!(target < target_of(limit).unwrap() >> 32 && hash_number(&hash) <= target << 2, "{hash}");
    }

    /// Block 0 of mainnet with the time, target and nonce of regtest's.
    #[test]
    fn the_checkpoint_of_regtest_is_its_block_0() {
        let root = "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a";
        let header = [
            &1u32.to_le_bytes()[..],
            &[0; 32],
            &hex::decode(root).unwrap(),
            &1_296_688_602u32.to_le_bytes(),
            &0x207f_ffffu32.to_le_bytes(),
            &2u32.to_le_bytes(),
        ];
        assert_eq!(double_sha256(&header.concat()), BitcoinNetwork::REGTEST.checkpoint.hash);
    }

    #[test]
    fn only_networks_whose_bitcoin_chain_is_known_have_one() {
        assert_eq!(Network::mainnet().bitcoin, Some(BitcoinNetwork::MAINNET));
        assert_eq!(Network::regtest().bitcoin, Some(BitcoinNetwork::REGTEST));
        for network in [Network::testnet(), Network::testnet2(), Network::devnet()] {
            assert_eq!(network.bitcoin, None, "{}", network.name);
        }
        let own = |text| Network::from_json(text).unwrap().bitcoin;
        assert_eq!(own(r#"{"name":"own"}"#), Some(BitcoinNetwork::REGTEST));
        assert_eq!(own(r#"{"name":"own","chainId":7777}"#), None);
        assert_eq!(own(r#"{"name":"own","base":"mainnet"}"#), Some(BitcoinNetwork::MAINNET));
        let genesis = r#"{"name":"own","base":"mainnet","genesisHash":"0x0101010101010101010101010101010101010101010101010101010101010101"}"#;
        assert_eq!(own(genesis), None);
    }
}
