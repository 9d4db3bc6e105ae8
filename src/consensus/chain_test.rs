//! Tests of the uncle rules on a mined chain, each broken alone, and of reorganisations.

use super::candidate::HeaderCandidate;
use super::chain::{ChainError, HeadChange, HeaderChain};
use super::network::Network;
use super::rule::Rule;
use super::testing::{chain, child, easy_network, mine};
use super::uncles::UncleError;
use crate::types::{Header, SealedHeader, U256, uncles_hash};

const START: u64 = 5_000;

fn network() -> Network {
    easy_network(&[], &[(Rule::Rskip110, u64::MAX)])
}

/// A chain with some blocks above its checkpoint.
fn grown(blocks: u64) -> (Network, HeaderChain) {
    let mut chain = chain(network(), START);
    for _ in 0..blocks {
        let head = chain.head().clone();
        insert(&mut chain, mine(child(&network(), &head)));
    }
    (network(), chain)
}

fn insert(chain: &mut HeaderChain, header: SealedHeader) -> HeadChange {
    chain.insert(HeaderCandidate::from(header), None).unwrap().change
}

/// A sibling of the block at a height.
fn sibling(network: &Network, chain: &HeaderChain, number: u64, gas_used: u64) -> Header {
    let parent = chain.by_number(number - 1).unwrap();
    mine(Header { gas_used, ..child(network, parent) }).into_header()
}

/// Mines a block with these uncles on the head, inserts it and attaches the uncles.
fn attach(network: &Network, chain: &mut HeaderChain, uncles: &[Header]) -> Result<(), UncleError> {
    let head = chain.head().clone();
    let mut header = child(network, &head);
    header.uncles_hash = uncles_hash(uncles);
    header.uncle_count = uncles.len() as u32;
    header.difficulty = super::difficulty::expected(&header, &head, network).into();
    let header = mine(header);
    let hash = header.hash();
    insert(chain, header);
    match chain.attach_uncles(&hash, uncles.to_vec(), None) {
        Ok(_) => Ok(()),
        Err(ChainError::Uncles { error, .. }) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_proven_uncle_adds_its_difficulty() {
    let (network, mut chain) = grown(9);
    let before = chain.total_difficulty(&chain.head().hash()).unwrap();
    let uncle = sibling(&network, &chain, START + 8, 1);
    let work = uncle.difficulty.value();
    attach(&network, &mut chain, &[uncle]).unwrap();
    let head = chain.head().clone();
    let expected = before + head.difficulty.value() + work;
    assert_eq!(chain.total_difficulty(&head.hash()), Some(expected));
}

#[test]
fn a_block_cannot_include_an_uncle_twice() {
    let (network, mut chain) = grown(9);
    let uncle = sibling(&network, &chain, START + 8, 1);
    let error = attach(&network, &mut chain, &[uncle.clone(), uncle]).unwrap_err();
    assert!(matches!(error, UncleError::Repeated { index: 1, .. }), "{error}");
}

#[test]
fn an_uncle_of_a_recent_block_cannot_be_included_again() {
    let (network, mut chain) = grown(9);
    let uncle = sibling(&network, &chain, START + 8, 1);
    attach(&network, &mut chain, std::slice::from_ref(&uncle)).unwrap();
    let error = attach(&network, &mut chain, &[uncle]).unwrap_err();
    assert!(matches!(error, UncleError::Used { index: 0, .. }), "{error}");
}

#[test]
fn an_ancestor_cannot_be_an_uncle() {
    let (network, mut chain) = grown(9);
    let ancestor = chain.by_number(START + 8).unwrap().header().clone();
    let error = attach(&network, &mut chain, &[ancestor]).unwrap_err();
    assert!(matches!(error, UncleError::Ancestor { index: 0, .. }), "{error}");
}

#[test]
fn an_uncle_more_than_seven_generations_old_is_refused() {
    let (network, mut chain) = grown(9);
    // The block will have number START + 10, so the parent of its oldest possible uncle is START + 3.
    let oldest = sibling(&network, &chain, START + 4, 1);
    attach(&network, &mut chain, &[oldest]).unwrap();
    let (network, mut chain) = grown(9);
    let older = sibling(&network, &chain, START + 3, 1);
    let error = attach(&network, &mut chain, &[older]).unwrap_err();
    assert!(matches!(error, UncleError::Generation { index: 0, .. }), "{error}");
}

#[test]
fn an_uncles_parent_must_be_an_ancestor() {
    let (network, mut chain) = grown(9);
    let stranger = mine(sibling(&network, &chain, START + 7, 1));
    let uncle = mine(child(&network, &stranger)).into_header();
    let error = attach(&network, &mut chain, &[uncle]).unwrap_err();
    assert!(matches!(error, UncleError::Parent { index: 0, .. }), "{error}");
}

#[test]
fn an_uncle_must_obey_the_header_rules() {
    let (network, mut chain) = grown(9);
    let parent = chain.by_number(START + 7).unwrap();
    let mut uncle = child(&network, parent);
    uncle.gas_used = 7_000_000;
    let uncle = mine(uncle).into_header();
    let error = attach(&network, &mut chain, &[uncle]).unwrap_err();
    assert!(matches!(error, UncleError::Rule { index: 0, .. }), "{error}");
}

#[test]
fn a_block_has_at_most_ten_uncles() {
    let (network, mut chain) = grown(9);
    let uncles: Vec<Header> = (1..=11).map(|gas| sibling(&network, &chain, START + 8, gas)).collect();
    let error = attach(&network, &mut chain, &uncles).unwrap_err();
    assert!(matches!(error, UncleError::TooMany { found: 11 }), "{error}");
    let (network, mut chain) = grown(9);
    let uncles: Vec<Header> = (1..=10).map(|gas| sibling(&network, &chain, START + 8, gas)).collect();
    attach(&network, &mut chain, &uncles).unwrap();
}

#[test]
fn uncles_must_be_those_the_header_commits_to() {
    let (network, mut chain) = grown(9);
    let (committed, other) =
        (sibling(&network, &chain, START + 8, 1), sibling(&network, &chain, START + 8, 2));
    attach(&network, &mut chain, std::slice::from_ref(&committed)).unwrap();
    let head = chain.head().hash();
    let error = chain.attach_uncles(&head, vec![other], None).unwrap_err();
    assert!(matches!(error, ChainError::Uncles { error: UncleError::Hash { .. }, .. }), "{error}");
}

/// The work of uncles counts for the block that commits to them.
#[test]
fn uncles_of_another_block_have_no_work() {
    let (network, mut chain) = grown(9);
    let uncles = [1, 2].map(|gas| sibling(&network, &chain, START + 8, gas));
    let blocks = uncles.each_ref().map(|uncle| {
        attach(&network, &mut chain, std::slice::from_ref(uncle)).unwrap();
        chain.head().hash()
    });
    let work = |block: usize, of: usize| {
        chain.view().uncle_work(&blocks[block], chain.view().uncles(&blocks[of]).unwrap(), 1 << 40)
    };
    let expected = uncles.each_ref().map(|uncle| Some(uncle.difficulty.value()));
    assert_eq!([work(0, 0), work(1, 1), work(0, 1), work(1, 0)], [expected[0], expected[1], None, None]);
}

#[test]
fn the_heavier_branch_becomes_the_chain() {
    let (network, mut chain) = grown(3);
    let fork = chain.by_number(START + 1).unwrap().clone();
    let old: Vec<_> = (2..=3).map(|n| chain.by_number(START + n).unwrap().hash()).collect();
    let mut tip = fork.sealed().clone();
    for step in 0..3u64 {
        let header = mine(Header { gas_used: 5, ..child(&network, &tip) });
        tip = header.clone();
        let change = insert(&mut chain, header);
        if step < 2 {
            assert_eq!(change, HeadChange::Side);
        } else {
            let HeadChange::Reorganised(reorganisation) = change else { panic!("{change:?}") };
            assert_eq!(reorganisation.ancestor.hash(), fork.hash());
            let removed: Vec<_> = reorganisation.removed.iter().map(|header| header.hash()).collect();
            assert_eq!(removed, old);
            assert_eq!(reorganisation.added.len(), 3);
        }
    }
    assert_eq!(chain.head().hash(), tip.hash());
    assert_eq!(chain.by_number(START + 4).map(|header| header.hash()), Some(tip.hash()));
    assert!(chain.by_hash(&old[0]).is_some() && chain.total_difficulty(&tip.hash()) > Some(U256::ZERO));
}

/// The first block of a height may link to an ancestor that is no longer kept when a later block of that height is
/// inserted, so that their skip links differ.
#[test]
fn a_heavier_branch_wins_wherever_it_starts_in_the_window() {
    for height in START + 20..START + 60 {
        let network = network();
        let mut chain = chain(network.clone(), START).with_window(16);
        while chain.head().number < height {
            let head = chain.head().clone();
            insert(&mut chain, mine(child(&network, &head)));
        }
        let mut tip = chain.by_number(height - 1).unwrap().sealed().clone();
        for _ in 0..2 {
            tip = mine(Header { gas_used: 5, ..child(&network, &tip) });
            insert(&mut chain, tip.clone());
        }
        assert_eq!(chain.head().hash(), tip.hash(), "a branch that starts above block {}", height - 1);
    }
}

#[test]
fn the_total_difficulty_of_genesis_is_its_own() {
    let network = network();
    let genesis = mine(super::testing::header(&network, 0));
    let checkpoint = super::Checkpoint { number: 0, hash: genesis.hash(), total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(network.into(), &checkpoint, genesis.clone()).unwrap();
    assert_eq!(chain.total_difficulty(&genesis.hash()), Some(genesis.difficulty.value()));
}

#[test]
fn a_header_without_known_parent_is_not_misbehaviour() {
    let (network, mut chain) = grown(1);
    let stranger = mine(child(&network, &mine(Header { gas_used: 9, ..child(&network, chain.head()) })));
    let error = chain.insert(HeaderCandidate::from(stranger), None).unwrap_err();
    assert!(matches!(error, ChainError::UnknownParent { .. }) && !error.is_misbehaviour(), "{error}");
}

#[test]
fn a_branch_from_below_the_checkpoint_is_refused() {
    let network = network();
    let below = mine(super::testing::header(&network, START));
    let first = mine(child(&network, &below));
    let checkpoint = super::Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
    let mut chain = HeaderChain::from_checkpoint(network.clone().into(), &checkpoint, first).unwrap();
    chain.prepend(below.clone()).unwrap();
    let branch = mine(Header { gas_used: 1, ..child(&network, &below) });
    let error = chain.insert(HeaderCandidate::from(branch), None).unwrap_err();
    assert!(matches!(error, ChainError::BelowBase { number, .. } if number == START + 1), "{error}");
}

#[test]
fn a_prepended_header_must_match_the_parent_hash_and_number() {
    let network = network();
    let far = mine(super::testing::header(&network, START - 5));
    let first = Header { parent_hash: far.hash(), ..super::testing::header(&network, START) };
    let first = mine(first);
    let checkpoint = super::Checkpoint { number: START, hash: first.hash(), total_difficulty: None };
    let mut chain = HeaderChain::from_checkpoint(network.clone().into(), &checkpoint, first).unwrap();
    for wrong in [far, mine(super::testing::header(&network, START - 1))] {
        let error = chain.prepend(wrong).unwrap_err();
        assert!(matches!(error, ChainError::NotTheParent { number: START, .. }), "{error}");
    }
}

/// The makers of a false window choose its first header. Where they leave the honest chain, that header follows from the honest
/// one below it.
#[test]
fn the_base_must_follow_from_its_parent() {
    let network = network();
    let below =
        mine(Header { difficulty: U256::from(4_000).into(), ..super::testing::header(&network, START) });
    let prepended = |first: Header| {
        let first = mine(first);
        let checkpoint =
            super::Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
        let mut chain = HeaderChain::from_checkpoint(network.clone().into(), &checkpoint, first).unwrap();
        let result = chain.prepend(below.clone());
        assert_eq!(chain.view().lowest(), if result.is_ok() { START } else { START + 1 });
        result
    };
    let honest = child(&network, &below);
    assert!(prepended(honest.clone()).is_ok());
    let easier = Header { difficulty: U256::from(4).into(), ..honest.clone() };
    // The difficulty of another time.
    let later = Header { timestamp: honest.timestamp + 3_600, ..honest.clone() };
    let gas = Header { gas_limit: U256::from(9_000_000).into(), ..honest };
    for (first, words) in [(easier, "difficulty"), (later, "difficulty"), (gas, "gaslimit")] {
        let error = prepended(first).unwrap_err();
        assert!(matches!(error, ChainError::Rule { number, .. } if number == START + 1), "{error}");
        assert!(error.is_misbehaviour() && error.to_string().to_lowercase().contains(words), "{error}");
    }
}
