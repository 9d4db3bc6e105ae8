//! Rules that the receipts of every valid block obey besides the root. Each test breaks one rule. A header
//! that commits to such receipts was mined over an invalid state transition.

use super::body::{BodyError, VerifiedReceipts, receipts_root};
use super::candidate::HeaderCandidate;
use super::network::Network;
use super::testing::{chain, child, easy_network, mine};
use super::{Rule, VerifiedHeader};
use crate::trie::NodeFormat;
use crate::types::bloom::logs_bloom;
use crate::types::{Address, B256, Bloom, Header, Log, Receipt};

const START: u64 = 5_000;

fn network() -> Network {
    easy_network(&[], &[(Rule::Rskip110, u64::MAX)])
}

fn receipt(cumulative_gas_used: u64, gas_used: u64) -> Receipt {
    let topics = vec![B256::repeat_byte(gas_used as u8)];
    let logs = vec![Log { address: Address::repeat_byte(7), topics, data: vec![1].into() }];
    Receipt { success: true, cumulative_gas_used, logs_bloom: logs_bloom(&logs), logs, gas_used }
}

/// Mines a header that commits to these receipts; `change` is applied before mining.
fn header(receipts: &[Receipt], change: impl Fn(&mut Header)) -> VerifiedHeader {
    let network = network();
    let mut chain = chain(network.clone(), START);
    let mut header = child(&network, chain.head());
    header.receipts_root = receipts_root(receipts, NodeFormat::Rskip107);
    header.gas_used = receipts.iter().map(|receipt| receipt.gas_used).sum();
    header.logs_bloom = receipts.iter().fold(Bloom::ZERO, |all, receipt| all | receipt.logs_bloom);
    change(&mut header);
    chain.insert(HeaderCandidate::from(mine(header)), None).unwrap().header
}

fn check(receipts: &[Receipt], change: impl Fn(&mut Header)) -> Result<VerifiedReceipts, BodyError> {
    VerifiedReceipts::check(&header(receipts, change), receipts.to_vec(), &network())
}

#[test]
fn cumulative_gas_adds_up_within_a_sublist() {
    assert!(check(&[receipt(21_000, 21_000), receipt(51_000, 30_000)], |_| {}).is_ok());
}

#[test]
fn cumulative_gas_restarts_at_each_edge() {
    let receipts = [receipt(21_000, 21_000), receipt(30_000, 30_000), receipt(5, 5)];
    assert!(check(&receipts, |header| header.edges = vec![1, 2]).is_ok());
    let error = check(&receipts, |header| header.edges = vec![1]).unwrap_err();
    assert!(matches!(error, BodyError::CumulativeGas { index: 2, expected: 30_005, found: 5 }), "{error}");
}

#[test]
fn a_receipt_whose_bloom_differs_from_its_logs_is_refused() {
    let mut wrong = receipt(21_000, 21_000);
    wrong.logs_bloom = Bloom::repeat_byte(1);
    let error = check(&[wrong], |_| {}).unwrap_err();
    assert!(matches!(error, BodyError::ReceiptBloom { index: 0 }), "{error}");
}

#[test]
fn a_header_bloom_that_differs_from_the_receipts_is_refused() {
    let error = check(&[receipt(1, 1)], |header| header.logs_bloom = Bloom::ZERO).unwrap_err();
    assert!(matches!(error, BodyError::Bloom), "{error}");
}

#[test]
fn a_wrong_cumulative_gas_is_refused() {
    let error = check(&[receipt(21_001, 21_000)], |_| {}).unwrap_err();
    assert!(matches!(error, BodyError::CumulativeGas { index: 0, .. }), "{error}");
}

#[test]
fn a_header_gas_that_differs_from_the_receipts_is_refused() {
    let error = check(&[receipt(21_000, 21_000)], |header| header.gas_used = 21_001).unwrap_err();
    assert!(matches!(error, BodyError::GasUsed { expected: 21_001, found: 21_000 }), "{error}");
}
