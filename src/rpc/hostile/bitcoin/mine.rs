//! Miners: a Rootstock chain and a Bitcoin chain of mainnet's rules with hashes that a test can afford.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use crate::{
    consensus::{
        HeaderCandidate, HeaderChain, Network, WorkStart,
        bitcoin::{
            BitcoinCheckpoint, BitcoinHeader, BitcoinNetwork, CoinbaseBytes, CoinbaseProof, HEADER_LEN, Tag,
            bits_of, double_sha256, hash_number, hash_pair, reversed, target_of, testing::header_of,
        },
        difficulty,
        testing::{Bitcoin, child, easy_network, header, mine},
    },
    types::{B256, Header, SealedHeader, U256, uncles_hash},
};

/// Number of the Rootstock block at which the chains start.
pub(super) const START: u64 = 5_000;
/// Headers of a start that the network's numbers judge. One whose work is dated needs a quarter.
pub(super) const WINDOW: u64 = 400;
/// Rootstock headers on each Bitcoin block, in ordinary times: with four hashes each a fifth of Bitcoin's work, which is 40.
pub(super) const HEADERS: u64 = 2;
/// Blocks of a period.
const PERIOD: usize = 2_016;
/// Seconds between Bitcoin blocks, and of a period.
const SPACING: u32 = 600;
const PERIOD_SECONDS: u32 = 1_209_600;
const TIME: u32 = 1_650_000_000;
pub(super) const CHECKPOINT: BitcoinCheckpoint =
    BitcoinCheckpoint { height: 798_335, hash: B256::repeat_byte(0x42), next_bits: 0x2006_6666, time: TIME };
/// Bitcoin blocks of all scenarios: the next period begins three blocks later.
const SHARED: usize = PERIOD - 3;
/// The newest of them, on which Rootstock headers are mined.
const ROOTSTOCK: usize = 450;

/// The network of all scenarios.
pub(super) fn network() -> &'static Arc<Network> {
    static NETWORK: OnceLock<Arc<Network>> = OnceLock::new();
    NETWORK.get_or_init(|| {
        let mut network = easy_network(&[], &[]);
        network.work_start = Some(WorkStart { difficulty: U256::ONE, from: START, headers: WINDOW });
        network.bitcoin =
            Some(BitcoinNetwork { checkpoint: CHECKPOINT, limit: 0x207f_ffff, retargets: true });
        Arc::new(network)
    })
}

/// A Bitcoin block with its coinbase.
#[derive(Clone)]
pub(super) struct Block {
    pub(super) header: [u8; HEADER_LEN],
    pub(super) hash: B256,
    pub(super) height: u32,
    pub(super) time: u32,
    pub(super) coinbase: Vec<u8>,
    /// Whether the coinbase is given as Rootstock headers give it.
    pub(super) midstate: bool,
    pub(super) branch: Vec<u8>,
    /// The tag that counts.
    pub(super) tag: Option<Tag>,
}

impl Block {
    pub(super) fn bits(&self) -> u32 {
        BitcoinHeader::from(&self.header).bits()
    }

    pub(super) fn coinbase_proof(&self) -> CoinbaseProof<'_> {
        let coinbase = match self.midstate {
            true => CoinbaseBytes::Midstate(&self.coinbase),
            false => CoinbaseBytes::Whole(&self.coinbase),
        };
        CoinbaseProof { coinbase, branch: &self.branch }
    }
}

/// The target of the block on top of these, by Bitcoin's rule. `below` is the number of blocks between the checkpoint and
/// the first of them.
pub(super) fn next_bits(blocks: &[Block]) -> u32 {
    let Some(last) = blocks.last() else { return CHECKPOINT.next_bits };
    let above = last.height - CHECKPOINT.height;
    if !above.is_multiple_of(PERIOD as u32) {
        return last.bits();
    }
    let first = &blocks[blocks.len() - PERIOD];
    let took = (last.time - first.time).clamp(PERIOD_SECONDS / 4, PERIOD_SECONDS * 4);
    let target = target_of(last.bits()).unwrap();
    let next = target / U256::from(PERIOD_SECONDS) * U256::from(took)
        + target % U256::from(PERIOD_SECONDS) * U256::from(took) / U256::from(PERIOD_SECONDS);
    bits_of(next.min(target_of(0x207f_ffff).unwrap()))
}

/// Searches a nonce for which the hash of a Bitcoin header is accepted.
pub(super) fn search(header: &mut [u8], accept: impl Fn(&B256) -> bool) -> B256 {
    for nonce in 0u32.. {
        header[76..80].copy_from_slice(&nonce.to_le_bytes());
        let hash = double_sha256(header);
        if accept(&hash) {
            return hash;
        }
    }
    panic!("no nonce")
}

pub(super) fn meets(bits: u32) -> impl Fn(&B256) -> bool {
    let target = target_of(bits).unwrap();
    move |hash| hash_number(hash) <= target
}

/// A coinbase transaction with this output script.
fn transaction(height: u32, script: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 1];
    bytes.extend([0; 32]);
    bytes.extend([0xff; 4]);
    // Long enough that no coinbase has the 64 bytes of an inner Merkle node.
    bytes.extend([20, 3]);
    bytes.extend(height.to_le_bytes());
    bytes.extend([0; 15]);
    bytes.extend([0xff; 4]);
    bytes.push(1);
    bytes.extend(5_000_000u64.to_le_bytes());
    bytes.push(script.len() as u8);
    bytes.extend(script);
    bytes.extend([0; 4]);
    bytes
}

/// The script of an output with a tag.
pub(super) fn tagged(tag: &[u8]) -> Vec<u8> {
    [&b"RSKBLOCK:"[..], tag].concat()
}

/// Mines a block on `previous` whose coinbase has this output script.
pub(super) fn block_with(previous: B256, height: u32, time: u32, bits: u32, script: &[u8]) -> Block {
    let coinbase = transaction(height, script);
    let sibling = double_sha256(&height.to_le_bytes());
    let root = hash_pair(&double_sha256(&coinbase), &sibling);
    let mut header = header_of(previous, root, time, bits, 0);
    let hash = search(&mut header, meets(bits));
    let branch = reversed(&sibling).to_vec();
    Block { header, hash, height, time, coinbase, midstate: false, branch, tag: None }
}

/// The Bitcoin block that is the proof of this header.
pub(super) fn block_of(header: &SealedHeader, height: u32) -> Block {
    let bytes: [u8; HEADER_LEN] = header.bitcoin_header[..].try_into().unwrap();
    Block {
        hash: double_sha256(&bytes),
        header: bytes,
        height,
        time: BitcoinHeader::from(&bytes).time(),
        coinbase: header.coinbase_tx.to_vec(),
        midstate: true,
        branch: header.merkle_proof.to_vec(),
        tag: None,
    }
}

/// The choices of a Rootstock miner.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) time: u64,
    /// Bitcoin's tip, as the miner says.
    pub(super) previous: B256,
    /// The target of the Bitcoin block that the header's proof shall be.
    pub(super) block: Option<u32>,
    /// The last byte of the displayed Bitcoin hash, if it is searched for.
    pub(super) byte: Option<u8>,
    /// Tells branches apart.
    pub(super) salt: u64,
}

/// A Rootstock branch.
#[derive(Clone)]
pub(super) struct Branch {
    pub(super) chain: HeaderChain,
    /// All headers, from [`START`] on.
    pub(super) headers: Vec<SealedHeader>,
    /// The uncle of each block that has one, by the block's number.
    pub(super) uncles: BTreeMap<u64, SealedHeader>,
}

impl Branch {
    pub(super) fn head(&self) -> u64 {
        self.headers.last().unwrap().number
    }

    /// The 12 bytes about its ancestors to which the next header commits.
    pub(super) fn commitments(&self) -> [u8; 12] {
        self.chain.view().fork_detection_after(&self.headers.last().unwrap().hash()).unwrap()
    }

    /// Mines the next header, with this uncle.
    pub(super) fn extend(&mut self, choice: Choice, uncle: Option<SealedHeader>) -> SealedHeader {
        let uncles: Vec<Header> = uncle.iter().map(|uncle| uncle.header().clone()).collect();
        let sealed = self.mined(self.headers.last().unwrap(), choice, &uncles);
        self.chain.insert(HeaderCandidate::from(sealed.clone()), None).unwrap();
        self.headers.push(sealed.clone());
        self.uncles.extend(uncle.map(|uncle| (sealed.number, uncle)));
        sealed
    }

    /// Mines a sibling of the newest header.
    pub(super) fn sibling(&self, choice: Choice) -> SealedHeader {
        self.mined(&self.headers[self.headers.len() - 2], choice, &[])
    }

    /// Mines a header on this one.
    fn mined(&self, parent: &SealedHeader, choice: Choice, uncles: &[Header]) -> SealedHeader {
        let Choice { time, previous, block, byte, salt } = choice;
        let view = self.chain.view();
        let mut next = Header {
            timestamp: time,
            gas_used: salt,
            uncle_count: uncles.len() as u32,
            uncles_hash: uncles_hash(uncles),
            ..child(view.network(), parent)
        };
        next.difficulty = difficulty::expected(&next, parent, view.network()).into();
        let difficulty = next.difficulty.value();
        let data = view.fork_detection_after(&parent.hash()).unwrap();
        let mut header = Bitcoin { previous, ..Bitcoin::for_header(data) }.mine(next).into_header();
        let mut bytes = header.bitcoin_header.to_vec();
        if let Some(bits) = block {
            bytes[72..76].copy_from_slice(&bits.to_le_bytes());
        }
        let target = U256::MAX / difficulty;
        let target = block.and_then(target_of).map_or(target, |block| block.min(target));
        search(&mut bytes, |hash| {
            hash_number(hash) <= target && byte.is_none_or(|byte| hash.first() == Some(&byte))
        });
        header.bitcoin_header = bytes.into();
        header.seal()
    }
}

/// The base of all scenarios: a Bitcoin chain up to three blocks below the end of its period, and Rootstock headers on its
/// newest blocks. Every third of these blocks is the proof of one.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) bitcoin: Vec<Block>,
    pub(super) rootstock: Branch,
    /// The scheduled time of the newest Bitcoin block.
    pub(super) time: u32,
}

/// The times of `count` headers between two Bitcoin blocks.
pub(super) fn times(from: u32, count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(move |step| u64::from(from) + u64::from(SPACING) * step / (count + 1))
}

/// The scheduled time of the next Bitcoin block.
pub(super) fn later(time: u32) -> u32 {
    time + SPACING
}

fn first(time: u64) -> Branch {
    let network = (**network()).clone();
    let base = Header { timestamp: time, ..header(&network, START) };
    let base = mine(base);
    let checkpoint =
        crate::consensus::Checkpoint { number: START, hash: base.hash(), total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(Arc::new(network), &checkpoint, base.clone()).unwrap();
    Branch { chain, headers: vec![base], uncles: BTreeMap::new() }
}

/// The base of all scenarios, mined once.
pub(super) fn shared() -> &'static Shared {
    static SHARED_CHAINS: OnceLock<Shared> = OnceLock::new();
    SHARED_CHAINS.get_or_init(|| {
        let (mut bitcoin, mut previous): (Vec<Block>, B256) = (Vec::new(), CHECKPOINT.hash);
        let mut time = TIME;
        let begin = TIME + (SHARED - ROOTSTOCK) as u32 * SPACING;
        let mut rootstock = first(u64::from(begin));
        for index in 0..SHARED {
            let height = CHECKPOINT.height + 1 + index as u32;
            let bits = CHECKPOINT.next_bits;
            let count = if index < SHARED - ROOTSTOCK { 0 } else { HEADERS };
            let proves = count > 0 && index.is_multiple_of(3);
            for (step, at) in (1..).zip(times(time, count)) {
                let block = (proves && step == count).then_some(bits);
                rootstock.extend(Choice { time: at, previous, block, byte: None, salt: 1 }, None);
            }
            time = later(time);
            let block = if proves {
                block_of(rootstock.headers.last().unwrap(), height)
            } else {
                block_with(previous, height, time, bits, &[])
            };
            previous = block.hash;
            bitcoin.push(block);
        }
        for block in &mut bitcoin {
            block.tag = block.midstate.then(|| last_tag(&block.coinbase)).flatten();
        }
        Shared { bitcoin, rootstock, time }
    })
}

/// The tag that counts in the bytes of a coinbase: the last one, if it is whole.
pub(super) fn last_tag(coinbase: &[u8]) -> Option<Tag> {
    let at = coinbase.windows(9).rposition(|window| window == b"RSKBLOCK:")?;
    let bytes: [u8; 32] = coinbase[at + 9..].get(..32)?.try_into().unwrap();
    Some(Tag::from(bytes))
}
