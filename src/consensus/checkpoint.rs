//! Checkpoints: blocks that are trusted by their hash, at which a light client starts.

use alloc::string::String;

use alloy_primitives::b256;
use thiserror::Error;

use super::Network;
use crate::types::{B256, U256};

/// A block by number and hash, with its total difficulty if that is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
    /// Sum of the difficulties of all blocks up to this one and of all their uncles.
    pub total_difficulty: Option<U256>,
}

/// A built-in checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltInCheckpoint {
    /// The block.
    pub checkpoint: Checkpoint,
    /// Time of the block, or of a block shortly before it, in seconds since 1970. The newest checkpoint of each network has one, because
    /// its age decides whether [`newest`] accepts it.
    pub timestamp: Option<u64>,
}

impl BuiltInCheckpoint {
    const fn mined(self, timestamp: u64) -> Self {
        Self { timestamp: Some(timestamp), ..self }
    }
}

const fn checkpoint(number: u64, hash: B256, total_difficulty: Option<U256>) -> BuiltInCheckpoint {
    BuiltInCheckpoint { checkpoint: Checkpoint { number, hash, total_difficulty }, timestamp: None }
}

/// Makes a total difficulty from its high and low 64 bits.
const fn total(high: u64, low: u64) -> Option<U256> {
    Some(U256::from_limbs([low, high, 0, 0]))
}

/// Mainnet blocks, oldest first. Each hash was computed from a complete header, or is the parent hash in such a header.
/// Total difficulties are those that the Rootstock block explorer states.
pub const MAINNET: &[BuiltInCheckpoint] = &[
    checkpoint(0, super::builtin::MAINNET_GENESIS, total(0, 0x10_0000)),
    checkpoint(4_479_840, b256!("70e1fb5b84e50f3f6199a5becc4a1a30474b4b0fc3a329a320dfe4301cb9d876"), None),
    checkpoint(4_481_393, b256!("6a78a0e87ab53aaeb1810ccfbab51a3f062bd221afa404c12aebfe41d3c88073"), None),
    checkpoint(
        7_350_282,
        b256!("72751aa2396a1d034d87d6aecd6d653e985183f4fae380ebaac6c7ea7446ef08"),
        total(0x58c1_4997, 0x48b3_ebb5_0801_62eb),
    ),
    checkpoint(
        7_351_440,
        b256!("b8210fe01f8b7886af18436feac2989092cb7655303bc3d8857e71ba16662945"),
        total(0x58d1_73e1, 0x2ee4_4ec7_2828_a36a),
    ),
    checkpoint(
        7_351_865,
        b256!("11d14e0adfa461f2d8313aba101820b1db8f266d503015c579ff1e423dfc67b2"),
        total(0x58d7_4108, 0x3977_6ef7_36fe_22a6),
    ),
    checkpoint(
        7_383_010,
        b256!("8a98540106a9f43f1e9d3777a5caaf9313dfebed076dfa3ae3f9b849048553fe"),
        total(0x5a8c_3881, 0xd3fe_c5a1_fdd3_c730),
    ),
    checkpoint(8_301_025, b256!("88946baa7aba1e5f6fc2c0d00a67b1283c7aebe1c07e7b7fecae764d8cc8913b"), None),
    checkpoint(8_329_127, b256!("3dcfb513504c0d7fc7e2a5b9593991b7a7682eb85fd2643126cc3318946ece2d"), None),
    checkpoint(
        9_000_000,
        b256!("8504f9b1d5adb7dbd560165fdabc089c9f680831b68175ef300292559fe9c9cb"),
        total(0xb96d_8d42, 0x7b3a_1861_8a1b_8f75),
    )
    .mined(1_782_788_355),
];

/// Blocks of the test network, from the same sources.
pub const TESTNET: &[BuiltInCheckpoint] = &[
    checkpoint(0, super::builtin::TESTNET_GENESIS, total(0, 0x10_0000)),
    checkpoint(
        1_068_051,
        b256!("18b22e46ae153fd7bde0828db09d2dd7158f82d649f9c85ababa9ea1ca6e6f68"),
        total(0x2, 0xc19d_70a7_f1e2_84bb),
    ),
    // The time is that of a block shortly before it.
    checkpoint(7_394_320, b256!("e23376cb75e1a9704a6f4a513a649519160afa36d4fd31c4f45d3093b1f74a15"), None)
        .mined(1_772_204_131),
];

/// The built-in checkpoints of a network, oldest first. A client of a network without checkpoints starts at genesis. A network that has
/// the name of a built-in one but another genesis has none.
#[must_use]
pub fn built_in(network: &Network) -> &'static [BuiltInCheckpoint] {
    let known = match network.name.as_str() {
        "mainnet" => MAINNET,
        "testnet" => TESTNET,
        _ => &[],
    };
    match known.first() {
        Some(genesis) if genesis.checkpoint.hash == network.genesis_hash => known,
        _ => &[],
    }
}

/// Greatest age of a built-in checkpoint at which a client starts, in seconds: a year. Hard forks come about once a year, so a program
/// whose newest checkpoint is older probably lacks the newest rules.
pub const MAX_AGE: u64 = 365 * 86_400;

/// The error that the newest built-in checkpoint of a network is older than [`MAX_AGE`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the newest built-in checkpoint of {network}, block {number}, is {days} days old, at most {} are accepted: \
     update Rootlight, or give a newer checkpoint, NUMBER:HASH",
    MAX_AGE / 86_400
)]
pub struct OldCheckpoint {
    /// The network.
    pub network: String,
    /// Number of the checkpoint's block.
    pub number: u64,
    /// Age of the checkpoint's block, in days.
    pub days: u64,
}

/// The newest built-in checkpoint of a network, if it has any; `now` is in seconds since 1970.
///
/// # Errors
/// The checkpoint is older than [`MAX_AGE`].
pub fn newest(network: &Network, now: u64) -> Result<Option<Checkpoint>, OldCheckpoint> {
    let Some(newest) = built_in(network).last() else { return Ok(None) };
    let age = now.saturating_sub(newest.timestamp.unwrap_or(0));
    if age > MAX_AGE {
        let number = newest.checkpoint.number;
        return Err(OldCheckpoint { network: network.name.clone(), number, days: age / 86_400 });
    }
    Ok(Some(newest.checkpoint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_checkpoint_is_accepted_for_a_year() {
        for network in [Network::mainnet(), Network::testnet()] {
            let known = built_in(&network).last().unwrap();
            let mined = known.timestamp.unwrap();
            assert_eq!(newest(&network, mined + MAX_AGE), Ok(Some(known.checkpoint)));
            let old = newest(&network, mined + MAX_AGE + 1).unwrap_err();
            assert_eq!((old.number, old.days), (known.checkpoint.number, 365));
            let words = alloc::format!("{old}");
            assert!(
                words.contains(
                    "at most 365 are accepted: update Rootlight, or give a newer checkpoint, NUMBER:HASH"
                ),
                "{words}"
            );
        }
        assert_eq!(newest(&Network::regtest(), u64::MAX), Ok(None));
    }

    #[test]
    fn built_in_checkpoints_are_oldest_first_and_the_newest_has_a_time() {
        for network in [Network::mainnet(), Network::testnet()] {
            let known = built_in(&network);
            assert!(known.is_sorted_by(|a, b| a.checkpoint.number < b.checkpoint.number));
            let times: alloc::vec::Vec<u64> = known.iter().filter_map(|known| known.timestamp).collect();
            assert!(times.is_sorted());
            assert!(known.last().unwrap().timestamp.is_some(), "{}", network.name);
        }
    }

    #[test]
    fn a_network_with_the_name_of_mainnet_but_another_genesis_has_no_checkpoints() {
        for own in [r#"{"name":"mainnet"}"#, r#"{"name":"testnet","base":"mainnet"}"#] {
            let own = Network::from_json(own).unwrap();
            assert!(built_in(&own).is_empty());
            assert_eq!(newest(&own, 0), Ok(None));
        }
        assert!(!built_in(&Network::from_json(r#"{"name":"mainnet","base":"mainnet"}"#).unwrap()).is_empty());
    }
}
