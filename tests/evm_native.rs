//! Native contracts called straight and through a measuring contract, as the reference answered
//! them: output, success, gas and return buffer.

mod support;

use std::collections::BTreeMap;
use std::io::Read as _;

use alloy_primitives::{keccak256, Address, U256};
use rootlight::consensus::{Network, RuleSet};
use rootlight::exec::{call, CallContext, CallMessage, CallOutcome, CallStop, RunLimits};
use rootlight::state::{AccountOverride, StateOverride};
use serde_json::Value;
use support::chain::{environment, text};
use support::*;

fn rules() -> RuleSet {
    Network::regtest().rules(642)
}

/// An answer: in full, or as hash, length and head where it is long.
fn same(got: &[u8], want: &Value) -> bool {
    match want {
        Value::String(want) => *bytes(want) == *got,
        Value::Object(_) => keccak256(got).to_string() == text(want, "keccak"),
        _ => panic!("{want}"),
    }
}

fn run(message: &CallMessage, overrides: &StateOverride, block: &Value) -> Result<CallOutcome, CallStop> {
    let mut state = MapState::default();
    let native = [0x0100_0006, 0x0100_0008, 0x0100_0009, 0x0100_0010, 0x0100_0011, 0x0100_0016, 0x0100_0017];
    for low in (1..=9).chain(native) {
        state.accounts.insert(low_address(low), MapAccount { contract: true, ..MapAccount::default() });
    }
    let (hashes, block) = (MapHashes::default(), environment(block));
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    // A direct call is not held to the gas cap there.
    let limits = RunLimits { gas_cap: 1 << 40, ..RunLimits::default() };
    call(&context, message, overrides, &limits).map(|result| result.into_outcome())
}

fn output(outcome: CallOutcome) -> Vec<u8> {
    match outcome {
        CallOutcome::Success { output, .. } => output.to_vec(),
        CallOutcome::Halt { .. } => Vec::new(),
        CallOutcome::Revert { .. } => panic!("a measuring contract does not revert"),
    }
}

#[test]
fn native_contracts_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let mut file = String::new();
    let packed = std::fs::File::open(shared.join("vectors/eras/native.json.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut file).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let block = &file["env"]["block"];
    let wrapper: Address = text(&file["env"], "wrapperAddress").parse().unwrap();
    let (mut equal, mut skipped, mut wrong) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for (number, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let to: Address = text(case, "to").parse().unwrap();
        let mut check = |name: &str, message: CallMessage, overrides: StateOverride, want: &Value| match run(
            &message, &overrides, block,
        ) {
            Err(CallStop::NotSimulated(address)) => *skipped.entry(address.to_string()).or_default() += 1,
            Err(stop) => panic!("case {number}: {stop}"),
            Ok(outcome) if same(&output(outcome.clone()), want) => equal += 1,
            Ok(outcome) => wrong.push(format!("{number} {to} {name}: {outcome:?}, want {want}")),
        };
        if case.get("direct").is_some_and(|direct| !direct.is_null()) && !case["direct"].is_object() {
            let message = CallMessage {
                to: Some(to),
                gas: Some(1 << 40),
                data: bytes(text(case, "data")),
                ..CallMessage::default()
            };
            check("direct", message, StateOverride::default(), &case["direct"]);
        }
        let via = &case["via"];
        if !via["r"].is_string() {
            *skipped.entry("via without an answer".into()).or_default() += 1;
            continue;
        }
        let mut overrides = StateOverride::default();
        let account = AccountOverride {
            code: Some(bytes(text(via, "code"))),
            balance: Some(U256::from(10).pow(U256::from(18))),
            ..AccountOverride::default()
        };
        overrides.accounts.insert(wrapper, account);
        let data = via["data"].as_str().unwrap_or(text(case, "data"));
        let message = CallMessage {
            to: Some(wrapper),
            gas: Some(10_000_000),
            data: bytes(data),
            ..CallMessage::default()
        };
        check("via", message, overrides, &via["r"]);
    }
    println!("{equal} equal, skipped {skipped:?}");
    wrong.iter().take(20).for_each(|line| println!("{}", &line[..line.len().min(900)]));
    assert!(wrong.is_empty(), "{} differ", wrong.len());
    assert!(equal > 1_500, "{equal}");
}
