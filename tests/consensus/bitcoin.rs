//! Bitcoin headers of merge-mining proofs against the rules of Bitcoin's chain.

use std::fs;

use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::{
    BitcoinChain, BitcoinChainError, BitcoinCheckpoint, BitcoinHeader, BitcoinNetwork, hash_number, target_of,
};
use rootlight::types::Header;
use serde_json::Value;

use crate::support::{bytes, shared};

/// Bitcoin's target in July 2022, when the recorded blocks were mined.
const BITS: u32 = 0x1709_a7af;
/// Rootstock blocks of the recording that are mined on another SHA-256 chain.
const FOREIGN: [u64; 4] = [4_479_945, 4_480_405, 4_480_845, 4_480_889];
/// A clock after the recording.
const NOW: u64 = 1_660_000_000;

/// Block numbers and Bitcoin headers of 1,200 consecutive mainnet blocks; `None` without the recordings.
fn recorded() -> Option<Vec<(u64, [u8; 80])>> {
    let path = shared()?.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let network = Network::mainnet();
    let header = |value: &Value| {
        let rlp = bytes(value["rlp"].as_str().unwrap());
        let header = Header::decode(&rlp, &|number| network.header_shape(number)).unwrap();
        (header.number, *header.bitcoin_header.first_chunk().unwrap())
    };
    Some(file["headers"].as_array().unwrap().iter().map(header).collect())
}

/// A chain whose checkpoint is the parent of a header, in a period with the target [`BITS`].
fn chain_below(header: &[u8; 80]) -> BitcoinChain {
    let hash = BitcoinHeader::from(header).previous();
    let checkpoint = BitcoinCheckpoint { height: 743_903, hash, next_bits: BITS, time: 0 };
    BitcoinChain::new(BitcoinNetwork { checkpoint, ..BitcoinNetwork::MAINNET })
}

/// A header's own nBits prove nothing: 19 of these headers meet the target that they state, but only 15 state Bitcoin's.
#[test]
fn headers_of_another_chain_are_refused_although_they_meet_their_own_target() {
    let Some(headers) = recorded() else { return };
    let (mut blocks, mut foreign, mut shares) = (0, Vec::new(), 0);
    for (number, header) in &headers {
        let fields = BitcoinHeader::from(header);
        let own = target_of(fields.bits()).is_some_and(|target| hash_number(&fields.hash()) <= target);
        match chain_below(header).insert(header, NOW) {
            Ok(_) => blocks += 1,
            Err(BitcoinChainError::Bits { found, expected, .. }) => {
                assert_eq!((found >> 16, expected), (0x1807, BITS));
                if own {
                    foreign.push(*number);
                }
            }
            Err(BitcoinChainError::HashAboveTarget { .. }) => shares += 1,
            Err(error) => panic!("block {number}: {error}"),
        }
        assert!(own || shares > 0 || blocks > 0 || !foreign.is_empty());
    }
    assert_eq!((blocks, foreign), (15, FOREIGN.to_vec()));
    println!("{shares} headers below Bitcoin's target");
}

#[test]
fn headers_of_another_chain_link_to_nothing() {
    let Some(headers) = recorded() else { return };
    let mut chain = BitcoinChain::new(BitcoinNetwork::MAINNET);
    for (number, header) in headers.iter().filter(|(number, _)| FOREIGN.contains(number)) {
        let error = chain.insert(header, NOW).unwrap_err();
        assert!(matches!(error, BitcoinChainError::Unlinked { .. }), "block {number}: {error}");
    }
    assert_eq!(chain.tip().height, BitcoinNetwork::MAINNET.checkpoint.height);
}
