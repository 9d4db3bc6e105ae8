//! Random programs that the reference node ran through `eth_call` with overrides. Gas, output, balances and
//! code hashes must be equal.

use crate::support;

use std::path::Path;

use alloy_primitives::{Bytes, U256};
use rootlight::consensus::Network;
use rootlight::exec::{CallContext, CallMessage, CallOutcome, RunLimits, call};
use rootlight::state::{AccountOverride, StateOverride};
use serde_json::Value;
use support::chain::{environment, text};
use support::*;

const A: u64 = 0x0c_0de1;
const B: u64 = 0x0c_0de2;
const C: u64 = 0x0c_0de3;
const E: u64 = 0x0c_0de4;
const NATIVE: [u64; 7] =
    [0x0100_0006, 0x0100_0008, 0x0100_0009, 0x0100_0010, 0x0100_0011, 0x0100_0016, 0x0100_0017];

fn state(file: &Value) -> MapState {
    let mut state = MapState::default();
    for address in (1..=9).chain(NATIVE) {
        state.accounts.insert(low_address(address), MapAccount { contract: true, ..MapAccount::default() });
    }
    if let Some(bridge) = file["bridge"].as_str() {
        state.accounts.entry(low_address(NATIVE[0])).or_default().balance = u256(bridge);
    }
    state
}

fn overrides(case: &Value) -> StateOverride {
    let mut overrides = StateOverride::default();
    for (name, address, balance) in [("A", A, 1_000_000), ("B", B, 10_000), ("C", C, 5)] {
        let over = AccountOverride {
            balance: Some(U256::from(balance)),
            code: Some(bytes(text(case, name))),
            ..AccountOverride::default()
        };
        overrides.accounts.insert(low_address(address), over);
    }
    let poor = AccountOverride { balance: Some(U256::from(7)), ..AccountOverride::default() };
    overrides.accounts.insert(low_address(E), poor);
    overrides
}

fn run_file(path: &Path) -> (usize, Vec<usize>) {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (block, state, hashes) = (environment(&file["block"]), state(&file), MapHashes::default());
    let context = CallContext {
        state: &state,
        hashes: &hashes,
        block: &block,
        rules: Network::regtest().rules(642),
        chain_id: 33,
    };
    let message = CallMessage {
        to: Some(low_address(A)),
        gas: Some(10_000_000),
        data: Bytes::from(vec![0x11; 40]),
        ..CallMessage::default()
    };
    let cases = file["cases"].as_array().unwrap();
    let differs = |case: &Value| {
        let got = call(&context, &message, &overrides(case), &RunLimits::default(), None);
        let want = bytes(text(case, "r"));
        let equal = match got.as_ref().map(|result| &**result) {
            Ok(CallOutcome::Success { output, .. }) => *output == want,
            Ok(CallOutcome::Halt { .. }) => want.is_empty(),
            _ => false,
        };
        if !equal {
            println!("got {got:?}\nwant {want}\nB {}\nC {}", case["B"], case["C"]);
        }
        !equal
    };
    let wrong = cases.iter().enumerate().filter(|(_, case)| differs(case)).map(|(n, _)| n).collect();
    (cases.len(), wrong)
}

#[test]
fn a_sample_of_programs_equals_the_reference() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/evm_fuzz.json"));
    let (count, wrong) = run_file(path);
    assert!(count >= 300);
    assert_eq!(wrong, Vec::<usize>::new());
}

#[test]
fn all_six_thousand_programs_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let mut total = 0;
    for seed in [21, 22, 23] {
        let (count, wrong) = run_file(&shared.join(format!("vectors/evm_fuzz/cases_{seed}.json")));
        assert_eq!(wrong, Vec::<usize>::new(), "cases_{seed}");
        total += count;
    }
    assert_eq!(total, 6_000);
}
