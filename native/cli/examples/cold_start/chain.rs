//! Headers with main network rules and sizes, and cheap proofs of work.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rootlight::consensus::bitcoin::{double_sha256, hash_pair};
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::mining::{BitcoinWork, hash_to_commit};
use rootlight::consensus::{Checkpoint, HeaderCandidate, HeaderChain, Network, difficulty};
use rootlight::types::{B256, Bloom, Header, HeaderForm, SealedHeader, U256, uncles_hash};

/// Number of the trusted block.
pub(crate) const START: u64 = 9_000_000;

/// Number of headers below it, which fork detection data commit to.
pub(crate) const BELOW: u64 = 449;

/// Seconds between blocks, as on the main network in 2026.
const SPACING: u64 = 25;

/// Levels of the Merkle branch of a coinbase transaction: a Bitcoin block has about 4,096 transactions.
const BRANCH: u8 = 12;

/// The main network's rules with a difficulty that takes no time to mine; the parameters of a start by work
/// use it too.
pub(crate) const NETWORK: &str = r#"{
    "name": "cold", "base": "mainnet", "chainId": 30, "params": { "minimumDifficulty": 4 },
    "workStart": { "difficulty": 4, "from": 9000000, "headers": 5760 }
}"#;

pub(crate) type HeaderAndUncles = (HeaderCandidate, Vec<SealedHeader>);

/// A file of blocks. Each block is preceded by its length and holds the header and its uncles, each preceded
/// by its own length.
pub(crate) struct BlockFile {
    file: File,
    pub(crate) network: Network,
    /// Offset of each block, then the length of the file.
    places: Vec<u64>,
}

impl BlockFile {
    /// Opens the file of an earlier run, or mines a new chain by these rules.
    pub(crate) fn open_or_make(rules: &str, headers: u64) -> Self {
        let network = Network::from_json(rules).expect("a network");
        let path = std::env::temp_dir().join(format!("rootlight-{}-{headers}.blocks", network.name));
        if !path.exists() {
            // Other processes and tests may make the same file.
            let own = format!("{}-{:?}.part", std::process::id(), std::thread::current().id());
            let (began, part) = (Instant::now(), path.with_extension(own));
            make(&network, headers, &part);
            std::fs::rename(&part, &path).expect("the file is named");
            println!("made {headers} blocks in {:.1} s: {}", began.elapsed().as_secs_f64(), path.display());
        }
        Self::open(path, network)
    }

    fn open(path: PathBuf, network: Network) -> Self {
        let file = File::open(path).expect("the blocks are read");
        let end = file.metadata().expect("the file's length").len();
        let (mut places, mut at) = (vec![0], 0);
        while at < end {
            let mut length = [0; 4];
            file.read_exact_at(&mut length, at).expect("a length");
            at += 4 + u64::from(u32::from_le_bytes(length));
            places.push(at);
        }
        Self { file, network, places }
    }

    pub(crate) fn head(&self) -> u64 {
        START - BELOW + self.places.len() as u64 - 2
    }

    pub(crate) fn bytes_per_block(&self) -> u64 {
        self.places.last().unwrap_or(&0) / (self.places.len() as u64 - 1)
    }

    pub(crate) fn hash(&self, number: u64) -> B256 {
        self.block(number).expect("a block of the chain").0.header().hash()
    }

    pub(crate) fn block(&self, number: u64) -> Option<HeaderAndUncles> {
        let index = usize::try_from(number.checked_sub(START - BELOW)?).ok()?;
        let (from, to) = (*self.places.get(index)?, *self.places.get(index + 1)?);
        let mut bytes = vec![0; (to - from - 4) as usize];
        self.file.read_exact_at(&mut bytes, from + 4).ok()?;
        let mut rest = &bytes[..];
        let mut headers = Vec::new();
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let (header, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            headers.push(HeaderCandidate::decode(header, &self.network).ok()?);
            rest = more;
        }
        let mut headers = headers.into_iter();
        Some((headers.next()?, headers.map(HeaderCandidate::into_header).collect()))
    }
}

/// Mines a chain that ends now, and checks its headers.
fn make(network: &Network, headers: u64, path: &Path) {
    let network = Arc::new(network.clone());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
    let first = START - BELOW;
    let mut out = BufWriter::new(File::create(path).expect("the file is made"));
    let mut keep = |header: &SealedHeader, uncles: &[SealedHeader]| {
        let mut bytes = Vec::new();
        for header in core::iter::once(header).chain(uncles) {
            let encoded = header.header().encode(HeaderForm::Full);
            bytes.extend((encoded.len() as u32).to_le_bytes());
            bytes.extend(encoded);
        }
        out.write_all(&(bytes.len() as u32).to_le_bytes()).expect("room");
        out.write_all(&bytes).expect("room");
    };
    let time = now - (headers + BELOW) * SPACING;
    let base = mine(header(&network, first, None, time), &[0; 12], &network);
    let checkpoint = Checkpoint { number: first, hash: base.hash(), total_difficulty: None };
    keep(&base, &[]);
    let mut chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, base).expect("a chain");
    // The uncles that the next block lists; they are siblings of its parent.
    let mut uncles: Vec<SealedHeader> = Vec::new();
    for _ in 0..headers + BELOW {
        let parent = chain.head().sealed().clone();
        let data = chain.view().fork_detection_after(&parent.hash()).expect("the head is known");
        let mut next = header(&network, parent.number + 1, Some(&parent), parent.timestamp + SPACING);
        let siblings = (0..uncles_of(next.number)).map(|index| {
            let gas_used = 500_000 + u64::from(index);
            mine(Header { gas_used, timestamp: next.timestamp + 1, ..next.clone() }, &data, &network)
        });
        let siblings: Vec<SealedHeader> = siblings.collect();
        let list: Vec<Header> = uncles.iter().map(|uncle| uncle.header().clone()).collect();
        (next.uncle_count, next.uncles_hash) = (list.len() as u32, uncles_hash(&list));
        next.difficulty = difficulty::expected(&next, &parent, &network).into();
        let next = mine(next, &data, &network);
        keep(&next, &uncles);
        chain.insert(HeaderCandidate::from(next), None).expect("a header by all rules");
        uncles = siblings;
    }
    out.flush().expect("room");
}

/// Number of blocks of this height that become uncles: five in four blocks, as on the main network.
const fn uncles_of(number: u64) -> u32 {
    if number.is_multiple_of(4) { 2 } else { 1 }
}

/// Hashes a text and a number, which gives bytes that do not compress.
fn noise(name: &[u8], number: u64) -> B256 {
    double_sha256(&[name, &number.to_be_bytes()].concat())
}

/// The header of a block without its proof of work.
pub(crate) fn header(
    network: &Network,
    number: u64,
    parent: Option<&SealedHeader>,
    timestamp: u64,
) -> Header {
    let mut bloom = Bloom::ZERO;
    // The bloom of some transactions with logs.
    for index in 0..8 {
        bloom.accrue(alloy_primitives::BloomInput::Raw(noise(b"bloom", number * 8 + index).as_slice()));
    }
    let mut header = Header {
        parent_hash: parent.map_or(B256::ZERO, SealedHeader::hash),
        coinbase: Some(alloy_primitives::Address::from_word(noise(b"miner", number % 5))),
        state_root: noise(b"state", number),
        // Bodies with uncles are compared with their header's roots, and these have no transactions.
        transactions_root: transactions_root(&[], root_format(network, number)),
        receipts_root: noise(b"receipts", number),
        logs_bloom: bloom,
        difficulty: U256::from(4).into(),
        gas_limit: 6_800_000u64.into(),
        gas_used: 1_000_000 + number % 100_000,
        timestamp,
        extra_data: b"\xce\x01\x8cVETIVER-0000".to_vec().into(),
        paid_fees: U256::from(number) * U256::from(1_000_000),
        minimum_gas_price: 23_000_000u64.into(),
        ..Header::empty(network.header_shape(number), number)
    };
    if let Some(parent) = parent {
        header.difficulty = difficulty::expected(&header, parent, network).into();
    }
    header
}

/// Mines a header, whose coinbase transaction is in a large Bitcoin block.
pub(crate) fn mine(header: Header, fork_detection: &[u8; 12], network: &Network) -> SealedHeader {
    let hash = hash_to_commit(&header, fork_detection);
    let mut work = BitcoinWork::new(&hash, header.timestamp as u32);
    work.branch = (0..BRANCH).map(|level| noise(b"branch", header.number * 16 + u64::from(level))).collect();
    work.transactions = 1 << BRANCH;
    let leaf = double_sha256(&work.coinbase);
    let root = work.branch.iter().fold(leaf, |node, sibling| hash_pair(&node, sibling));
    work.header[36..68].copy_from_slice(root.as_slice());
    let rules = network.rules(header.number);
    let solved = work.solved(header.difficulty.value(), u32::MAX).expect("a nonce");
    solved.seal(header, rules).expect("a coinbase with a tag")
}
