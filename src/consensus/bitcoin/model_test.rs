//! The chain equals a plain model: a list of all headers, in which everything is computed anew each time.

use std::collections::HashMap;

use proptest::prelude::*;

use super::chain_test::{EASY, NOW, START, changing, insert_all};
use super::hash::{HEADER_LEN, hash_number, header_hash};
use super::header::BitcoinHeader;
use super::target::{PERIOD, retarget, target_of, work_of_target};
use super::testing::{header_of, mine_on};
use super::{BitcoinChain, BitcoinChainError, BitcoinInserted, BitcoinNetwork};
use crate::types::{B256, U256};

/// Eight hashes make a block at first.
const EIGHT: u32 = 0x201f_ffff;

struct Model {
    network: BitcoinNetwork,
    headers: Vec<[u8; HEADER_LEN]>,
    by_hash: HashMap<B256, [u8; HEADER_LEN]>,
}

impl Model {
    fn new(network: BitcoinNetwork, base: &[[u8; HEADER_LEN]]) -> Self {
        let mut model = Self { network, headers: Vec::new(), by_hash: HashMap::new() };
        base.iter().for_each(|header| model.push(*header));
        model
    }

    fn push(&mut self, header: [u8; HEADER_LEN]) {
        self.headers.push(header);
        self.by_hash.insert(header_hash(&header), header);
    }

    /// The header and those below it, down to the checkpoint; `None` if they do not link to it.
    fn ancestors(&self, hash: B256) -> Option<Vec<&[u8; HEADER_LEN]>> {
        let (mut hash, mut path) = (hash, Vec::new());
        while hash != self.network.checkpoint.hash {
            let header = self.by_hash.get(&hash)?;
            path.push(header);
            hash = BitcoinHeader::from(header).previous();
        }
        Some(path)
    }

    fn work(&self, hash: B256) -> U256 {
        let path = self.ancestors(hash).unwrap();
        let work = |header: &[u8; HEADER_LEN]| {
            work_of_target(target_of(BitcoinHeader::from(header).bits()).unwrap())
        };
        path.into_iter().map(work).sum()
    }

    /// The heaviest tip. It is among the newest headers.
    fn tip(&self) -> B256 {
        let newest = self.headers.iter().rev().take(60).map(header_hash);
        newest.max_by_key(|hash| (self.work(*hash), U256::MAX - hash_number(hash))).unwrap()
    }

    /// The target of the header on top of these, the highest first.
    fn next_bits(&self, path: &[&[u8; HEADER_LEN]]) -> u32 {
        let period = PERIOD as usize;
        match path.len() {
            0 => self.network.checkpoint.next_bits,
            above if above % period == 0 && self.network.retargets => {
                let (first, (last, bits)) = (time_and_bits(path[period - 1]).0, time_and_bits(path[0]));
                retarget(bits, first, last, self.network.limit)
            }
            _ => time_and_bits(path[0]).1,
        }
    }

    /// Why a header is refused, in a word.
    fn refusal(&self, header: &[u8; HEADER_LEN], now: u64) -> Option<&'static str> {
        let fields = BitcoinHeader::from(header);
        let Some(path) = self.ancestors(fields.previous()) else { return Some("link") };
        let expected = self.next_bits(&path);
        let mut times: Vec<u32> = path.iter().take(11).map(|header| time_and_bits(header).0).collect();
        times.resize(11, 0);
        times.sort_unstable();
        if fields.bits() != expected {
            return Some("bits");
        }
        if hash_number(&fields.hash()) > target_of(expected).unwrap() {
            return Some("work");
        }
        if fields.time() <= times[5] {
            return Some("early");
        }
        (u64::from(fields.time()) > now + 7_200).then_some("future")
    }
}

fn time_and_bits(header: &[u8; HEADER_LEN]) -> (u32, u32) {
    let fields = BitcoinHeader::from(header);
    (fields.time(), fields.bits())
}

fn word(error: BitcoinChainError) -> &'static str {
    match error {
        BitcoinChainError::Unlinked { .. } => "link",
        BitcoinChainError::Deep { .. } => "deep",
        BitcoinChainError::Light { .. } => "light",
        BitcoinChainError::Bits { .. } => "bits",
        BitcoinChainError::HashAboveTarget { .. } => "work",
        BitcoinChainError::EarlyTime { .. } => "early",
        BitcoinChainError::FutureTime { .. } => "future",
    }
}

/// Cases of an ordinary test run.
const CASES: u32 = 64;

/// So many cases, or as many times more as `PROPTEST_CASES` is above the usual ones.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse::<u32>().ok());
    ProptestConfig::with_cases(asked.map_or(usual, |asked| asked.saturating_mul(usual) / CASES))
}

/// How a header is made: how far below the newest its parent is, its time from the parent's, its target, its nonces.
#[derive(Debug, Clone)]
struct Choice {
    back: usize,
    seconds: i64,
    /// Which of a few targets, the one of the parent first.
    bits: usize,
    /// The header is not mined.
    unmined: bool,
    /// The parent is not kept.
    orphan: bool,
}

fn choices(most: usize) -> impl Strategy<Value = Vec<Choice>> {
    let seconds = prop_oneof![8 => 1i64..1_200, 1 => -4_000i64..1, 1 => 5_000i64..9_000];
    let rare = |one_in: u32| (0..one_in).prop_map(|n| n == 0);
    let back = prop_oneof![6 => Just(0usize), 3 => 1usize..8];
    let bits = prop_oneof![8 => Just(0usize), 1 => 1usize..4];
    let one = (back, seconds, bits, rare(12), rare(20))
        .prop_map(|(back, seconds, bits, unmined, orphan)| Choice { back, seconds, bits, unmined, orphan });
    proptest::collection::vec(one, 1..most)
}

/// Makes the header of a choice on top of the headers so far.
fn make(choice: &Choice, model: &Model, salt: usize) -> [u8; HEADER_LEN] {
    let newest = model.headers.len() - 1;
    let parent = &model.headers[newest - choice.back.min(newest)];
    let fields = BitcoinHeader::from(parent);
    let previous = if choice.orphan { B256::repeat_byte(0xee) } else { header_hash(parent) };
    let honest = model.next_bits(&model.ancestors(header_hash(parent)).unwrap());
    let bits = [honest, fields.bits(), EASY, EIGHT][choice.bits];
    let time = u32::try_from(i64::from(fields.time()) + choice.seconds).unwrap();
    let root = B256::left_padding_from(&(1_000 + salt).to_be_bytes());
    let target = target_of(bits).unwrap();
    let mut tries = (0..).map(|nonce| header_of(previous, root, time, bits, nonce));
    tries.find(|header| (hash_number(&header_hash(header)) > target) == choice.unmined).unwrap()
}

fn compare(chain: &BitcoinChain, model: &Model) -> Result<(), TestCaseError> {
    let tip = model.tip();
    prop_assert_eq!(chain.tip().hash, tip);
    let path = model.ancestors(tip).unwrap();
    let start = model.network.checkpoint.height;
    prop_assert_eq!(chain.tip().height, start + path.len() as u32);
    prop_assert_eq!(chain.work_of(..), model.work(tip));
    for (index, header) in path.iter().rev().enumerate() {
        let height = start + 1 + index as u32;
        prop_assert_eq!(chain.header_at(height), Some(**header));
        prop_assert_eq!(chain.height_of(&header_hash(header)), Some(height));
    }
    for header in model.headers.iter().filter(|header| !path.contains(header)) {
        prop_assert_eq!(chain.height_of(&header_hash(header)), None);
    }
    Ok(())
}

/// Inserts what the choices make into the chain and the model, and compares them.
fn run(network: BitcoinNetwork, base: &[[u8; HEADER_LEN]], choices: &[Choice]) -> Result<(), TestCaseError> {
    let mut chain = BitcoinChain::new(network);
    insert_all(&mut chain, base);
    let mut model = Model::new(network, base);
    for (salt, choice) in choices.iter().enumerate() {
        let header = make(choice, &model, salt);
        let now = u64::from(START) + 600 * base.len() as u64 + 4_000;
        let got = chain.insert(&header, now);
        prop_assert_eq!(got.err().map(word), model.refusal(&header, now), "header {}", salt);
        if got.is_ok() {
            model.push(header);
        }
    }
    compare(&chain, &model)
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn the_chain_equals_the_model(choices in choices(40)) {
        let network = BitcoinNetwork::REGTEST;
        let base = mine_on(network.checkpoint.hash, 0, START, 600, EASY, 1);
        run(network, &base, &choices)?;
    }

    /// Whatever the order in which headers arrive, the heaviest chain is the same.
    #[test]
    fn the_order_of_insertion_does_not_matter(choices in choices(40), seed: u64) {
        let mut chain = BitcoinChain::new(BitcoinNetwork::REGTEST);
        let base = mine_on(chain.start().hash, 0, START, 600, EASY, 1);
        insert_all(&mut chain, &base);
        let mut model = Model::new(*chain.network(), &base);
        for (salt, choice) in choices.iter().enumerate() {
            let header = make(choice, &model, salt);
            if chain.insert(&header, NOW).is_ok() {
                model.push(header);
            }
        }
        let mut other = BitcoinChain::new(BitcoinNetwork::REGTEST);
        let mut left = model.headers;
        fastrand::Rng::with_seed(seed).shuffle(&mut left);
        while !left.is_empty() {
            let before = left.len();
            left.retain(|header| match other.insert(header, NOW) {
                Err(BitcoinChainError::Unlinked { .. }) => true,
                Ok(BitcoinInserted::Known) => panic!("twice"),
                Ok(_) => false,
                Err(error) => panic!("{error}"),
            });
            assert!(left.len() < before, "headers that never link");
        }
        prop_assert_eq!(other.tip(), chain.tip());
        prop_assert_eq!(other.work_of(..), chain.work_of(..));
        prop_assert_eq!(other.branches().len(), chain.branches().len());
    }

    #[test]
    fn any_bytes_are_refused_without_panic(header: [u8; 32], linked: bool, time: u32, now: u64) {
        let mut chain = BitcoinChain::new(changing(EIGHT));
        let previous = if linked { chain.start().hash } else { B256::from(header) };
        let any = header_of(previous, B256::from(header), time, u32::from(header[0]) << 24, time);
        prop_assert!(chain.insert(&any, now).is_err());
    }
}

/// Branches over the end of a period, each with the target of its own last time.
#[test]
fn the_chain_equals_the_model_over_the_end_of_a_period() {
    let network = changing(EIGHT);
    let base = mine_on(network.checkpoint.hash, 0, START, 600, EIGHT, PERIOD as usize - 4);
    let mut runner = proptest::test_runner::TestRunner::new(cases(6));
    runner.run(&choices(20), |choices| run(network, &base, &choices)).unwrap();
}
