//! Insertion of Bitcoin headers into a chain against a bare loop over their hashes.

use alloy_primitives::B256;
use rootlight::consensus::bitcoin::{
    BitcoinChain, BitcoinHeader, BitcoinNetwork, HashedHeader, PackedHeaders, hash_number, target_of,
};

use crate::ratio::Ratio;

/// Largest allowed time of insertion, as a multiple of the time for the hashes.
pub const LIMIT: f64 = 1.1;

/// Two periods, less one: the most that a client reads at a start.
const HEADERS: usize = 4_031;
/// Time of the first header.
const START: u32 = 1_700_000_000;

/// Linked headers of Bitcoin's local network, where two hashes make a block.
pub struct BitcoinRun {
    headers: Vec<[u8; 80]>,
    packed: Vec<u8>,
}

impl BitcoinRun {
    /// Mines the headers.
    #[must_use]
    pub fn new() -> Self {
        let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
        let headers: Vec<[u8; 80]> = (0..HEADERS as u32)
            .map(|index| {
                let header = mine(chain.tip().hash, START + 600 * index);
                chain.insert(&header, u64::MAX).expect("a mined header");
                header
            })
            .collect();
        Self { headers, packed: chain.packed(1, u32::MAX) }
    }

    /// Checks and inserts all headers.
    #[must_use]
    pub fn insert(&self) -> BitcoinChain {
        let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
        for header in &self.headers {
            chain.insert(header, u64::MAX).expect("a mined header");
        }
        chain
    }

    /// Reads all headers from their packed form, checks and inserts them.
    #[must_use]
    pub fn insert_packed(&self) -> BitcoinChain {
        let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
        for header in PackedHeaders::new(&self.packed, HEADERS).expect("packed headers") {
            chain.insert_hashed(&header.expect("a packed header"), u64::MAX).expect("a mined header");
        }
        chain
    }

    /// Computes only the hashes.
    #[must_use]
    pub fn hash(&self) -> u8 {
        self.headers.iter().fold(0, |seen, header| seen ^ BitcoinHeader::from(header).hash()[0])
    }

    /// Measures the time of insertion as a multiple of the time for the hashes; also from the packed form.
    pub fn ratios(&self, clock: &dyn Fn() -> f64, passes: usize) -> [Ratio; 2] {
        [
            Ratio::measure(clock, passes, || self.hash(), || self.insert()),
            Ratio::measure(clock, passes, || self.hash(), || self.insert_packed()),
        ]
    }
}

impl Default for BitcoinRun {
    fn default() -> Self {
        Self::new()
    }
}

/// A header on `previous` that meets the target of Bitcoin's local network.
fn mine(previous: B256, time: u32) -> [u8; 80] {
    let bits = BitcoinNetwork::REGTEST.limit;
    let target = target_of(bits).expect("a target");
    let mut header = [0; 80];
    header[..4].copy_from_slice(&0x2000_0000u32.to_le_bytes());
    header[4..36].copy_from_slice(previous.as_slice());
    header[68..72].copy_from_slice(&time.to_le_bytes());
    header[72..76].copy_from_slice(&bits.to_le_bytes());
    let solved = (0..u32::MAX).find_map(|nonce| {
        header[76..].copy_from_slice(&nonce.to_le_bytes());
        let hashed = HashedHeader::new(header);
        (hash_number(hashed.hash()) <= target).then_some(header)
    });
    solved.expect("a nonce")
}
