//! Full verification of consecutive main network headers against a bare loop over exactly the same hashes.

use alloy_primitives::keccak256;
use rootlight::consensus::HeaderCandidate;
use rootlight::consensus::bitcoin::{BitcoinHeader, hash_pair};
use rootlight::consensus::coinbase::Coinbase;
use rootlight::consensus::{Network, verify_child};
use rootlight::types::{Header, HeaderForm, SealedHeader};

use crate::ratio::Ratio;

/// Largest allowed time of full verification, as a multiple of the time for the hashes.
pub const LIMIT: f64 = 1.2;

/// Headers in a part. With the data that is hashed they take about 200 kB, which fits a core's own cache.
const PART: usize = 64;

/// Consecutive headers of the main network, as their full RLP.
pub struct HeaderRun {
    network: Network,
    /// The parent of each part's first header.
    parents: Vec<SealedHeader>,
    headers: Vec<Vec<u8>>,
    hashes: Vec<HashInputs>,
}

impl HeaderRun {
    /// Reads headers in ascending order; the first one is trusted.
    #[must_use]
    pub fn new(rlps: Vec<Vec<u8>>) -> Self {
        let network = Network::mainnet();
        let shape = |number| network.header_shape(number);
        let decode = |rlp: &Vec<u8>| Header::decode(rlp, &shape).expect("a recorded header");
        let hashes = rlps.iter().skip(1).map(|rlp| HashInputs::of(&decode(rlp))).collect();
        let parents = rlps.iter().step_by(PART).map(|rlp| decode(rlp).seal()).collect();
        let headers = rlps.into_iter().skip(1).collect();
        Self { parents, headers, hashes, network }
    }

    /// Number of headers verified.
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Whether there is nothing to verify.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Number of parts. Each part is verified and hashed separately.
    pub fn parts(&self) -> usize {
        self.headers.len().div_ceil(PART)
    }

    /// Decodes every header and checks hash links, merged mining, difficulty and all other header rules.
    pub fn verify(&self) {
        (0..self.parts()).for_each(|part| self.verify_part(part));
    }

    /// Does what [`Self::verify`] does for one part. Like a chain, it keeps each header until its child is
    /// checked.
    pub fn verify_part(&self, part: usize) {
        let mut before: Option<HeaderCandidate> = None;
        for rlp in of_part(&self.headers, part) {
            let candidate = HeaderCandidate::decode(rlp, &self.network).expect("a recorded header");
            let parent = before.as_ref().map_or(&self.parents[part], HeaderCandidate::header);
            verify_child(&candidate, parent, &self.network, None).expect("a real header");
            before = Some(candidate);
        }
    }

    /// Computes only the hashes that verification needs.
    pub fn hash(&self) -> u8 {
        (0..self.parts()).fold(0, |seen, part| seen ^ self.hash_part(part))
    }

    /// Does what [`Self::hash`] does for one part.
    pub fn hash_part(&self, part: usize) -> u8 {
        of_part(&self.hashes, part).iter().fold(0, |seen, hashes| seen ^ hashes.run())
    }

    /// Measures the time of full verification as a multiple of the time for the hashes.
    pub fn ratio(&self, clock: &dyn Fn() -> f64, passes: usize) -> Ratio {
        Ratio::measure_parts(
            clock,
            passes,
            self.parts(),
            |part| self.hash_part(part),
            |part| self.verify_part(part),
        )
    }

    /// How many headers are verified in a second, in the fastest of some passes. A second has `ticks` units of the clock.
    /// For comparing engines in one run only.
    pub fn rate(&self, clock: &dyn Fn() -> f64, passes: usize, ticks: f64) -> f64 {
        let pass = |_| {
            let start = clock();
            self.verify();
            clock() - start
        };
        let fastest = (0..passes).map(pass).fold(f64::INFINITY, f64::min);
        self.len() as f64 * ticks / fastest
    }
}

fn of_part<T>(all: &[T], part: usize) -> &[T] {
    let start = part * PART;
    &all[start..all.len().min(start + PART)]
}

/// The precomputed inputs of one header's hashes.
struct HashInputs {
    /// Preimage of the block hash.
    block: Vec<u8>,
    /// Preimage of the hash for merged mining.
    mining: Vec<u8>,
    /// Midstate and tail of the coinbase.
    coinbase: Vec<u8>,
    /// Number of levels of the Merkle branch.
    levels: usize,
    /// The Bitcoin header.
    bitcoin: Vec<u8>,
}

impl HashInputs {
    fn of(header: &Header) -> Self {
        Self {
            block: header.encode(HeaderForm::Hash),
            mining: header.encode(HeaderForm::MergedMining),
            coinbase: header.coinbase_tx.to_vec(),
            levels: header.merkle_proof.len() / 32,
            bitcoin: header.bitcoin_header.to_vec(),
        }
    }

    /// Computes the hashes with the functions that verification calls.
    fn run(&self) -> u8 {
        let mut seen = keccak256(&self.block)[0] ^ keccak256(&self.mining)[0];
        let leaf = Coinbase::parse(&self.coinbase).expect("a recorded coinbase").transaction_hash();
        seen ^= (0..self.levels).fold(leaf, |node, _| hash_pair(&node, &leaf))[0];
        seen ^ BitcoinHeader::first_of(&self.bitcoin).expect("80 bytes").hash()[0]
    }
}
