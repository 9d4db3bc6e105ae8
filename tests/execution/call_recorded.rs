//! `eth_call` compared with recorded answers of the reference node, over its recorded state: with all data
//! available, and starting from nothing and fetching the data that each run reports as missing.

use crate::support;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use proptest::prelude::*;
use rootlight::consensus::{Network, RuleSet};
use rootlight::exec::{
    CallContext, CallMessage, CallOutcome, CallResult, CallStop, HaltReason, RunLimits, call,
};
use rootlight::state::{AccountOverride, OverrideStorage, StateKey, StateOverride, TrieState};
use serde_json::Value;
use support::chain::{ChainHashes, RecordedChain, environment, lines};
use support::*;

/// Head of the chain when a file was recorded.
const HEAD: u64 = 0x284;

/// A recorded call: block, message, overrides and answer.
struct RecordedCall {
    label: String,
    number: u64,
    message: CallMessage,
    overrides: StateOverride,
    want: CallAnswer,
}

#[derive(Debug, PartialEq)]
enum CallAnswer {
    Output(Bytes),
    Revert(Bytes),
}

/// Block number of a block parameter, if it names a block up to the head.
fn block_number(param: Option<&Value>, head: u64) -> Option<u64> {
    let Some(param) = param else { return Some(head) };
    match param.as_str()? {
        "latest" => Some(head),
        "earliest" => Some(0),
        text => {
            let number = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
            (number <= head).then_some(number)
        }
    }
}

fn number(value: &Value) -> Option<U256> {
    match value {
        Value::Number(number) => number.as_u64().map(U256::from),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(hex) => U256::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

fn message(request: &Value) -> Option<CallMessage> {
    let field = |name: &str| request.get(name).filter(|value| !value.is_null() && *value != "");
    let address = |name: &str| match field(name) {
        None => Some(None),
        Some(value) => {
            let text = value.as_str()?.trim_start_matches("0x").to_owned();
            text.parse::<Address>().ok().map(Some)
        }
    };
    let amount = |name: &str| match field(name) {
        None => Some(None),
        Some(value) => number(value).map(Some),
    };
    let data = match field("input").or(field("data")) {
        None => Bytes::new(),
        Some(value) => hex::decode(value.as_str()?.trim_start_matches("0x")).ok()?.into(),
    };
    // The reference node reads only `gas`.
    let gas = amount("gas")?.map(|gas| u64::try_from(gas).unwrap_or(u64::MAX));
    Some(CallMessage {
        from: address("from")?,
        to: address("to")?,
        gas,
        gas_price: amount("gasPrice")?.unwrap_or_default(),
        value: amount("value")?.unwrap_or_default(),
        data,
    })
}

fn slots(value: &Value) -> Option<BTreeMap<U256, U256>> {
    value
        .as_object()?
        .iter()
        .map(|(slot, word)| Some((number(&Value::String(slot.clone()))?, number(word)?)))
        .collect()
}

fn overrides(value: Option<&Value>) -> Option<StateOverride> {
    let mut overrides = StateOverride::default();
    let Some(value) = value else { return Some(overrides) };
    for (address, over) in value.as_object()? {
        let mut account = AccountOverride::default();
        for (name, value) in over.as_object()? {
            match name.as_str() {
                "balance" => account.balance = Some(number(value)?),
                "nonce" => account.nonce = Some(u64::try_from(number(value)?).ok()?),
                "code" => {
                    let code = value.as_str()?.trim_start_matches("0x");
                    let padded = if code.len() % 2 == 1 { format!("0{code}") } else { code.to_owned() };
                    account.code = Some(hex::decode(padded).ok()?.into());
                }
                "state" => account.storage = OverrideStorage::Replace(slots(value)?),
                "stateDiff" => account.storage = OverrideStorage::Patch(slots(value)?),
                "movePrecompileToAddress" => return None,
                _ => {}
            }
        }
        overrides.accounts.insert(address.parse().ok()?, account);
    }
    Some(overrides)
}

/// Parses a recorded line, or returns why it is not compared.
fn recorded(line: &Value, head: u64) -> Result<RecordedCall, String> {
    let (request, response) = (&line["request"], &line["response"]);
    if request["method"] != "eth_call" {
        return Err("other method".into());
    }
    let params = request["params"].as_array().ok_or("no params")?;
    let want = match (response["result"].as_str(), &response["error"]) {
        (Some(result), _) => CallAnswer::Output(bytes(result)),
        (None, error) if error["code"] == -32015 => {
            CallAnswer::Revert(bytes(error["data"].as_str().ok_or("no data")?))
        }
        (None, error) => return Err(format!("refused: {}", error["message"].as_str().unwrap_or("?"))),
    };
    let number = block_number(params.get(1), head).ok_or("block parameter that only the RPC layer reads")?;
    let message = params.first().and_then(message).ok_or("call object that only the RPC layer reads")?;
    if message.gas.is_some_and(|gas| gas > i64::MAX as u64) {
        return Err("gas above 2^63, which the node takes for negative and does not cap".into());
    }
    let overrides = overrides(params.get(2)).ok_or("overrides that only the RPC layer reads")?;
    let label = line["label"].as_str().unwrap_or("").to_owned();
    Ok(RecordedCall { label, number, message, overrides, want })
}

fn rules() -> RuleSet {
    Network::regtest().rules(642)
}

fn full_call(chain: &RecordedChain, recorded: &RecordedCall) -> Result<CallResult, CallStop> {
    let state = TrieState::new(&chain.nodes, chain.root(recorded.number));
    let hashes = ChainHashes { chain, known: None };
    let block = environment(&chain.blocks[&recorded.number]);
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    call(&context, &recorded.message, &recorded.overrides, &RunLimits::default(), None)
}

/// Runs the call on the given nodes, fetching missing data. Also returns the number of rounds.
fn fetched_call(
    chain: &RecordedChain,
    recorded: &RecordedCall,
    mut nodes: BTreeMap<B256, Bytes>,
) -> (Result<CallResult, CallStop>, usize) {
    let root = chain.root(recorded.number);
    let block = environment(&chain.blocks[&recorded.number]);
    let mut known = BTreeSet::new();
    for round in 0..64 {
        let state = TrieState::new(&nodes, root);
        let hashes = ChainHashes { chain, known: Some(known.clone()) };
        let context =
            CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
        match call(&context, &recorded.message, &recorded.overrides, &RunLimits::default(), None) {
            Err(CallStop::Missing(keys)) => {
                assert!(!keys.is_empty());
                for key in keys {
                    if let StateKey::BlockHash(number)
                    | StateKey::Header(number)
                    | StateKey::Uncles(number)
                    | StateKey::TotalDifficulty(number) = key
                    {
                        assert!(known.insert(number), "{key:?} asked for twice");
                        continue;
                    }
                    nodes.extend(chain.facts(root, key).into_iter().map(|node| (keccak256(&node), node)));
                }
            }
            other => return (other, round),
        }
    }
    panic!("{}: data are still missing after 64 rounds", recorded.label);
}

fn load(chain: &RecordedChain, file: &str) -> (Vec<RecordedCall>, BTreeMap<String, usize>) {
    let path = shared().unwrap().join(format!("vectors/chain/{file}.jsonl"));
    let (mut calls, mut skipped) = (Vec::new(), BTreeMap::new());
    for line in lines(&path) {
        match recorded(&line, HEAD) {
            Ok(call) if chain.nodes.contains_key(&chain.root(call.number)) => calls.push(call),
            Ok(_) => *skipped.entry("state not recorded".into()).or_default() += 1,
            Err(why) => *skipped.entry(why).or_default() += 1,
        }
    }
    (calls, skipped)
}

fn compare_file(file: &str, least: usize) {
    let Some(shared) = shared() else { return };
    let chain = RecordedChain::load(&shared.join("vectors"));
    let (calls, mut skipped) = load(&chain, file);
    let mut equal = 0;
    for recorded in &calls {
        let full = full_call(&chain, recorded);
        let got = match full.as_ref().map(|result| &**result) {
            Ok(CallOutcome::Success { output, .. }) => CallAnswer::Output(output.clone()),
            Ok(CallOutcome::Revert { output, .. }) => CallAnswer::Revert(output.clone()),
            // The reference node returns no output if a call halts.
            Ok(CallOutcome::Halt { .. }) => CallAnswer::Output(Bytes::new()),
            Err(CallStop::NotSimulated(address)) => {
                *skipped.entry(format!("not simulated: {address}")).or_default() += 1;
                continue;
            }
            Err(stop) => panic!("{}: {stop:?}", recorded.label),
        };
        assert_eq!(got, recorded.want, "{} {:?}", recorded.label, full);
        let (again, rounds) = fetched_call(&chain, recorded, BTreeMap::new());
        assert_eq!(again, full, "{}: from nothing", recorded.label);
        assert!(rounds <= 24, "{}: {rounds} rounds", recorded.label);
        equal += 1;
    }
    println!("{file}: {equal} equal, skipped {skipped:?}");
    assert!(equal >= least, "{equal}");
}

#[test]
fn plain_calls_equal_the_node() {
    compare_file("rpc_call", 104);
}

#[test]
fn calls_with_overrides_equal_the_node() {
    compare_file("rpc_override", 24);
}

#[test]
fn calls_of_native_contracts_equal_the_node() {
    compare_file("rpc_precompiles", 202);
}

/// With any subset of the nodes, a call either reports missing data or gives the full answer.
#[test]
fn partial_state_never_changes_an_answer() {
    let Some(shared) = shared() else { return };
    let chain = RecordedChain::load(&shared.join("vectors"));
    let (calls, _) = load(&chain, "rpc_call");
    let calls: Vec<_> = calls.into_iter().filter(|call| !call.want_is_empty()).collect();
    let seen = RefCell::new(0);
    let strategy = (0..calls.len(), any::<u64>(), 0_u64..4);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    });
    runner
        .run(&strategy, |(which, seed, keep)| {
            let recorded = &calls[which];
            let full = full_call(&chain, recorded);
            let some = chain.nodes.iter().filter(|(hash, _)| {
                let mixed = u64::from_be_bytes(hash[..8].try_into().unwrap()).wrapping_mul(seed | 1) >> 32;
                mixed % 4 < keep
            });
            let some: BTreeMap<B256, Bytes> = some.map(|(hash, node)| (*hash, node.clone())).collect();
            let (got, rounds) = fetched_call(&chain, recorded, some);
            *seen.borrow_mut() += rounds;
            prop_assert_eq!(got, full);
            Ok(())
        })
        .unwrap();
    assert!(*seen.borrow() > 100, "the calls hardly missed any data");
}

impl RecordedCall {
    fn want_is_empty(&self) -> bool {
        self.want == CallAnswer::Output(Bytes::new())
    }
}

#[test]
fn interrupts_and_limits_end_a_run() {
    // JUMPDEST PUSH1 0 JUMP
    let code = bytes("5b600056");
    let mut state = MapState::default();
    let account = MapAccount { code, contract: true, ..MapAccount::default() };
    state.accounts.insert(low_address(0xc0de), account);
    let (hashes, block) = (MapHashes::default(), empty_block());
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    let message = CallMessage { to: Some(low_address(0xc0de)), ..CallMessage::default() };
    let none = StateOverride::default();

    let stopped = RunLimits { interrupt: &|| true, ..RunLimits::default() };
    assert_eq!(call(&context, &message, &none, &stopped, None), Err(CallStop::Interrupted));
    let out = call(&context, &message, &none, &RunLimits::default(), None).unwrap().into_outcome();
    assert_eq!(out, CallOutcome::Halt { reason: HaltReason::OutOfGas, gas_used: 10_000_000 });
}

/// Such an inline run misses only a part: the whole run also finds the missing data after the point where the inline run ends.
#[test]
fn an_attempt_that_ends_early_reports_no_missing_facts() {
    // PUSH1 2 SLOAD POP, PUSH1 1 PUSH3 0x020000 MSTORE8 (128 KiB of memory), PUSH1 1 SLOAD, JUMPDEST
    let (code, address) = (bytes("60025450600162020000536001545b"), low_address(0xc0de));
    let keys = [1, 2].map(|slot| StateKey::Storage(address, U256::from(slot)));
    let mut state = MapState::default();
    let account = MapAccount { code, contract: true, ..MapAccount::default() };
    state.accounts.insert(address, account);
    state.hidden.extend(keys);
    let (hashes, block) = (MapHashes::default(), empty_block());
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    let message = CallMessage { to: Some(address), ..CallMessage::default() };
    let none = StateOverride::default();
    let whole = call(&context, &message, &none, &RunLimits::default(), None);
    assert_eq!(whole, Err(CallStop::Missing(keys.into())));
    let inline = RunLimits { is_inline: true, ..RunLimits::default() };
    assert_eq!(call(&context, &message, &none, &inline, None), Err(CallStop::Interrupted));
}

/// PUSH1 0, then: JUMPDEST DUP1 SLOAD POP PUSH1 1 ADD PUSH1 2 JUMP
const READS_FOREVER: &str = "60005b805450600101600256";

#[test]
fn a_run_reports_a_bounded_number_of_missing_facts() {
    let address = low_address(0xc0de);
    let mut state = MapState { hide_all: true, ..MapState::default() };
    let account = MapAccount { code: bytes(READS_FOREVER), contract: true, ..MapAccount::default() };
    state.accounts.insert(address, account);
    state.revealed.extend([StateKey::Account(address), StateKey::Code(address)]);
    let (hashes, block) = (MapHashes::default(), empty_block());
    let message = CallMessage { to: Some(address), ..CallMessage::default() };
    let none = StateOverride::default();
    let limits = RunLimits { max_missing: 10, ..RunLimits::default() };
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    let Err(CallStop::Missing(keys)) = call(&context, &message, &none, &limits, None) else {
        panic!("no misses")
    };
    assert!(keys.len() >= 10 && keys.len() < 2_000, "{}", keys.len());

    state.hide_all = false;
    let limits = RunLimits { max_keys: 100, ..RunLimits::default() };
    let context = CallContext { state: &state, hashes: &hashes, block: &block, rules: rules(), chain_id: 33 };
    assert_eq!(call(&context, &message, &none, &limits, None), Err(CallStop::TooManyKeys { limit: 100 }));
}

fn empty_block() -> rootlight::exec::BlockEnvironment {
    rootlight::exec::BlockEnvironment {
        number: 1,
        timestamp: 0,
        coinbase: Address::ZERO,
        difficulty: U256::ZERO,
        gas_limit: U256::ZERO,
        minimum_gas_price: U256::ZERO,
    }
}
