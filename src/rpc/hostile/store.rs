//! The store of headers at the beginning of a scenario, written by an earlier run or by an attacker.

use std::sync::OnceLock;

use alloy_primitives::keccak256;
use fastrand::Rng;

use super::{
    chain::{Chains, DIFFICULTIES, START, Wish, network, unmined},
    upstream::swapped,
};
use crate::{
    consensus::{
        difficulty,
        testing::{child, mine},
    },
    light::{PAGE_HEADERS, REPROVEN},
    types::{B256, Header, HeaderForm, SealedHeader, U256, rlp::list_of},
};

/// Number of headers below the checkpoint at which the first page begins.
const WINDOW: u64 = 449;

/// A header with the uncles that are stored with it.
type StoredHeader = (SealedHeader, Vec<SealedHeader>);

/// Well-formed pages with any headers.
fn pages(headers: &[StoredHeader]) -> Vec<Vec<u8>> {
    let first = START - WINDOW;
    let last = headers.iter().map(|(header, _)| header.number).max().unwrap_or(START);
    let entry = |(header, uncles): &StoredHeader| {
        let uncles: Vec<Vec<u8>> =
            uncles.iter().map(|uncle| uncle.header().encode(HeaderForm::Full)).collect();
        let uncles = list_of(uncles.iter().map(Vec::as_slice));
        list_of([header.header().encode(HeaderForm::Full).as_slice(), &uncles])
    };
    let page = |index: u64| {
        let start = first + index * PAGE_HEADERS;
        let range = start..start + PAGE_HEADERS;
        let entries: Vec<Vec<u8>> =
            headers.iter().filter(|(header, _)| range.contains(&header.number)).map(entry).collect();
        let list = list_of(entries.iter().map(Vec::as_slice));
        [&keccak256(&list)[..], &list].concat()
    };
    (0..=(last - first) / PAGE_HEADERS).map(page).collect()
}

/// The headers of a branch and those below the checkpoint, as an honest client stores them.
fn kept(chains: &Chains, tip: B256) -> Vec<StoredHeader> {
    let below = chains.below.iter().map(|header| (header.clone(), Vec::new()));
    let branch = chains.branch(tip).into_iter().map(|hash| {
        let block = chains.block(&hash);
        let uncles = block.uncles.clone().filter(|_| block.good_uncles);
        (block.header.clone(), uncles.unwrap_or_default())
    });
    below.chain(branch).collect()
}

/// How the store was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Hand {
    /// By an honest client.
    Own,
    /// Truncated or changed somewhere.
    Damaged,
    /// The last headers have the right difficulty, but no proof of work.
    NoWork,
    /// A block names uncles without proof of work.
    NoWorkOfUncles,
    /// The fields of the trusted headers that the hash does not cover are changed.
    SwappedEvidence,
    /// The fields of a mined header that the hash does not cover are changed.
    SwappedProof,
    /// The chain of another checkpoint.
    Foreign,
}

pub(super) const HANDS: [Hand; 7] = [
    Hand::Own,
    Hand::Damaged,
    Hand::NoWork,
    Hand::NoWorkOfUncles,
    Hand::SwappedEvidence,
    Hand::SwappedProof,
    Hand::Foreign,
];

/// The pages of a store that holds a branch, written in this way.
pub(super) fn written(hand: Hand, chains: &mut Chains, tip: B256, random: &mut Rng) -> Vec<Vec<u8>> {
    let mut headers = kept(chains, tip);
    let base = headers.iter().position(|(header, _)| header.number == START).unwrap();
    match hand {
        Hand::Own => {}
        Hand::Damaged => {
            let mut all = pages(&headers);
            let page = random.usize(..all.len());
            let place = random.usize(..all[page].len());
            if random.u64(..100) < 30 {
                all[page].truncate(place);
            } else {
                all[page][place] ^= 1 << random.u64(..8);
            }
            return all;
        }
        Hand::NoWork => {
            let mut parent = headers.last().unwrap().0.clone();
            for _ in 0..1 + random.u64(..40) {
                let header = Header { gas_used: 3, ..child(network(), &parent) };
                let header = Header { timestamp: header.timestamp - 13, ..header };
                let difficulty = difficulty::expected(&header, &parent, network());
                parent = unmined(Header { difficulty: difficulty.into(), ..header });
                headers.push((parent.clone(), Vec::new()));
            }
        }
        Hand::NoWorkOfUncles => {
            let uncles = (0..3).map(|_| {
                let draft = chains.draft(chains.block(&tip).header.parent_hash, &Wish::default());
                unmined(draft.0)
            });
            let uncles = uncles.collect();
            let wish = Wish { uncles, bad_uncles: true, ..Wish::default() };
            let top = chains.mine(tip, wish);
            let block = chains.block(&top);
            headers.push((block.header.clone(), block.uncles.clone().unwrap()));
        }
        Hand::SwappedEvidence => {
            for (header, _) in &mut headers[..=base] {
                *header = swapped(header);
            }
        }
        Hand::SwappedProof => {
            let place = random.usize(base + 1..headers.len());
            headers[place].0 = swapped(&headers[place].0);
        }
        Hand::Foreign => {
            headers.remove(base);
        }
    }
    pages(&headers)
}

/// A forged store and the honest chain. In the store, difficulty rises without work, falls again by absurd uncle
/// counts, and is mined once it is low. The honest chain has more work than the store proves and less than it states.
pub(super) struct Long {
    pub(super) pages: Vec<Vec<u8>>,
    pub(super) chains: Chains,
    pub(super) tip: B256,
}

/// A store whose first headers have no proof of work, while the newest were mined. No other chain is served.
pub(super) fn eclipse() -> &'static Long {
    static ECLIPSE: OnceLock<Long> = OnceLock::new();
    ECLIPSE.get_or_init(|| {
        let mut chains = Chains::new(DIFFICULTIES[0]);
        let mut tip = chains.base.hash();
        for step in 0..REPROVEN + 120 {
            tip = chains.mine(tip, Wish { later: 16, free: step < 120, ..Wish::default() });
        }
        Long { pages: pages(&kept(&chains, tip)), chains, tip }
    })
}

/// Headers of the long store without proof of work, and number of blocks of the honest chain.
const FREE: u32 = 1_100;
const HONEST: usize = 1_600;

pub(super) fn long() -> &'static Long {
    static LONG: OnceLock<Long> = OnceLock::new();
    LONG.get_or_init(|| {
        let mut chains = Chains::new(800);
        let mut headers = kept(&chains, chains.base.hash());
        let mut parent = chains.base.header.clone();
        for step in 0..FREE {
            let mut header = child(network(), &parent);
            // The difficulty rule multiplies the count by 14 in 32 bits, which makes it negative here.
            header.uncle_count = if step < 300 { 0 } else { 1 << 28 };
            header.timestamp = parent.timestamp + 1;
            header.difficulty = difficulty::expected(&header, &parent, network()).into();
            parent = unmined(header);
            headers.push((parent.clone(), Vec::new()));
        }
        for _ in 0..REPROVEN {
            let mut header = child(network(), &parent);
            header.timestamp = parent.timestamp + 30;
            header.difficulty = difficulty::expected(&header, &parent, network()).into();
            parent = mine(header);
            headers.push((parent.clone(), Vec::new()));
        }
        let mut tip = chains.base.hash();
        for _ in 0..HONEST {
            tip = chains.mine(tip, Wish::default());
        }
        let work =
            |all: &[StoredHeader]| all.iter().map(|(header, _)| header.difficulty.value()).sum::<U256>();
        let (claimed, shown) = (work(&headers[1..]), work(&headers[headers.len() - REPROVEN..]));
        assert!(shown < chains.work(tip) && chains.work(tip) < claimed);
        Long { pages: pages(&headers), chains, tip }
    })
}
