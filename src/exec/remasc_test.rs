//! Compares the shares of fees with an independent computation in Python, for cases without recordings:
//! several siblings, an earlier violation of the selection rule, federations of any size, rules before
//! RSKIP-85 and RSKIP-218.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};
use serde_json::Value;

use super::block_context::{Ancestry, BlockContext};
use super::call::BlockEnvironment;
use super::remasc_share::{Ledger, Payment, RewardedBlock, Sibling, shares};
use crate::consensus::{Network, Rule};
use crate::types::{Header, SealedHeader};

struct NoAncestry;

impl Ancestry for NoAncestry {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }
}

fn wei(value: &Value) -> U256 {
    U256::from_str_radix(value.as_str().unwrap(), 10).unwrap()
}

fn account(value: &Value) -> Address {
    Address::repeat_byte(value.as_u64().unwrap() as u8)
}

fn hash(value: &Value) -> B256 {
    value.as_str().unwrap().parse().unwrap()
}

fn u64_of(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn ledger(value: &Value, written: &[&str]) -> Ledger {
    Ledger {
        reward: wei(&value["reward"]),
        burned: wei(&value["burned"]),
        federation: wei(&value["federation"]),
        broken: value["broken"].as_bool().unwrap(),
        burned_written: written.contains(&"burned"),
        federation_written: written.contains(&"fed"),
        broken_written: written.contains(&"broken"),
    }
}

fn rewarded(case: &Value) -> RewardedBlock {
    let sibling = |value: &Value| Sibling {
        hash: hash(&value["hash"]),
        fees: wei(&value["fees"]),
        uncles: u64_of(&value["uncles"]) as u32,
        coinbase: account(&value["coinbase"]),
        publisher: account(&value["publisher"]),
        late: u64_of(&value["late"]),
    };
    RewardedBlock {
        number: u64_of(&case["number"]),
        hash: hash(&case["hash"]),
        fees: wei(&case["fees"]),
        uncles: u64_of(&case["uncles"]) as u32,
        coinbase: Address::repeat_byte(1),
        siblings: case["siblings"].as_array().unwrap().iter().map(sibling).collect(),
    }
}

fn check(case: &Value) {
    let network = Network::by_name(match case["network"].as_str().unwrap() {
        "main" => "mainnet",
        name => name,
    });
    let network = network.unwrap();
    let environment = BlockEnvironment {
        number: u64_of(&case["number"]).saturating_add(network.params.remasc_maturity),
        timestamp: 0,
        coinbase: Address::ZERO,
        difficulty: U256::ZERO,
        gas_limit: U256::ZERO,
        minimum_gas_price: wei(&case["minimumGasPrice"]),
    };
    let mut context = BlockContext::new(&network, environment, &NoAncestry);
    let rules = case["rules"].as_array().unwrap().iter();
    context.rules = rules.map(|rule| Rule::from_name(rule.as_str().unwrap()).unwrap()).collect();
    let [early, late] = network.params.labs;
    let labs = if context.rules.has(Rule::Rskip218) { late } else { early };
    let members: Vec<Address> =
        (0..u64_of(&case["members"])).map(|index| Address::repeat_byte((200 + index) as u8)).collect();
    let mut found = ledger(&case["before"], &[]);
    let payments = shares(&context, &rewarded(case), &members, &mut found);
    let expected: Vec<Payment> = case["payments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pay| {
            let to = if pay[0] == "labs" { labs } else { account(&pay[0]) };
            Payment { to, amount: wei(&pay[1]) }
        })
        .collect();
    assert_eq!(payments, expected, "{case}");
    let written: Vec<&str> =
        case["written"].as_array().unwrap().iter().map(|cell| cell.as_str().unwrap()).collect();
    assert_eq!(found, ledger(&case["after"], &written), "{case}");
}

#[test]
fn shares_equal_the_recomputation() {
    let cases: Value = serde_json::from_str(include_str!("../../tests/vectors/remasc.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 60);
    cases.iter().for_each(check);
}
