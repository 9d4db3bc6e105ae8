//! Fork choice when uncles are withheld, arrive late or are shown to some clients only. Proven uncles count
//! for their own branch, whatever is missing of the other branch.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::candidate::HeaderCandidate;
use super::chain::{ChainError, HeadChange, HeaderChain};
use super::network::Network;
use super::rule::Rule;
use super::testing::{chain, child, easy_network, mine};
use super::uncles::UncleError;
use crate::types::{B256, Header, SealedHeader, U256, uncles_hash};

const START: u64 = 5_000;

/// A block with its uncles, which some upstreams may withhold.
#[derive(Clone)]
struct BlockWithUncles {
    header: SealedHeader,
    uncles: Vec<Header>,
}

impl BlockWithUncles {
    fn work(&self) -> U256 {
        self.header.difficulty.value()
    }

    fn uncle_work(&self) -> U256 {
        self.uncles.iter().map(|uncle| uncle.difficulty.value()).fold(U256::ZERO, |sum, work| sum + work)
    }
}

/// The blocks above the checkpoint.
struct TestBranch {
    network: Network,
    start: SealedHeader,
    blocks: Vec<BlockWithUncles>,
}

impl TestBranch {
    fn new() -> Self {
        let network = easy_network(&[], &[(Rule::Rskip110, u64::MAX)]);
        let start = chain(network.clone(), START).head().sealed().clone();
        Self { network, start, blocks: Vec::new() }
    }

    fn fork(&self) -> Self {
        Self { network: self.network.clone(), start: self.start.clone(), blocks: self.blocks.clone() }
    }

    fn tip(&self) -> &SealedHeader {
        self.blocks.last().map_or(&self.start, |block| &block.header)
    }

    /// A sibling of the tip, which a later block can include as an uncle.
    fn sibling(&self, gas_used: u64) -> Header {
        let parent = self.blocks.iter().rev().nth(1).map_or(&self.start, |block| &block.header);
        mine(Header { gas_used, ..child(&self.network, parent) }).into_header()
    }

    /// Mines a block with these uncles. `mark` makes the blocks of different branches differ.
    fn grow(&mut self, mark: u64, uncles: Vec<Header>) {
        let parent = self.tip();
        let mut header = Header { gas_used: mark, ..child(&self.network, parent) };
        header.uncles_hash = uncles_hash(&uncles);
        header.uncle_count = uncles.len() as u32;
        header.difficulty = super::difficulty::expected(&header, parent, &self.network).into();
        self.blocks.push(BlockWithUncles { header: mine(header), uncles });
    }

    /// Sums of the difficulties of the headers and of their uncles, from block `from` on.
    fn work(&self, from: usize) -> (U256, U256) {
        let sum = |of: fn(&BlockWithUncles) -> U256| {
            self.blocks[from..].iter().map(of).fold(U256::ZERO, |a, b| a + b)
        };
        (sum(BlockWithUncles::work), sum(BlockWithUncles::uncle_work))
    }
}

/// A client that receives headers and uncle lists in some order. Lists that depend on earlier lists wait for
/// them.
struct Watcher {
    chain: HeaderChain,
    waiting: BTreeMap<(u64, B256), Vec<Header>>,
}

impl Watcher {
    fn new(branch: &TestBranch) -> Self {
        let chain = chain(branch.network.clone(), START);
        assert_eq!(chain.head().hash(), branch.start.hash());
        Self { chain, waiting: BTreeMap::new() }
    }

    fn header(&mut self, block: &BlockWithUncles) -> HeadChange {
        self.chain.insert(HeaderCandidate::from(block.header.clone()), None).unwrap().change
    }

    fn uncles(&mut self, block: &BlockWithUncles) {
        self.waiting.insert((block.header.number, block.header.hash()), block.uncles.clone());
        loop {
            let before = self.waiting.len();
            let chain = &mut self.chain;
            self.waiting.retain(|(_, hash), uncles| match chain.attach_uncles(hash, uncles.clone(), None) {
                Ok(_) => false,
                Err(ChainError::Uncles { error: UncleError::EarlierUncles { .. }, .. }) => true,
                Err(other) => panic!("{other}"),
            });
            if self.waiting.len() == before || self.waiting.is_empty() {
                return;
            }
        }
    }

    fn head(&self) -> B256 {
        self.chain.head().hash()
    }
}

/// The first block of the second branch commits to uncles that no upstream can show. This must not make the
/// uncles of the first branch worthless: the second branch must show more work than all that is proven of the
/// first, uncles included.
#[test]
fn withheld_uncles_do_not_devalue_the_uncles_of_the_other_branch() {
    let mut trunk = TestBranch::new();
    (0..8).for_each(|_| trunk.grow(0, Vec::new()));
    let mut honest = trunk.fork();
    for gas in 0..4 {
        let uncles = vec![honest.sibling(100 + gas), honest.sibling(200 + gas)];
        honest.grow(1, uncles);
    }
    let mut attack = trunk.fork();
    let hidden = attack.sibling(300);
    attack.grow(2, vec![hidden]);

    let mut client = Watcher::new(&trunk);
    for block in &honest.blocks {
        client.header(block);
    }
    honest.blocks[8..].iter().for_each(|block| client.uncles(block));
    assert_eq!(client.head(), honest.tip().hash());
    let (headers, uncles) = honest.work(8);
    assert!(uncles > headers, "most of the honest work is in uncles");
    let mut shown = 8;
    while attack.work(8).0 <= headers + uncles {
        for block in &attack.blocks[shown..] {
            assert_eq!(
                client.header(block),
                HeadChange::Side,
                "{:?} against {headers} + {uncles}",
                attack.work(8)
            );
        }
        shown = attack.blocks.len();
        attack.grow(2, Vec::new());
    }
    assert!(matches!(client.header(attack.blocks.last().unwrap()), HeadChange::Reorganised(_)));
    // The withheld uncles only add work to their own branch.
    client.uncles(&attack.blocks[8]);
    assert_eq!(client.head(), attack.tip().hash());
}

/// The head leaves a restored branch whose lower part is unproven, so that the whole branch is dropped.
#[test]
fn uncles_that_move_the_head_off_an_unproven_branch_are_reported() {
    let mut trunk = TestBranch::new();
    (0..8).for_each(|_| trunk.grow(0, Vec::new()));
    let (mut stored, mut side) = (trunk.fork(), trunk.fork());
    (0..4).for_each(|_| stored.grow(1, Vec::new()));
    side.grow(2, Vec::new());
    let uncles = (0..6).map(|n| side.sibling(100 + n)).collect();
    side.grow(2, uncles);

    let mut client = Watcher::new(&trunk);
    trunk.blocks.iter().for_each(|block| drop(client.header(block)));
    for block in &stored.blocks[8..] {
        client.chain.insert_linked(HeaderCandidate::from(block.header.clone())).unwrap();
    }
    assert_eq!(client.chain.prove(3), Ok(true));
    side.blocks[8..].iter().for_each(|block| assert_eq!(client.header(block), HeadChange::Side));
    let tip = &side.blocks[9];
    let change = client.chain.attach_uncles(&tip.header.hash(), tip.uncles.clone(), None).unwrap();
    assert_eq!(client.head(), tip.header.hash());
    let change = change.expect("the head has moved");
    let numbers = [change.removed.len(), change.added.len()];
    assert_eq!((change.ancestor.hash(), numbers), (trunk.tip().hash(), [4, 2]));
}

/// Three branches of a few blocks with up to two uncles each, above a common block. Some branches are much
/// longer.
fn branches(random: &mut Rng) -> Vec<TestBranch> {
    let mut trunk = TestBranch::new();
    (0..8).for_each(|_| trunk.grow(0, Vec::new()));
    let grown = (1..=3).map(|mark| {
        let mut branch = trunk.fork();
        let more = if random.u64(..4) == 0 { 12 } else { 0 };
        for block in 0..2 + random.u64(..4) + more {
            let uncles = (0..random.u64(..3)).map(|n| branch.sibling(1_000 * mark + 10 * block + n));
            let uncles = uncles.collect();
            branch.grow(mark, uncles);
        }
        branch
    });
    grown.collect()
}

/// Honest clients receive headers and uncles in different orders from upstreams that show different parts of
/// them. Each client follows the heaviest branch by what it has seen. Clients agree if the difference in work
/// exceeds what is hidden. Once all have seen the same, all have the same head, or one of several with equal
/// work.
#[test]
fn clients_that_see_different_uncles_converge() {
    let (mut agreed_early, mut differed) = (0, 0);
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let branches = branches(&mut random);
        let lists: Vec<(usize, &BlockWithUncles)> = branches
            .iter()
            .enumerate()
            .flat_map(|(of, branch)| branch.blocks[8..].iter().map(move |block| (of, block)))
            .filter(|(_, block)| !block.uncles.is_empty())
            .collect();
        let mut clients: Vec<Watcher> = (0..4).map(|_| Watcher::new(&branches[0])).collect();
        let mut hidden: Vec<Vec<(usize, &BlockWithUncles)>> = Vec::new();
        for client in &mut clients {
            // Headers of all branches, interleaved, and about half of the uncle lists in any order.
            let mut next = [0; 3];
            while next.iter().zip(&branches).any(|(next, branch)| *next < branch.blocks.len()) {
                let of = random.usize(..3);
                if let Some(block) = branches[of].blocks.get(next[of]) {
                    client.header(block);
                    next[of] += 1;
                }
            }
            let mut order = lists.clone();
            (0..order.len()).for_each(|at| order.swap(at, random.usize(..lists.len())));
            let later = order.split_off(order.len() / 2);
            order.iter().for_each(|(_, block)| client.uncles(block));
            hidden.push(later);
        }
        let of_head = |client: &Watcher| {
            branches.iter().position(|branch| branch.tip().hash() == client.head()).expect("a tip")
        };
        let heads: Vec<usize> = clients.iter().map(of_head).collect();
        // If the headers of one branch alone outweigh everything in the others, all clients agree.
        let full: Vec<U256> = branches.iter().map(|branch| branch.work(8).0 + branch.work(8).1).collect();
        let ahead =
            (0..3).find(|of| (0..3).all(|other| other == *of || branches[*of].work(8).0 > full[other]));
        if let Some(ahead) = ahead {
            assert!(heads.iter().all(|head| *head == ahead), "seed {seed}: {heads:?}, {ahead} is ahead");
            agreed_early += 1;
        }
        differed += usize::from(heads.windows(2).any(|pair| pair[0] != pair[1]));
        for (client, hidden) in clients.iter_mut().zip(&mut hidden) {
            while !hidden.is_empty() {
                let (_, block) = hidden.swap_remove(random.usize(..hidden.len()));
                client.uncles(block);
            }
            assert!(client.waiting.is_empty());
        }
        let most = full.iter().max().unwrap();
        let heaviest: Vec<usize> = (0..3).filter(|of| full[*of] == *most).collect();
        for client in &clients {
            assert!(heaviest.contains(&of_head(client)), "seed {seed}: {full:?}, head {}", of_head(client));
        }
    }
    assert!(agreed_early > 3 && differed > 10, "{agreed_early} {differed}");
}
