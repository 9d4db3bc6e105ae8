//! The 1,200 recorded mainnet headers from 4,479,841 on, July 2022, below `$ROOTLIGHT_SHARED`.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;

use super::{
    AttackCost, BitcoinJudge, BranchRange, Coinbases, Commitments, DatedWork, ShownChain, ShownView,
    TagClass, classify,
};
use crate::consensus::bitcoin::{
    BitcoinBlock, BitcoinChain, BitcoinHeader, CoinbaseBytes, CoinbaseProof, CoinbaseProofError, Tag,
    hash_number, target_of, work_of_target,
};
use crate::consensus::{ChainView, Checkpoint, HeaderCandidate, HeaderChain, Network};
use crate::types::U256;

const FIRST: u64 = 4_479_841;
/// First header whose seven commitments are all among the recorded headers.
const COMPARED: u64 = 4_480_257;
/// Bitcoin's target at that time.
const BITS: u32 = 0x1709_a7af;
/// Height of the first named parent; any number will do.
const LOWEST: u32 = 745_000;
/// Headers of another SHA-256 chain.
const FOREIGN: [u64; 4] = [4_479_945, 4_480_405, 4_480_845, 4_480_889];

fn shared(path: &str) -> Option<Value> {
    let folder = std::env::var("ROOTLIGHT_SHARED").unwrap_or_else(|_| "../shared".into());
    let path = PathBuf::from(folder).join(path);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no {}", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap().trim_start_matches("0x")).unwrap()
}

/// The recorded headers as a chain.
static RECORDED: LazyLock<Option<ChainView>> = LazyLock::new(|| {
    let file = shared("realdata/headers/mainnet_4479841_iris_run1200.json")?;
    let network = Arc::new(Network::mainnet());
    let headers = file["headers"].as_array().unwrap().iter();
    let mut headers = headers.map(|value| HeaderCandidate::decode(&bytes(&value["rlp"]), &network).unwrap());
    let first = headers.next().unwrap().header().clone();
    let checkpoint = Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
    let mut chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, first).unwrap();
    headers.for_each(|header| {
        chain.insert(header, None).unwrap();
    });
    Some(chain.snapshot())
});

fn bitcoin_headers(view: &ChainView) -> impl Iterator<Item = (u64, BitcoinHeader<'_>)> {
    (FIRST..FIRST + 1_200).map(|number| {
        let header = view.by_number(number).unwrap();
        (number, BitcoinHeader::first_of(&header.bitcoin_header).unwrap())
    })
}

/// The named parents, in the order in which they are named first, as a Bitcoin chain.
fn bitcoin(view: &ChainView) -> BitcoinChain {
    let mut blocks: Vec<BitcoinBlock> = Vec::new();
    for (_, header) in bitcoin_headers(view).filter(|(_, header)| header.bits() == BITS) {
        let (height, hash) = (LOWEST + blocks.len() as u32, header.previous());
        if !blocks.iter().any(|block| block.hash == hash) {
            blocks.push(BitcoinBlock { height, hash, time: header.time(), bits: BITS });
        }
    }
    BitcoinChain::of_blocks(LOWEST, blocks)
}

fn tag_of(view: &ChainView, number: u64) -> Tag {
    let header = view.by_number(number).unwrap();
    let proof = CoinbaseProof {
        coinbase: CoinbaseBytes::Midstate(&header.coinbase_tx),
        branch: &header.merkle_proof,
    };
    let bitcoin = header.bitcoin_header[..].try_into().unwrap();
    *proof.prove(LOWEST, bitcoin).unwrap().tag().unwrap()
}

#[test]
fn fifteen_headers_are_bitcoin_blocks_and_four_of_another_chain() {
    let Some(view) = &*RECORDED else { return };
    let meets = |header: &BitcoinHeader<'_>| {
        target_of(header.bits()).is_some_and(|target| hash_number(&header.hash()) <= target)
    };
    let (own, other): (Vec<_>, Vec<_>) = bitcoin_headers(view)
        .filter(|(_, header)| meets(header))
        .map(|(number, header)| (number, header.bits()))
        .partition(|(_, bits)| *bits == BITS);
    assert_eq!(own.len(), 15);
    assert_eq!(other.iter().map(|(number, _)| *number).collect::<Vec<_>>(), FOREIGN);
    assert!(other.iter().all(|(_, bits)| bits >> 16 == 0x1807));
    // The chain itself decides: fourteen are named as parents later. The tip has no block on top.
    let chain = bitcoin(view);
    let mut commitments = Commitments::new(0);
    commitments.follow(view, &chain);
    let heights = commitments.heights(&chain, u32::MAX, 0);
    assert_eq!(heights.len(), 14);
    assert!(heights.values().all(|number| own.iter().any(|(own, _)| own == number)));
    assert_eq!(commitments.counts(&chain, chain.tip().height).recent, 13);
}

#[test]
fn parents_are_58_blocks_in_order() {
    let Some(view) = &*RECORDED else { return };
    let chain = bitcoin(view);
    assert_eq!(chain.tip().height, LOWEST + 57);
    let mut dates = DatedWork::new(0);
    dates.follow(view, &chain);
    let parents: Vec<u32> = dates.parents().map(|(height, _)| height).collect();
    assert_eq!(parents, (LOWEST..LOWEST + 58).collect::<Vec<_>>());
    // All headers above the trusted one count but the four: none goes back.
    let all = (FIRST + 1..FIRST + 1_200).map(|number| view.by_number(number).unwrap());
    let foreign = |number: u64| FOREIGN.contains(&number);
    let work = |headers: &mut dyn Iterator<Item = U256>| headers.fold(U256::ZERO, |sum, work| sum + work);
    let counted = work(&mut all.filter(|h| !foreign(h.number)).map(|h| h.difficulty.value()));
    assert_eq!(work(&mut dates.parents().map(|(_, work)| work)), counted);

    // The share of Bitcoin's work: of the blocks that were found, and of those to be expected in this time (33 s each).
    let block = work_of_target(target_of(BITS).unwrap());
    let permille =
        |blocks: u64| -> u64 { (counted * U256::from(1_000) / block / U256::from(blocks)).saturating_to() };
    let seconds = view.head().timestamp - view.by_number(FIRST).unwrap().timestamp;
    assert_eq!((permille(58), seconds / 600), (225, 66));
    let expected = counted * U256::from(600_000) / block / U256::from(seconds);
    assert_eq!(expected, U256::from(197), "0.1975");
}

/// Fourteen of the named blocks are themselves the proof of a recorded header, so that their times are known.
#[test]
fn no_header_is_older_than_the_bitcoin_block_that_it_names() {
    let Some(view) = &*RECORDED else { return };
    let times: BTreeMap<_, _> =
        bitcoin_headers(view).map(|(_, own)| (own.hash(), u64::from(own.time()))).collect();
    let mut named = 0;
    for (number, header) in bitcoin_headers(view) {
        let Some(parent) = times.get(&header.previous()) else { continue };
        let time = view.by_number(number).unwrap().timestamp;
        assert!(time + 600 > *parent, "{number} at {time}, its parent at {parent}");
        named += 1;
    }
    assert!(named > 200, "{named}");
}

/// The least share over 12 and 36 closed tips.
#[test]
fn the_lowest_suffixes_are_far_above_the_floors() {
    let Some(view) = &*RECORDED else { return };
    let chain = bitcoin(view);
    let mut dates = DatedWork::new(0);
    dates.follow(view, &chain);
    let mut lowest: BTreeMap<u32, u64> = BTreeMap::new();
    for tip in LOWEST + 12..=LOWEST + 58 {
        assert_eq!(dates.report(&chain, tip).low(), None);
        for blocks in [12, 24, 36] {
            let suffix = shares(&dates, tip, blocks);
            if let Some(share) = suffix {
                let least = lowest.entry(blocks).or_insert(share);
                *least = share.min(*least);
            }
        }
    }
    assert_eq!((lowest[&12], lowest[&36]), (1_086, 1_921), "hundredths of a percent");
    assert!(lowest[&24] > 1_900, "{lowest:?}");
}

/// The share of the parents from `tip - blocks` to `tip - 1`, the first one included.
fn shares(dates: &DatedWork, tip: u32, blocks: u32) -> Option<u64> {
    let from = tip.checked_sub(blocks).filter(|from| *from >= LOWEST)?;
    let named = dates.parents().filter(|(height, _)| (from..tip).contains(height));
    let work = named.fold(U256::ZERO, |sum, (_, work)| sum + work);
    let block = work_of_target(target_of(BITS).unwrap());
    Some((work * U256::from(10_000) / block / U256::from(blocks)).saturating_to())
}

#[test]
fn every_tag_is_own_and_a_sibling_is_kin() {
    let Some(view) = &*RECORDED else { return };
    let shown = ShownView::new(view);
    for number in FIRST..FIRST + 1_200 {
        let tag = tag_of(view, number);
        assert_eq!(u64::from(tag.number), number);
        assert_eq!(classify(&tag, &shown), TagClass::Own);
        let sibling = Tag { hash20: [7; 20], ..tag };
        // The first 32 commit to nothing that is recorded.
        let class = if number < FIRST + 32 { TagClass::None } else { TagClass::Kin };
        assert_eq!(classify(&sibling, &shown), class, "{number}");
    }
}

/// The recorded chain up to a block, above it another one.
struct Forked<'a>(ShownView<'a>, u64);

impl ShownChain for Forked<'_> {
    fn head(&self) -> u64 {
        self.0.head()
    }

    fn is_own(&self, _: &Tag) -> bool {
        false
    }

    fn bitcoin_byte(&self, number: u64) -> Option<u8> {
        // The byte of another block is as good as a random one.
        self.0.bitcoin_byte(if number > self.1 { number ^ 1 } else { number })
    }
}

#[test]
fn forks_are_foreign_as_often_as_stated() {
    let Some(view) = &*RECORDED else { return };
    let tags: Vec<Tag> = (COMPARED..FIRST + 1_200).map(|number| tag_of(view, number)).collect();
    assert_eq!(tags.len(), 784);
    let found = |depth: u64| {
        let (mut foreign, mut right) = (0, 0);
        for tag in &tags {
            let left = u64::from(tag.number) - depth;
            if let TagClass::Foreign(BranchRange { after, until }) =
                classify(tag, &Forked(ShownView::new(view), left))
            {
                foreign += 1;
                right += u32::from(after.is_none_or(|after| after <= left) && left < until);
            }
        }
        (foreign, right)
    };
    let percent = |depth| found(depth).0 * 100 / 784;
    assert_eq!((percent(32), percent(64)), (49, 98));
    let (foreign, right) = found(128);
    assert_eq!(foreign, 784);
    assert!(right >= 780, "{right}");
}

#[test]
fn the_recorded_chain_has_evidence_and_a_cost() {
    let Some(view) = &*RECORDED else { return };
    let chain = bitcoin(view);
    let mut judge = BitcoinJudge::new(0);
    judge.follow(view, &chain);
    let now = u64::from(chain.tip().time);
    let report = judge.report(view, &chain, &Coinbases::default(), now);
    assert_eq!((report.dated.lag, report.dated.judged, report.dated.low()), (Some(0), 56, None));
    let evidence = |number| judge.evidence(number, &chain, &report, now).bitcoin_blocks;
    assert_eq!(
        (evidence(FIRST), evidence(4_480_415), evidence(4_480_416), evidence(4_480_967)),
        (13, 7, 6, 0)
    );
    // Twelve headers are a seventh of a Bitcoin block.
    let cost = |depth| AttackCost::of(view, &chain, view.head().number - depth).unwrap().milli_blocks;
    assert!(
        (100..200).contains(&cost(11)) && (1_000..1_900).contains(&cost(119)),
        "{} {}",
        cost(11),
        cost(119)
    );
}

/// The recorded proofs are of stale Bitcoin blocks: proven for their own headers, they are in no chain.
#[test]
fn stale_blocks_prove_coinbases_that_count_nowhere() {
    let Some(file) = shared("realdata/proofs/mainnet_merge_mining_proofs.json") else { return };
    let Some(view) = &*RECORDED else { return };
    let (chain, mut coinbases) = (bitcoin(view), Coinbases::default());
    let (mut proven, mut other) = (0, 0);
    for value in file["proofs"].as_array().unwrap() {
        let (header, branch, coinbase) =
            (bytes(&value["btcHeader"]), bytes(&value["merkleProof"]), bytes(&value["coinbase"]));
        let proof = CoinbaseProof { coinbase: CoinbaseBytes::Midstate(&coinbase), branch: &branch };
        match proof.prove(LOWEST + 5, header[..].try_into().unwrap()) {
            Ok(found) => {
                let hash: [u8; 32] = bytes(&value["hashForMergedMining"]).try_into().unwrap();
                assert_eq!(found.tag(), Some(&Tag::from(hash)));
                assert_eq!(chain.height_of(&found.block()), None);
                coinbases.insert(&found);
                assert_eq!(coinbases.tag_at(&chain, LOWEST + 5), None);
                proven += 1;
            }
            // The form from before RSKIP-92, a partial Merkle tree.
            Err(CoinbaseProofError::Branch(_)) => other += 1,
            Err(error) => panic!("{}: {error}", value["number"]),
        }
    }
    assert_eq!((proven, other), (149, 3));
}
