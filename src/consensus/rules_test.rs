//! Tests of the header rules. Each header breaks exactly one rule, so that disabling the rule makes its test
//! fail.

use std::mem::discriminant;

use super::candidate::HeaderCandidate;
use super::network::Network;
use super::pow::PowError;
use super::rule::Rule;
use super::rules::{RuleError, RuleInput, verify_child};
use super::testing::{Bitcoin, child, easy_network, header, mine};
use crate::types::{B256, Header, SealedHeader, SignedUint, U256};

/// Far above genesis. Fork detection data are disabled, because they need ancestors.
const NUMBER: u64 = 5_000;

fn network() -> Network {
    easy_network(&[], &[(Rule::Rskip110, u64::MAX)])
}

fn parent(network: &Network) -> SealedHeader {
    mine(header(network, NUMBER))
}

fn broken(network: &Network, parent: &SealedHeader, header: SealedHeader, uncle: bool) -> Vec<RuleError> {
    let candidate = HeaderCandidate::from(header);
    let mut input = RuleInput::new(&candidate, network, None);
    input.parent = Some((parent, parent.hash()));
    if uncle { input.broken_uncle_rules() } else { input.broken_block_rules() }
}

/// Applies `change` to a valid child and returns the only rule that it breaks.
fn only(change: impl Fn(&mut Header)) -> RuleError {
    let network = network();
    let parent = parent(&network);
    let mut header = child(&network, &parent);
    change(&mut header);
    let mut errors = broken(&network, &parent, mine(header), false);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn good(change: impl Fn(&mut Header)) {
    let network = network();
    let parent = parent(&network);
    let mut header = child(&network, &parent);
    change(&mut header);
    assert_eq!(broken(&network, &parent, mine(header), false), []);
}

fn is(error: &RuleError, kind: &RuleError) {
    assert_eq!(discriminant(error), discriminant(kind), "{error}");
}

#[test]
fn a_valid_child_breaks_no_rule() {
    good(|_| {});
    let network = network();
    let parent = parent(&network);
    assert!(
        verify_child(&HeaderCandidate::from(mine(child(&network, &parent))), &parent, &network, None).is_ok()
    );
}

#[test]
fn the_parent_hash_must_be_that_of_the_parent() {
    let error = only(|header| header.parent_hash = B256::repeat_byte(9));
    is(&error, &RuleError::ParentHash { expected: B256::ZERO, found: B256::ZERO });
}

#[test]
fn the_number_must_be_the_parents_plus_one() {
    let network = network();
    let parent = parent(&network);
    let mut header = child(&network, &parent);
    header.number += 1;
    let errors = broken(&network, &parent, mine(header), false);
    assert_eq!(errors, [RuleError::Number { parent: NUMBER, found: NUMBER + 2 }]);
}

#[test]
fn the_layout_must_be_that_of_the_height() {
    let error = only(|header| header.shape.umm_root = false);
    is(&error, &RuleError::Shape { number: 0 });
}

#[test]
fn the_difficulty_must_be_the_computed_one() {
    let error = only(|header| header.difficulty = SignedUint::new(header.difficulty.value() + U256::from(1)));
    is(&error, &RuleError::Difficulty { expected: U256::ZERO, found: U256::ZERO });
}

#[test]
fn the_gas_limit_moves_by_at_most_one_part_in_1024() {
    let limit = 6_800_000u64;
    let (low, high) = (limit * 1023 / 1024, limit * 1025 / 1024);
    good(|header| header.gas_limit = low.into());
    good(|header| header.gas_limit = high.into());
    for wrong in [low - 1, high + 1] {
        let error = only(|header| header.gas_limit = wrong.into());
        is(&error, &RuleError::GasLimitStep { low: U256::ZERO, high: U256::ZERO, found: U256::ZERO });
    }
}

#[test]
fn the_gas_limit_has_a_minimum() {
    let network = network();
    let parent = mine(Header { gas_limit: 3_000_000u64.into(), ..header(&network, NUMBER) });
    let at = |limit: u64| {
        let header = Header { gas_limit: limit.into(), ..child(&network, &parent) };
        broken(&network, &parent, mine(header), false)
    };
    assert_eq!(at(3_000_000), []);
    assert_eq!(at(2_999_999), [RuleError::GasLimitMinimum { found: U256::from(2_999_999) }]);
}

#[test]
fn gas_used_must_not_exceed_the_limit() {
    good(|header| header.gas_used = 6_800_000);
    let error = only(|header| header.gas_used = 6_800_001);
    is(&error, &RuleError::GasUsed { used: 0, limit: U256::ZERO });
}

#[test]
fn the_minimum_gas_price_moves_by_at_most_one_percent() {
    good(|header| header.minimum_gas_price = 990u64.into());
    good(|header| header.minimum_gas_price = 1_010u64.into());
    for wrong in [989u64, 1_011] {
        let error = only(|header| header.minimum_gas_price = wrong.into());
        is(&error, &RuleError::MinimumGasPriceStep { low: U256::ZERO, high: U256::ZERO, found: U256::ZERO });
    }
    let error = only(|header| header.minimum_gas_price = SignedUint::ABSENT);
    is(&error, &RuleError::MinimumGasPriceAbsent);
}

#[test]
fn a_minimum_gas_price_of_zero_can_rise_by_one() {
    let network = network();
    let parent = mine(Header { minimum_gas_price: 0u64.into(), ..header(&network, NUMBER) });
    for (price, fits) in [(0u64, true), (1, true), (2, false)] {
        let header = Header { minimum_gas_price: price.into(), ..child(&network, &parent) };
        assert_eq!(broken(&network, &parent, mine(header), false).is_empty(), fits, "{price}");
    }
}

#[test]
fn extra_data_have_at_most_32_bytes() {
    good(|header| header.extra_data = vec![1; 32].into());
    is(&only(|header| header.extra_data = vec![1; 33].into()), &RuleError::ExtraData { found: 0 });
}

#[test]
fn edges_must_be_at_most_two_and_ascending() {
    good(|header| header.edges = vec![1, 2]);
    is(&only(|header| header.edges = vec![1, 2, 3]), &RuleError::EdgeCount { found: 0 });
    for wrong in [vec![0], vec![2, 2], vec![3, 1]] {
        let error = only(|header| header.edges = wrong.clone());
        is(&error, &RuleError::EdgeOrder { previous: 0, found: 0 });
    }
}

#[test]
fn the_bitcoin_time_must_be_near_the_block_time() {
    let network = network();
    let parent = parent(&network);
    let at = |time_offset: i64| {
        let bitcoin = Bitcoin { time_offset, ..Bitcoin::for_header([0; 12]) };
        broken(&network, &parent, bitcoin.mine(child(&network, &parent)), false)
    };
    for near in [-299, 0, 299] {
        assert_eq!(at(near), []);
    }
    for far in [-300, 300] {
        let errors = at(far);
        assert_eq!(errors.len(), 1);
        is(&errors[0], &RuleError::BitcoinTime { time: 0, bitcoin: 0, bound: 0 });
    }
}

#[test]
fn a_header_too_far_ahead_of_the_clock_is_refused() {
    let network = network();
    let parent = parent(&network);
    let header = mine(child(&network, &parent));
    let bound = network.params.future_bound;
    let at = |now: u64| verify_child(&HeaderCandidate::from(header.clone()), &parent, &network, Some(now));
    assert!(at(header.timestamp - bound).is_ok());
    let early = at(header.timestamp - bound - 1).unwrap_err();
    assert_eq!(early, RuleError::Future { time: header.timestamp, now: header.timestamp - bound - 1, bound });
}

#[test]
fn an_uncle_must_be_later_than_its_parent_but_a_block_need_not() {
    let network = network();
    let parent = parent(&network);
    let mut header = child(&network, &parent);
    header.timestamp = parent.timestamp;
    header.difficulty = super::difficulty::expected(&header, &parent, &network).into();
    let header = mine(header);
    assert_eq!(broken(&network, &parent, header.clone(), false), []);
    let time = parent.timestamp;
    assert_eq!(broken(&network, &parent, header, true), [RuleError::NotAfterParent { time, parent: time }]);
}

#[test]
fn a_header_without_enough_work_is_refused() {
    let network = network();
    let parent = parent(&network);
    let lazy = Bitcoin { enough_work: false, ..Bitcoin::for_header([0; 12]) };
    let errors = broken(&network, &parent, lazy.mine(child(&network, &parent)), false);
    assert!(matches!(errors.as_slice(), [RuleError::Work(PowError::HashAboveTarget { .. })]), "{errors:?}");
}

#[test]
fn the_bitcoin_block_must_commit_to_the_header() {
    let network = network();
    let parent = parent(&network);
    let mined = mine(child(&network, &parent));
    let other = mine(Header { gas_used: 1, ..child(&network, &parent) });
    let copied = Header {
        bitcoin_header: other.bitcoin_header.clone(),
        merkle_proof: other.merkle_proof.clone(),
        coinbase_tx: other.coinbase_tx.clone(),
        ..mined.into_header()
    };
    let errors = broken(&network, &parent, copied.seal(), false);
    assert!(matches!(errors.as_slice(), [RuleError::Work(_)]), "{errors:?}");
}

#[test]
fn the_merkle_branch_must_lead_to_the_bitcoin_headers_root() {
    let network = network();
    let parent = parent(&network);
    let mut header = mine(child(&network, &parent)).into_header();
    let mut proof = header.merkle_proof.to_vec();
    proof[0] ^= 1;
    header.merkle_proof = proof.into();
    let errors = broken(&network, &parent, header.seal(), false);
    assert!(matches!(errors.as_slice(), [RuleError::Work(_)]), "{errors:?}");
}

#[test]
fn a_header_without_coinbase_is_refused() {
    let network = network();
    let parent = parent(&network);
    let mut header = mine(child(&network, &parent)).into_header();
    header.coinbase_tx = Default::default();
    let errors = broken(&network, &parent, header.seal(), false);
    assert_eq!(errors, [RuleError::Work(PowError::NoCoinbase)]);
}

/// Before RSKIP-92 the proof is a partial Merkle tree. A coinbase that the tree contains only as an unmatched
/// hash is not proven.
#[test]
fn the_coinbase_must_be_a_matched_leaf() {
    let network = easy_network(&[], &[(Rule::Rskip110, u64::MAX), (Rule::Rskip92, u64::MAX)]);
    let parent = parent(&network);
    let bitcoin = Bitcoin { branch: vec![B256::repeat_byte(8)], ..Bitcoin::for_header([0; 12]) };
    let header = bitcoin.mine(child(&network, &parent));
    assert_eq!(broken(&network, &parent, header.clone(), false), []);
    // Root matched, first leaf (the coinbase) not, second one matched: bits 1, 0, 1.
    let mut header = header.into_header();
    let mut tree = header.merkle_proof.to_vec();
    *tree.last_mut().unwrap() = 0b101;
    header.merkle_proof = tree.into();
    let errors = broken(&network, &parent, header.seal(), false);
    let not_proven = matches!(errors.as_slice(), [RuleError::Work(PowError::CoinbaseNotProven { .. })]);
    assert!(not_proven, "{errors:?}");
}
