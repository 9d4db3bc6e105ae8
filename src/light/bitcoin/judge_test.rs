//! The judge over mined Rootstock chains, whose proofs and coinbases are real.

use super::testing::hash;
use super::{
    AttackCost, BitcoinFollower, BitcoinJudge, BitcoinReport, BitcoinVerdict, BranchRange, Coinbases,
    MAX_TIP_AGE, TagFault, WeakReason,
};
use crate::consensus::bitcoin::{BitcoinBlock, BitcoinChain, BitcoinHeader, CoinbaseBytes, CoinbaseProof};
use crate::consensus::bitcoin::{BitcoinNetwork, ProvenCoinbase, Tag};
use crate::consensus::testing::{Bitcoin, chain, child, easy_network};
use crate::consensus::{HeaderCandidate, HeaderChain, difficulty};
use crate::light::{
    Now,
    sync::{BitcoinDates, WindowJudge, WindowVerdict},
};
use crate::types::{B256, Header, SealedHeader, uncles_hash};

/// Number of the Rootstock block at which the chains start.
const START: u64 = 5_000;
/// Height of the lowest Bitcoin block.
const LOWEST: u32 = 1_000;
/// Time of the lowest Bitcoin block, which is that of the first Rootstock header.
const TIME: u32 = 1_600_000_000 + 30 * START as u32;
/// Two hashes make a Bitcoin block, so that every header may be one.
const BITS: u32 = 0x207f_ffff;

/// A Rootstock chain and a Bitcoin chain, whose blocks need no links.
#[derive(Clone)]
struct ChainPair {
    rootstock: HeaderChain,
    blocks: Vec<BitcoinBlock>,
    coinbases: Coinbases,
    proven: Vec<ProvenCoinbase>,
    /// Told to headers, so that branches differ.
    gas_used: u64,
}

impl ChainPair {
    fn new() -> Self {
        Self::at(START)
    }

    /// A pair whose Rootstock chain starts at this block.
    fn at(number: u64) -> Self {
        let rootstock = chain(easy_network(&[], &[]), number);
        let (blocks, proven, coinbases) = (Vec::new(), Vec::new(), Coinbases::default());
        let mut chains = Self { rootstock, blocks, coinbases, proven, gas_used: 0 };
        chains.bitcoin_block(None);
        chains
    }

    fn tip(&self) -> BitcoinBlock {
        *self.blocks.last().unwrap()
    }

    fn bitcoin(&self) -> BitcoinChain {
        BitcoinChain::of_blocks(LOWEST, self.blocks.clone())
    }

    fn now(&self) -> u64 {
        u64::from(self.tip().time) + 60
    }

    /// The next Rootstock header, which is not inserted.
    fn mined(&self, parent: &B256, uncles: &[Header]) -> SealedHeader {
        let view = self.rootstock.view();
        let mut header = child(view.network(), view.by_hash(parent).unwrap());
        header.gas_used = self.gas_used;
        header.uncles_hash = uncles_hash(uncles);
        header.uncle_count = uncles.len() as u32;
        let parent_header = view.by_hash(parent).unwrap();
        header.timestamp = (parent_header.timestamp + 1).max(u64::from(self.tip().time) + 1);
        header.difficulty = difficulty::expected(&header, parent_header, view.network()).into();
        let data = view.fork_detection_after(parent).unwrap();
        Bitcoin { previous: self.tip().hash, ..Bitcoin::for_header(data) }.mine(header)
    }

    fn extend(&mut self, headers: u32) -> SealedHeader {
        let mut last = self.rootstock.head().sealed().clone();
        for _ in 0..headers {
            last = self.mined(&self.rootstock.head().hash(), &[]);
            self.rootstock.insert(HeaderCandidate::from(last.clone()), None).unwrap();
        }
        last
    }

    /// A Bitcoin block, which is that of this header's proof or has no tag.
    fn bitcoin_block(&mut self, header: Option<&SealedHeader>) {
        let height = LOWEST + self.blocks.len() as u32;
        let proven = match header {
            None => ProvenCoinbase::stated(height, hash(height), None),
            Some(header) => proof_of(header, height),
        };
        self.push_block(&proven);
    }

    /// A Bitcoin block with the tag of a block that no upstream shows.
    fn tagged_block(&mut self, tag: Tag) {
        let height = LOWEST + self.blocks.len() as u32;
        self.push_block(&ProvenCoinbase::stated(height, hash(height), Some(tag)));
    }

    fn push_block(&mut self, proven: &ProvenCoinbase) {
        self.coinbases.insert(proven);
        self.proven.push(*proven);
        let (height, hash) = (proven.height(), proven.block());
        self.blocks.push(BitcoinBlock { height, hash, time: TIME + 600 * (height - LOWEST), bits: BITS });
    }

    /// Bitcoin blocks with `headers` Rootstock headers on each; every `every`th one is that of the last header.
    fn run(&mut self, blocks: u32, headers: u32, every: u32) {
        for block in 1..=blocks {
            let last = self.extend(headers);
            self.bitcoin_block(block.is_multiple_of(every).then_some(&last));
        }
    }

    fn judge(&self) -> (BitcoinJudge, BitcoinReport) {
        let mut judge = BitcoinJudge::new(0);
        judge.follow(self.rootstock.view(), &self.bitcoin());
        let report = self.report_of(&judge, self.now());
        (judge, report)
    }

    fn report_of(&self, judge: &BitcoinJudge, now: u64) -> BitcoinReport {
        judge.report(self.rootstock.view(), &self.bitcoin(), &self.coinbases, now)
    }

    fn verdict(&self) -> BitcoinVerdict {
        self.judge().1.verdict
    }
}

/// The coinbase in a header's proof, as one of a Bitcoin block at a height.
fn proof_of(header: &SealedHeader, height: u32) -> ProvenCoinbase {
    let proof = CoinbaseProof {
        coinbase: CoinbaseBytes::Midstate(&header.coinbase_tx),
        branch: &header.merkle_proof,
    };
    proof.prove(height, header.bitcoin_header[..].try_into().unwrap()).unwrap()
}

fn weak(chains: &ChainPair) -> WeakReason {
    match chains.verdict() {
        BitcoinVerdict::Weak(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_honest_chain_is_held() {
    let mut chains = ChainPair::new();
    chains.run(90, 4, 3);
    chains.extend(1);
    let (judge, report) = chains.judge();
    assert_eq!(report.verdict, BitcoinVerdict::Held);
    // The tip itself commits to the chain too, but has no block on top.
    assert_eq!((report.tags.own, report.tags.none, report.counts.recent), (24, 48, 24));
    assert_eq!((report.hidden, report.dated.lag), (None, Some(0)));
    assert_eq!(judge.dated().len(), 361);
}

/// Evidence is shown above the answer: a fork of the newest headers inherits all that is below it.
#[test]
fn evidence_is_counted_above_a_block() {
    let mut chains = ChainPair::new();
    chains.run(90, 4, 3);
    chains.run(2, 4, 9);
    let (judge, report) = chains.judge();
    let evidence = |number| judge.evidence(number, &chains.bitcoin(), &report, chains.now());
    let head = chains.rootstock.head().number;
    let first = evidence(START);
    assert_eq!((first.bitcoin_blocks, first.newest_height), (30, Some(LOWEST + 90)));
    assert_eq!(first.newest_age, Some(2 * 600 + 60));
    // The last commitment is to the block that is 8 below the head.
    assert_eq!(evidence(head - 8).bitcoin_blocks, 1);
    let above = evidence(head - 7);
    assert_eq!((above.bitcoin_blocks, above.newest_height, above.newest_age), (0, None, None));
    assert_eq!(above.tags, report.tags);
    assert_eq!(report.verdict, BitcoinVerdict::Held, "what stands below does not help a young block");
}

#[test]
fn the_cost_of_a_forgery_grows_with_depth() {
    let mut chains = ChainPair::new();
    chains.run(20, 4, 3);
    let cost = |depth| {
        let head = chains.rootstock.head().number;
        AttackCost::of(chains.rootstock.view(), &chains.bitcoin(), head - depth).unwrap()
    };
    assert_eq!((cost(0).headers, cost(12).headers), (1, 13));
    assert!(cost(12).work > cost(11).work && cost(11).work > cost(0).work);
    let found = cost(12);
    assert_eq!(found.milli_blocks, (found.work.to::<u64>()) * 1_000 / 2, "two hashes make a block");
    assert_eq!((found.minutes(10), found.minutes(0)), (found.milli_blocks / 10, u64::MAX));
}

#[test]
fn without_a_bitcoin_chain_nothing_is_said() {
    let mut chains = ChainPair::new();
    chains.run(20, 4, 3);
    let chain = BitcoinChain::new(BitcoinNetwork::MAINNET);
    let judge = BitcoinJudge::new(0);
    let report = judge.report(chains.rootstock.view(), &chain, &chains.coinbases, chains.now());
    assert_eq!(report.verdict, BitcoinVerdict::Unavailable);
}

#[test]
fn what_does_not_hold_is_named() {
    let mut chains = ChainPair::new();
    chains.run(12, 4, 3);
    chains.extend(1);
    assert_eq!(weak(&chains), WeakReason::FewBlocks(11));
    chains.run(70, 4, 3);
    assert_eq!(chains.verdict(), BitcoinVerdict::Held);

    // Sources withhold the newest Bitcoin blocks.
    let (judge, _) = chains.judge();
    let late = chains.now() - 60 + MAX_TIP_AGE;
    assert_eq!(chains.report_of(&judge, late).verdict, BitcoinVerdict::Held);
    let old = BitcoinVerdict::Weak(WeakReason::OldTip(MAX_TIP_AGE + 1));
    assert_eq!(chains.report_of(&judge, late + 1).verdict, old);

    // Upstreams withhold the newest headers.
    let mut ahead = chains.clone();
    (0..3).for_each(|_| ahead.bitcoin_block(None));
    assert_eq!(weak(&ahead), WeakReason::Lags(Some(4)));

    // A source withholds coinbases.
    let mut withheld = chains.clone();
    withheld.coinbases = Coinbases::default();
    assert_eq!(weak(&withheld), WeakReason::Tags(TagFault::Withheld));

    // Bitcoin is reorganised six blocks deep.
    let (mut judge, _) = chains.judge();
    let mut other = chains.clone();
    other.blocks.iter_mut().rev().take(6).for_each(|block| block.hash = hash(7_000 + block.height));
    judge.follow(other.rootstock.view(), &other.bitcoin());
    let deep = BitcoinVerdict::Weak(WeakReason::Reorganised(6));
    assert_eq!(other.report_of(&judge, other.now()).verdict, deep);
}

/// While neither upstreams nor sources respond, no report is made, and answers are given all the same.
#[test]
fn a_verdict_ages_by_the_clock_alone() {
    let mut chains = ChainPair::new();
    chains.run(90, 4, 3);
    chains.extend(1);
    let mut follower = BitcoinFollower::resume(chains.bitcoin());
    chains.proven.iter().for_each(|proven| follower.keep_coinbase(proven, None));
    follower.follow(chains.rootstock.view(), chains.now());
    let late = chains.now() - 60 + MAX_TIP_AGE;
    assert_eq!(follower.verdict(late), BitcoinVerdict::Held);
    let old = BitcoinVerdict::Weak(WeakReason::OldTip(MAX_TIP_AGE + 1));
    assert_eq!(follower.verdict(late + 1), old);
    assert_eq!(follower.report_at(late + 1).map(|report| report.tip_age), Some(MAX_TIP_AGE + 1));
    assert_eq!(follower.report().map(|report| report.verdict), Some(BitcoinVerdict::Held));
}

/// A page verifies a branch of Bitcoin's chain as a chain of its own, which takes the place of the one before.
#[test]
fn a_deep_reorganisation_is_seen_where_a_chain_is_replaced() {
    let mut chains = ChainPair::new();
    chains.run(90, 4, 3);
    chains.extend(1);
    for depth in [5, 6] {
        let mut follower = BitcoinFollower::resume(chains.bitcoin());
        follower.follow(chains.rootstock.view(), chains.now());
        let mut other = chains.clone();
        let newest = other.blocks.iter_mut().rev().take(depth);
        newest.for_each(|block| block.hash = hash(7_000 + block.height));
        follower.replace_chain(other.bitcoin());
        assert!(follower.is_due(chains.rootstock.view(), chains.now()));
        follower.follow(chains.rootstock.view(), chains.now());
        let deep = BitcoinVerdict::Weak(WeakReason::Reorganised(6));
        let verdict = follower.verdict(chains.now());
        assert_eq!(verdict == deep, depth == 6, "{verdict:?}");
    }
}

/// Without an honest source, Bitcoin's chain may be false above an old block. It dates no window then.
#[test]
fn few_new_blocks_of_bitcoin_date_nothing() {
    let mut chains = ChainPair::new();
    chains.run(40, 4, 3);
    chains.extend(1);
    let dated = |chains: &ChainPair, millis| {
        let follower = BitcoinFollower::resume(chains.bitcoin());
        let now = Now { unix: chains.now(), millis };
        BitcoinDates::since(Now::default()).judge(chains.rootstock.view(), Some(&follower), now)
    };
    assert!(matches!(dated(&chains, 20_000), WindowVerdict::Enough(_)));
    chains.blocks[0].time -= 60 * 24 * 3_600;
    assert_eq!(dated(&chains, 20_000), WindowVerdict::Unavailable);
    assert_eq!(dated(&chains, 0), WindowVerdict::Wait, "another source may come");
    assert_eq!(weak(&chains), WeakReason::SlowBitcoin);
}

/// A window that reaches back few Bitcoin blocks costs its makers less than the network's own numbers ask for.
#[test]
fn a_window_that_reaches_few_bitcoin_blocks_is_not_dated() {
    for (blocks, is_dated) in [(20, false), (34, false), (38, true)] {
        let mut chains = ChainPair::new();
        (0..40).for_each(|_| chains.bitcoin_block(None));
        chains.run(blocks, 4, 3);
        chains.extend(1);
        let follower = BitcoinFollower::resume(chains.bitcoin());
        let now = Now { unix: chains.now(), millis: 20_000 };
        let dated = BitcoinDates::since(Now::default()).judge(chains.rootstock.view(), Some(&follower), now);
        assert_eq!(matches!(dated, WindowVerdict::Enough(_)), is_dated, "{blocks}: {dated:?}");
        assert_eq!(dated == WindowVerdict::Unavailable, !is_dated, "{blocks}: {dated:?}");
    }
}

/// The dated work of two windows is compared, whatever their lengths are.
#[test]
fn a_longer_window_has_no_more_dated_work() {
    let dated = |blocks| {
        let mut chains = ChainPair::new();
        chains.run(blocks, 4, 3);
        chains.extend(1);
        let follower = BitcoinFollower::resume(chains.bitcoin());
        let now = Now { unix: chains.now(), millis: 20_000 };
        BitcoinDates::since(Now::default()).judge(chains.rootstock.view(), Some(&follower), now)
    };
    let short = dated(80);
    assert!(matches!(short, WindowVerdict::Enough(_)), "{short:?}");
    assert_eq!(dated(160), short);
}

/// Headers of a chain that is no longer mined on Bitcoin's newest blocks.
#[test]
fn too_little_work_is_named() {
    let mut chains = ChainPair::new();
    chains.run(60, 8, 3);
    let blocks = (0..24u32).map(|at| BitcoinBlock { bits: 0x1f7f_ffff, ..chains.tip_after(at + 1) });
    let blocks: Vec<BitcoinBlock> = blocks.collect();
    chains.blocks.extend(blocks);
    chains.extend(1);
    assert!(matches!(weak(&chains), WeakReason::LowWork(low) if low.blocks >= 12 && low.is_low()));
}

impl ChainPair {
    fn tip_after(&self, blocks: u32) -> BitcoinBlock {
        let BitcoinBlock { height, time, bits, .. } = self.tip();
        let height = height + blocks;
        BitcoinBlock { height, hash: hash(height), time: time + 600 * blocks, bits }
    }
}

/// Two branches on the same Bitcoin blocks: miners stand behind the one that is not shown.
#[test]
fn a_branch_with_fewer_tags_is_contested() {
    // As fast as the honest chain, and so slow that the honest chain's numbers are far above.
    for headers in [4, 2] {
        contested(headers);
    }
}

fn contested(headers: u32) {
    let mut honest = ChainPair::new();
    honest.run(80, 4, 3);
    let fork = honest.rootstock.head().number;
    let mut shown = honest.rootstock.clone();
    let mut forged = honest.clone();
    // Until the first commitment above the fork, tags are kin.
    for block in 0..80 {
        // The forger has one Bitcoin block in eight, the honest miners one in three.
        let last = honest.extend(4);
        let (mut false_world, from) = (forged.clone(), honest.tip());
        false_world.blocks = honest.blocks.clone();
        false_world.gas_used = 77;
        false_world.rootstock = shown;
        assert_eq!(false_world.tip(), from);
        let false_last = false_world.extend(headers);
        shown = false_world.rootstock;
        let tag = match block {
            block if block % 8 == 0 => Some(&false_last),
            block if block % 3 == 0 => Some(&last),
            _ => None,
        };
        honest.bitcoin_block(tag);
        forged = ChainPair { rootstock: shown.clone(), gas_used: 77, ..honest.clone() };
    }
    let (_, report) = forged.judge();
    let BitcoinVerdict::Contested(range) = report.verdict else { panic!("{report:?}") };
    assert!(range.after.is_some_and(|after| after <= fork) && fork < range.until, "{fork}: {range:?}");
    assert!(report.hidden.is_some_and(|hidden| hidden.range == range && hidden.tags > 5));
    // The honest chain shows the false tags as a hidden branch, and is held.
    let (_, report) = honest.judge();
    assert_eq!(report.verdict, BitcoinVerdict::Held);
    assert!(report.tags.foreign > 0);
}

/// The number that a window begins with is its makers' choice. Tags of the honest chain then name blocks below all that is
/// shown, or blocks among the ancestors of the window, whose bytes cost nothing.
#[test]
fn tags_of_blocks_below_those_of_their_time_are_of_another_branch() {
    for number in [1_000, START as u32 + 64] {
        let mut chains = ChainPair::new();
        chains.run(16, 4, 90);
        let equal = chains.rootstock.view().fork_detection_after(&chains.rootstock.head().hash()).unwrap();
        let cpv = core::array::from_fn(|step| equal[step]);
        for block in 0..78u8 {
            let last = chains.extend(4);
            match block % 6 {
                0 => chains.bitcoin_block(Some(&last)),
                1 | 3 => chains.tagged_block(Tag { hash20: [block; 20], cpv, uncles: 0, number }),
                _ => chains.bitcoin_block(None),
            }
        }
        chains.extend(1);
        let mut judge = BitcoinJudge::new(START + 65);
        judge.follow(chains.rootstock.view(), &chains.bitcoin());
        let report = chains.report_of(&judge, chains.now());
        assert_eq!(report.verdict, anywhere_below(&chains), "{report:?}");
        assert_eq!((report.tags.own, report.tags.foreign), (12, 24));
        assert_eq!(report.hidden.map(|hidden| hidden.tags), Some(24));
    }
}

/// The verdict on a branch that has no block in common with the chain.
fn anywhere_below(chains: &ChainPair) -> BitcoinVerdict {
    let until = chains.rootstock.head().number;
    BitcoinVerdict::Contested(BranchRange { after: None, until })
}

/// The same with a window whose numbers are lower than those of the honest chain.
#[test]
fn tags_of_blocks_far_above_those_of_their_time_are_of_another_branch() {
    let with_tags = |agreeing: bool| {
        let mut chains = ChainPair::new();
        chains.run(16, 4, 90);
        for block in 0..78u8 {
            let last = chains.extend(4);
            let number = u32::try_from(last.number + 10_000).unwrap();
            let cpv = if agreeing { [9; 7] } else { [block; 7] };
            match block % 6 {
                0 => chains.bitcoin_block(Some(&last)),
                1 | 3 => chains.tagged_block(Tag { hash20: [block; 20], cpv, uncles: 0, number }),
                _ => chains.bitcoin_block(None),
            }
        }
        chains.extend(1);
        (chains.judge().1, chains)
    };
    let (report, chains) = with_tags(true);
    assert_eq!(report.verdict, anywhere_below(&chains), "{report:?}");
    assert_eq!((report.tags.own, report.tags.foreign, report.tags.ahead), (12, 24, 0));
    // Garbage does not agree.
    let (report, _) = with_tags(false);
    assert_eq!(report.verdict, BitcoinVerdict::Weak(WeakReason::Tags(TagFault::Foreign)), "{report:?}");
    assert_eq!(report.hidden, None);
}

/// A chain that upstreams cut off is not past Bitcoin's newest blocks, so that their tags may be of blocks on top of it.
#[test]
fn tags_of_blocks_that_are_withheld_are_ahead() {
    let mut chains = ChainPair::new();
    chains.run(90, 4, 3);
    let number = chains.rootstock.head().number as u32 + 5_000;
    for block in 0..3u8 {
        chains.tagged_block(Tag { hash20: [block; 20], cpv: [7; 7], uncles: 0, number });
    }
    let (_, report) = chains.judge();
    assert_eq!((report.tags.ahead, report.tags.foreign, report.hidden), (2, 0, None), "{report:?}");
}

/// Tags of Bitcoin blocks from before the oldest header say nothing of the chain.
#[test]
fn tags_from_before_the_first_header_cannot_be_compared() {
    let mut chains = ChainPair::new();
    for block in 0..36u8 {
        chains.tagged_block(Tag { hash20: [block; 20], cpv: [block; 7], uncles: 0, number: 4_000 });
    }
    chains.run(40, 4, 3);
    chains.extend(1);
    let (_, report) = chains.judge();
    assert_eq!(report.verdict, BitcoinVerdict::Held, "{report:?}");
    assert_eq!(report.tags.foreign, 0);
}

/// The first chain that a client follows may be a false one, of any numbers. What is said of the next one does not depend
/// on it.
#[test]
fn a_chain_of_lower_numbers_is_judged_from_its_first_header() {
    let (mut other, mut chains) = (ChainPair::at(START + 20_000), ChainPair::new());
    other.run(80, 4, 3);
    chains.run(80, 4, 3);
    chains.extend(1);
    let mut follower = BitcoinFollower::resume(chains.bitcoin());
    follower.follow(other.rootstock.view(), chains.now());
    follower.follow(chains.rootstock.view(), chains.now());
    let report = follower.report().unwrap();
    assert_eq!(report.dated, chains.judge().1.dated);
    let above = follower.evidence(START + 1, chains.now()).unwrap();
    assert_eq!(above.bitcoin_blocks, 26);
}

/// A pool with most of the tags leaves in one block. That is no attack, and the chain goes on.
#[test]
fn the_exit_of_a_large_pool_does_no_harm() {
    let mut chains = ChainPair::new();
    chains.run(72, 4, 2);
    for block in 1..=72u32 {
        let last = chains.extend(1);
        chains.bitcoin_block(block.is_multiple_of(6).then_some(&last));
        assert_eq!(chains.verdict(), BitcoinVerdict::Held, "after {block}");
    }
}

/// An uncle that is itself a Bitcoin block counts once it is proven, for the blocks that it stands on.
#[test]
fn proven_uncles_are_own_and_count() {
    let mut chains = ChainPair::new();
    chains.run(80, 4, 3);
    let parent = chains.rootstock.head().hash();
    chains.gas_used = 5;
    let uncle = chains.mined(&parent, &[]);
    chains.gas_used = 0;
    chains.extend(1);
    chains.bitcoin_block(Some(&uncle));
    chains.bitcoin_block(None);
    let header = chains.mined(&chains.rootstock.head().hash(), &[uncle.header().clone()]);
    chains.rootstock.insert(HeaderCandidate::from(header.clone()), None).unwrap();

    let (mut judge, before) = chains.judge();
    assert!(before.tags.kin > 0);
    assert_eq!(judge.commitments().awaited(), 1);
    chains.rootstock.attach_uncles(&header.hash(), vec![uncle.header().clone()], None).unwrap();
    judge.follow(chains.rootstock.view(), &chains.bitcoin());
    let after = chains.report_of(&judge, chains.now());
    assert_eq!(judge.commitments().awaited(), 0);
    assert_eq!((after.tags.own, after.tags.kin), (before.tags.own + 1, before.tags.kin - 1));
    assert_eq!(after.counts.recent, before.counts.recent + 1);
    // The uncle's Bitcoin block is evidence for the uncle's parent, not for its sibling.
    let evidence = |number| judge.evidence(number, &chains.bitcoin(), &after, chains.now()).bitcoin_blocks;
    assert_eq!((evidence(uncle.number - 1), evidence(uncle.number)), (1, 0));
}

/// Tags of uncles are kin until the uncles are proven.
#[test]
fn too_few_own_tags_may_wait_for_uncles() {
    let mut chains = ChainPair::new();
    let mut blocks = Vec::new();
    for block in 0..80u32 {
        let parent = chains.rootstock.head().hash();
        chains.gas_used = 5;
        let uncle = chains.mined(&parent, &[]);
        chains.gas_used = 0;
        chains.extend(1);
        let header = chains.mined(&chains.rootstock.head().hash(), &[uncle.header().clone()]);
        chains.rootstock.insert(HeaderCandidate::from(header.clone()), None).unwrap();
        chains.bitcoin_block(block.is_multiple_of(2).then_some(&uncle));
        blocks.push((header.hash(), uncle));
    }
    let (mut judge, report) = chains.judge();
    assert_eq!(report.verdict, BitcoinVerdict::Weak(WeakReason::AwaitsUncles(80)));
    for (block, uncle) in blocks {
        chains.rootstock.attach_uncles(&block, vec![uncle.header().clone()], None).unwrap();
        judge.follow(chains.rootstock.view(), &chains.bitcoin());
    }
    assert_eq!(chains.report_of(&judge, chains.now()).verdict, BitcoinVerdict::Held);
}

#[test]
fn blocks_that_leave_the_chain_count_no_longer() {
    let mut chains = ChainPair::new();
    chains.run(80, 2, 3);
    let fork = chains.clone();
    chains.run(2, 1, 1);
    let (mut judge, before) = chains.judge();
    let counted = judge.evidence(0, &chains.bitcoin(), &before, chains.now()).bitcoin_blocks;
    // Another branch with more work on the same Bitcoin blocks.
    let mut other = ChainPair { blocks: chains.blocks.clone(), gas_used: 9, ..fork };
    for _ in 0..4 {
        let header = other.extend(1);
        chains.rootstock.insert(HeaderCandidate::from(header), None).unwrap();
    }
    assert_eq!(chains.rootstock.head().hash(), other.rootstock.head().hash());
    judge.follow(chains.rootstock.view(), &chains.bitcoin());
    let after = chains.report_of(&judge, chains.now());
    let left = judge.evidence(0, &chains.bitcoin(), &after, chains.now()).bitcoin_blocks;
    assert_eq!(left, counted - 1, "one of two is the tip, which never counted");
    assert_eq!(judge.dated().len(), other.judge().0.dated().len());
    assert_eq!(after.tags.own, before.tags.own - 1);
}

/// The four foreign headers of the recorded run state a target that they meet, of another chain.
#[test]
fn a_header_that_meets_its_own_target_is_not_a_bitcoin_block() {
    let mut chains = ChainPair::new();
    let last = chains.extend(1);
    let own = BitcoinHeader::first_of(&last.bitcoin_header).unwrap();
    assert_eq!(chains.bitcoin().height_of(&own.hash()), None);
    chains.run(80, 4, 90);
    assert_eq!(weak(&chains), WeakReason::Tags(TagFault::Own));
    let (_, report) = chains.judge();
    assert_eq!((report.counts.all, report.tags.own), (0, 0));
}
