//! Full verification of a run of main network headers against the bare loop of exactly the same hashes.

use alloy_primitives::keccak256;
use rootlight::consensus::bitcoin::{hash_pair, BitcoinHeader};
use rootlight::consensus::coinbase::Coinbase;
use rootlight::consensus::verified::Candidate;
use rootlight::consensus::{verify_child, Network};
use rootlight::types::{Header, HeaderForm, SealedHeader};

/// What full verification may take, in bare hashes.
pub const LIMIT: f64 = 1.2;

/// Consecutive headers of the main network, as their full RLP.
pub struct Run {
    network: Network,
    /// Before the first header that is verified.
    parent: SealedHeader,
    headers: Vec<Vec<u8>>,
    hashes: Vec<Hashes>,
}

impl Run {
    /// Reads headers in ascending order; the first is taken for granted.
    #[must_use]
    pub fn new(rlps: Vec<Vec<u8>>) -> Self {
        let network = Network::mainnet();
        let shape = |number| network.header_shape(number);
        let decode = |rlp: &Vec<u8>| Header::decode(rlp, &shape).expect("a recorded header");
        let hashes = rlps.iter().skip(1).map(|rlp| Hashes::of(&decode(rlp))).collect();
        let parent = decode(rlps.first().expect("at least one header")).seal();
        let headers = rlps.into_iter().skip(1).collect();
        Self { parent, headers, hashes, network }
    }

    /// Number of headers verified.
    #[must_use]
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Whether there is nothing to verify.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Decodes every header and checks hash links, merged mining, difficulty and all other header rules.
    pub fn verify(&self) {
        let mut parent = self.parent.clone();
        for rlp in &self.headers {
            let candidate = Candidate::decode(rlp, &self.network).expect("a recorded header");
            verify_child(&candidate, &parent, &self.network, None).expect("a real header");
            parent = candidate.into_header();
        }
    }

    /// The hashes that verification cannot do without, and nothing else.
    pub fn hash(&self) -> u8 {
        self.hashes.iter().fold(0, |seen, hashes| seen ^ hashes.run())
    }
}

/// What is hashed for one header, ready made.
struct Hashes {
    /// Preimage of the block hash.
    block: Vec<u8>,
    /// Preimage of the hash for merged mining.
    mining: Vec<u8>,
    /// Midstate and tail of the coinbase.
    coinbase: Vec<u8>,
    /// Levels of the Merkle branch.
    levels: usize,
    bitcoin: Vec<u8>,
}

impl Hashes {
    fn of(header: &Header) -> Self {
        Self {
            block: header.encode(HeaderForm::Hash),
            mining: header.encode(HeaderForm::MergedMining),
            coinbase: header.coinbase_tx.to_vec(),
            levels: header.merkle_proof.len() / 32,
            bitcoin: header.bitcoin_header.to_vec(),
        }
    }

    /// By the same hash functions that verification calls.
    fn run(&self) -> u8 {
        let mut seen = keccak256(&self.block)[0] ^ keccak256(&self.mining)[0];
        let leaf = Coinbase::parse(&self.coinbase).expect("a recorded coinbase").transaction_hash();
        seen ^= (0..self.levels).fold(leaf, |node, _| hash_pair(&node, &leaf))[0];
        seen ^ BitcoinHeader::first_of(&self.bitcoin).expect("80 bytes").hash()[0]
    }
}
