//! Random programs and directed probes that the reference node ran under the rules of every era. Output, gas,
//! balances, codes and existence must be equal. Calls that reach a native contract that is not simulated are
//! counted, not compared.

use crate::support;

use std::collections::BTreeMap;
use std::io::Read as _;

use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::{Network, Rule, RuleSet};
use rootlight::exec::{BlockHashes, CallContext, CallMessage, CallOutcome, CallStop, RunLimits, call};
use rootlight::state::{AccountOverride, OverrideStorage, StateOverride};
use rootlight::types::{Header, SealedHeader};
use serde_json::Value;
use support::chain::{environment, text};
use support::*;

const ERAS: [&str; 13] = [
    "all",
    "testnet",
    "vetiver900main",
    "reed800",
    "lovell700",
    "arrowhead631",
    "arrowhead600",
    "fingerroot500",
    "hop401",
    "iris300",
    "papyrus200",
    "wasabi100",
    "orchid060",
];

fn read_gz(path: &std::path::Path) -> Value {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The rules active at a height, from the table in the recording. Without a table they are those of regtest.
fn rules_at(heights: &Value, number: u64) -> RuleSet {
    let Some(table) = heights.as_object() else { return Network::regtest().rules(number) };
    let active =
        |height: &Value| height.as_i64().is_some_and(|height| height >= 0 && height as u64 <= number);
    table.iter().filter(|(_, height)| active(height)).filter_map(|(name, _)| Rule::from_name(name)).collect()
}

/// The native contracts of the recorded chain. With RSKIP-126, each exists from its own rule on.
fn state(env: &Value, rules: RuleSet) -> MapState {
    use rootlight::evm::precompiles::Precompile;
    let mut state = MapState::default();
    for low in (1..=9).chain([0x0100_0009, 0x0100_0010, 0x0100_0011, 0x0100_0016, 0x0100_0017]) {
        let address = low_address(low);
        if rules.has(Rule::Rskip126) && Precompile::at(&address, rules).is_some() {
            state.accounts.insert(address, MapAccount { contract: true, ..MapAccount::default() });
        }
    }
    let remasc = MapAccount { contract: true, ..MapAccount::default() };
    state.accounts.insert(low_address(0x0100_0008), remasc);
    let balance = u256(text(env, "bridgeBalance"));
    state
        .accounts
        .insert(low_address(0x0100_0006), MapAccount { contract: true, balance, ..MapAccount::default() });
    state
}

fn overrides(env: &Value, case: &Value) -> StateOverride {
    let mut overrides = StateOverride::default();
    for (address, over) in env["overrides"].as_object().unwrap() {
        let address = Address::from_slice(&bytes(address));
        let balance = Some(u256(text(over, "balance")));
        overrides.accounts.insert(address, AccountOverride { balance, ..AccountOverride::default() });
    }
    for (low, name) in [(0x0c_0de1, "A"), (0x0c_0de2, "B"), (0x0c_0de3, "C")] {
        let over = overrides.accounts.get_mut(&low_address(low)).unwrap();
        over.code = case[name].as_str().map(bytes);
    }
    if let Some(slots) = case["stB"].as_object() {
        let slots = slots.iter().map(|(slot, word)| (u256(slot), u256(word.as_str().unwrap()))).collect();
        overrides.accounts.get_mut(&low_address(0x0c_0de2)).unwrap().storage = OverrideStorage::Patch(slots);
    }
    overrides
}

#[derive(Debug, Default)]
struct Count {
    equal: usize,
    not_simulated: usize,
    different: BTreeMap<String, Vec<usize>>,
}

#[allow(clippy::too_many_arguments)]
fn compare(
    env: &Value,
    block: &Value,
    rules: RuleSet,
    hashes: &Before,
    (number, case): (usize, &Value),
    want: &str,
    count: &mut Count,
    tag: String,
) {
    let (state, block) = (state(env, rules), environment(block));
    let context = CallContext { state: &state, hashes, block: &block, rules, chain_id: 33 };
    let message = CallMessage {
        to: Some(low_address(0x0c_0de1)),
        gas: Some(10_000_000),
        data: bytes(case["data"].as_str().unwrap_or("00ff")),
        ..CallMessage::default()
    };
    let got = call(&context, &message, &overrides(env, case), &RunLimits::default(), None);
    let output = match got.as_ref().map(|result| &**result) {
        Ok(CallOutcome::Success { output, .. }) => output.clone(),
        Ok(CallOutcome::Halt { .. }) => Default::default(),
        Err(CallStop::NotSimulated(_)) => {
            count.not_simulated += 1;
            return;
        }
        // The committed sample has no headers.
        Err(CallStop::Missing(_)) if hashes.headers.is_empty() => {
            count.not_simulated += 1;
            return;
        }
        other => panic!("case {number}: {other:?}"),
    };
    if output == bytes(want) {
        count.equal += 1;
        return;
    }
    if std::env::var("SHOW").is_ok_and(|show| tag.starts_with(&show)) {
        let want = bytes(want);
        println!("case {number} {tag} B {} C {}", case["B"], case["C"]);
        for (i, (got, want)) in output.chunks(32).zip(want.chunks(32)).enumerate() {
            if got != want {
                println!("   word {i}: got {} want {}", U256::from_be_slice(got), U256::from_be_slice(want));
            }
        }
        println!("   lengths {} {}", output.len(), want.len());
    }
    count.different.entry(tag).or_default().push(number);
}

/// Compares a set of cases recorded at block 3 of a new chain.
fn run(set: &Value) -> Count {
    let env = &set["env"];
    let rules = rules_at(&env["ruleHeights"], 3);
    let hashes = Before::new(env);
    let mut count = Count::default();
    for (number, case) in set["cases"].as_array().unwrap().iter().enumerate() {
        let tag = case["tag"].as_str().unwrap_or("").to_string();
        if ["A", "B", "C"]
            .iter()
            .any(|code| case[*code].as_str().is_some_and(|code| code.contains("5ca053dd")))
        {
            // Merged-mining tags are not part of raw headers.
            count.not_simulated += 1;
            continue;
        }
        compare(env, &env["block"], rules, &hashes, (number, case), text(case, "r"), &mut count, tag);
    }
    count
}

fn report(name: &str, count: &Count) -> usize {
    let different: usize = count.different.values().map(Vec::len).sum();
    println!(
        "{name}: {} equal, {} not simulated, {different} different {:?}",
        count.equal, count.not_simulated, count.different
    );
    different
}

/// The recorded earlier blocks. None has uncles, and each has difficulty 1.
#[derive(Default)]
struct Before {
    hashes: BTreeMap<u64, B256>,
    headers: BTreeMap<u64, SealedHeader>,
}

impl Before {
    fn new(env: &Value) -> Self {
        let mut before = Self::default();
        for number in [0_u64, 1] {
            before.hashes.insert(number, B256::ZERO);
        }
        if let Some(parent) = env["block"]["parentHash"].as_str() {
            before.hashes.insert(2, parent.parse().unwrap());
        }
        let Some(raw) = env["rawHeaders"].as_object() else { return before };
        let network = match env["ruleHeights"].is_object() {
            true => {
                let (forks, rules) = (&env["forkHeights"], &env["ruleHeights"]);
                let file = format!(r#"{{"name":"era","hardforks":{forks},"rules":{rules}}}"#);
                Network::from_json(&file).unwrap()
            }
            false => Network::regtest(),
        };
        for (number, raw) in raw {
            let raw = bytes(raw.as_str().unwrap());
            let header = Header::decode(&raw, &|number| network.header_shape(number)).unwrap();
            before.headers.insert(number.parse().unwrap(), header.seal());
        }
        before
    }
}

impl BlockHashes for Before {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.hashes.get(&number).copied()
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.headers.get(&number).cloned()
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        Some(Vec::new())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        Some(U256::from(number + 1))
    }
}

#[test]
fn a_sample_of_every_era_equals_the_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/evm_eras.json.gz");
    let sample = read_gz(std::path::Path::new(path));
    for era in ERAS {
        let count = run(&sample[era]);
        assert_eq!(report(era, &count), 0);
        assert!(count.equal > 80, "{}", count.equal);
    }
}

#[test]
fn every_era_equals_the_reference() {
    let Some(shared) = shared() else { return };
    let (mut equal, mut different) = (0, 0);
    for kind in ["fuzz", "sweep"] {
        for era in ERAS {
            let count = run(&read_gz(&shared.join(format!("vectors/eras/{kind}_{era}.json.gz"))));
            equal += count.equal;
            different += report(&format!("{kind} {era}"), &count);
        }
    }
    assert_eq!(different, 0);
    assert!(equal > 18_000, "{equal}");
}

/// Probes at every activation height of a chain that crosses all of them.
#[test]
fn every_rule_activates_at_its_height() {
    let Some(shared) = shared() else { return };
    let file = read_gz(&shared.join("vectors/eras/boundary_crossing.json.gz"));
    let env = &file["env"];
    let blocks = env["blocks"].as_object().unwrap();
    let mut before = Before::new(env);
    let mut count = Count::default();
    for (number, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        for (height, want) in case["r"].as_object().unwrap() {
            let rules = rules_at(&env["ruleHeights"], height.parse().unwrap());
            let block = &blocks[height];
            let parent = text(block, "parentHash").parse().unwrap();
            before.hashes = BTreeMap::from([(u64_of(text(block, "number")) - 1, parent)]);
            let want = want.as_str().unwrap();
            let tagged = format!("{} at {height}", case["tag"].as_str().unwrap());
            compare(env, block, rules, &before, (number, case), want, &mut count, tagged);
        }
    }
    assert_eq!(report("activations", &count), 0);
}
