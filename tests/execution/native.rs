//! Calls of native contracts, directly and through a measuring contract. Output, success, gas and return
//! buffer must equal those of the reference node.

use crate::support;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use rootlight::consensus::{Network, RuleSet};
use rootlight::exec::{
    BlockEnvironment, BlockHashes, CallContext, CallMessage, CallOutcome, CallStop, RunLimits, call,
};
use rootlight::state::{AccountOverride, StateOverride, TrieState};
use rootlight::trie::Trie;
use rootlight::types::{Header, SealedHeader};
use serde_json::Value;
use support::chain::text;
use support::*;

fn rules() -> RuleSet {
    Network::regtest().rules(642)
}

/// Compares an output with a recorded one. A long output is recorded as hash, length and first bytes.
fn same(got: &[u8], want: &Value) -> bool {
    match want {
        Value::String(want) => *bytes(want) == *got,
        Value::Object(_) => keccak256(got).to_string() == text(want, "keccak"),
        _ => panic!("{want}"),
    }
}

/// The chain that the calls ran on: headers, uncles, total difficulties, and the state of its tip.
struct RecordedState {
    headers: Vec<SealedHeader>,
    uncles: BTreeMap<u64, Vec<Header>>,
    work: Vec<U256>,
    nodes: BTreeMap<B256, Bytes>,
    root: B256,
}

fn unpack(path: PathBuf) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

impl RecordedState {
    fn load(shared: &Path) -> Self {
        let network = Network::regtest();
        let shape = |number| network.header_shape(number);
        let file: Value =
            serde_json::from_str(&unpack(shared.join("vectors/eras/native_headers.json.gz"))).unwrap();
        let header = |raw: &Value| Header::decode(&bytes(raw.as_str().unwrap()), &shape).unwrap();
        let headers: Vec<_> =
            file["headers"].as_array().unwrap().iter().map(|raw| header(raw).seal()).collect();
        let mut uncles: BTreeMap<u64, Vec<Header>> = BTreeMap::new();
        for uncle in file["uncles"].as_array().unwrap() {
            let uncles = uncles.entry(uncle["block"].as_u64().unwrap()).or_default();
            uncles.push(header(&uncle["rawHeader"]));
        }
        let mut work = Vec::new();
        for header in &headers {
            let below = work.last().copied().unwrap_or(U256::ZERO);
            let uncles =
                uncles.get(&header.number).into_iter().flatten().map(|uncle| uncle.difficulty.value());
            work.push(uncles.fold(below + header.difficulty.value(), |sum, uncle| sum + uncle));
        }
        // Uncles of later blocks are not recorded, so the recorded total difficulties are used.
        for (number, want) in file["totalDifficulty"].as_object().unwrap() {
            let (number, want) = (number.parse::<usize>().unwrap(), u256(want.as_str().unwrap()));
            assert!(number > 163 || work[number] == want, "block {number}");
            work[number] = want;
        }
        let state = unpack(shared.join("vectors/eras/native_state.jsonl.gz"));
        let mut lines = state.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let root: B256 = text(&lines.next().unwrap(), "root").parse().unwrap();
        let mut trie = Trie::new();
        lines.for_each(|line| trie.put(&bytes(text(&line, "key")), bytes(text(&line, "value")).to_vec()));
        assert_eq!(trie.root(), root);
        let mut nodes = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| {
            nodes.insert(hash, bytes);
        });
        Self { headers, uncles, work, nodes, root }
    }

    fn run(
        &self,
        message: &CallMessage,
        overrides: &StateOverride,
        number: u64,
    ) -> Result<CallOutcome, CallStop> {
        let state = TrieState::new(&self.nodes, self.root);
        let block = BlockEnvironment::from(&*self.headers[number as usize]);
        let context =
            CallContext { state: &state, hashes: self, block: &block, rules: rules(), chain_id: 33 };
        // The reference node does not apply the gas cap to these direct calls.
        let limits = RunLimits { gas_cap: 1 << 40, ..RunLimits::default() };
        call(&context, message, overrides, &limits, None).map(|result| result.into_outcome())
    }
}

impl BlockHashes for RecordedState {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.header(number).map(|header| header.hash())
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.headers.get(number as usize).cloned()
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        Some(self.uncles.get(&number).cloned().unwrap_or_default())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.work.get(number as usize).copied()
    }
}

/// Whether a call asks for merged-mining tags, which are not part of raw headers.
fn asks_for_tags(case: &Value) -> bool {
    text(case, "data").starts_with("0x5ca053dd")
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
    let file: Value = serde_json::from_str(&unpack(shared.join("vectors/eras/native.json.gz"))).unwrap();
    let recorded = RecordedState::load(&shared);
    let wrapper: Address = text(&file["env"], "wrapperAddress").parse().unwrap();
    let (mut equal, mut skipped, mut wrong) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for (number, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let to: Address = text(case, "to").parse().unwrap();
        if asks_for_tags(case) {
            *skipped.entry("merged-mining tags".into()).or_default() += 1;
            continue;
        }
        let mut check =
            |name: &str, message: CallMessage, overrides: StateOverride, want: &Value| match recorded.run(
                &message,
                &overrides,
                u64_of(text(case, "block")),
            ) {
                Err(CallStop::NotSimulated(method)) => *skipped.entry(method.to_string()).or_default() += 1,
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

#[test]
fn ancestor_headers_are_read_at_every_permitted_depth() {
    let Some(shared) = shared() else { return };
    let file: Value =
        serde_json::from_str(&unpack(shared.join("vectors/eras/native_depth.json.gz"))).unwrap();
    let recorded = RecordedState::load(&shared);
    let (mut equal, mut unknown) = (0, 0);
    for case in file["cases"].as_array().unwrap().iter().filter(|case| !asks_for_tags(case)) {
        let ancestor = case["block"].as_u64().unwrap().checked_sub(case["depth"].as_u64().unwrap_or(0) + 1);
        if text(case, "method") == "getCumulativeWork" && ancestor.is_some_and(|n| (164..4238).contains(&n)) {
            unknown += 1;
            continue;
        }
        let message = CallMessage {
            to: Some(low_address(0x0100_0010)),
            gas: Some(10_000_000),
            data: bytes(text(case, "data")),
            ..CallMessage::default()
        };
        let got = recorded.run(&message, &StateOverride::default(), case["block"].as_u64().unwrap()).unwrap();
        assert!(same(&output(got.clone()), &case["direct"]), "{case}: {got:?}");
        equal += 1;
    }
    assert_eq!((equal, unknown), (238, 5));
}
