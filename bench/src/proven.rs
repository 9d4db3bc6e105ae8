//! A call on proven nodes of a recorded state.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};
use rootlight::consensus::{Network, RuleSet};
use rootlight::exec::{
    BlockEnvironment, BlockHashes, CallContext, CallMessage, CallOutcome, CallStop, RunLimits, call,
};
use rootlight::state::{StateKey, StateOverride, StateReader, TrieState, keys};
use rootlight::trie::{ProvenNodes, Trie, lookup_value, prove, verify_multiproof};
use serde_json::Value;

use crate::recordings::read;
use crate::state::TOKEN;

/// A holder of the token, and the block whose state is read.
const HOLDER: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";
const BLOCK: u64 = 642;
struct NoHashes;

impl BlockHashes for NoHashes {
    fn block_hash(&self, _: u64) -> Option<B256> {
        None
    }
}

/// `balanceOf` of the token on proven nodes, with all needed nodes present.
pub struct ProvenCall {
    root: B256,
    nodes: ProvenNodes,
    block: BlockEnvironment,
    rules: RuleSet,
    /// The call.
    pub message: CallMessage,
}

impl ProvenCall {
    /// Runs the call and adds the state that it lacks until it succeeds. Returns `None` if the recordings are
    /// missing.
    #[must_use]
    pub fn load() -> Option<(Self, Vec<StateKey>)> {
        let (blocks, nodes) = (read("vectors/chain/blocks.jsonl")?, read("vectors/chain/state_nodes.jsonl")?);
        let lines = |text: &str| -> Vec<Value> {
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        };
        let mut blocks = lines(&blocks).into_iter().map(|line| line["response"]["result"].clone());
        let block = blocks.rfind(|block| uint(&block["number"]) == U256::from(BLOCK)).expect("recorded");
        let pair = |node: &Value| (text(&node["hash"]).parse().expect("a hash"), bytes(&node["value"]));
        let all: BTreeMap<B256, Bytes> = lines(&nodes).iter().map(pair).collect();
        let mut data = vec![0x70, 0xa0, 0x82, 0x31];
        data.resize(16, 0);
        data.extend_from_slice(HOLDER.parse::<Address>().expect("an address").as_slice());
        let to = Some(TOKEN.parse().expect("an address"));
        let mut proven = Self {
            root: text(&block["stateRoot"]).parse().expect("a hash"),
            nodes: ProvenNodes::new(),
            block: BlockEnvironment {
                number: BLOCK,
                timestamp: u64::try_from(uint(&block["timestamp"])).expect("a time"),
                coinbase: text(&block["miner"]).parse().expect("an address"),
                difficulty: uint(&block["difficulty"]),
                gas_limit: uint(&block["gasLimit"]),
                minimum_gas_price: uint(&block["minimumGasPrice"]),
            },
            rules: Network::regtest().rules(BLOCK),
            message: CallMessage { to, data: data.into(), ..CallMessage::default() },
        };
        let mut facts = Vec::new();
        while let Err(CallStop::Missing(lacking)) = proven.result() {
            proven.prove(&all, &lacking.iter().map(path).collect::<Vec<_>>());
            facts.extend(lacking);
        }
        Some((proven, facts))
    }

    fn prove(&mut self, all: &BTreeMap<B256, Bytes>, paths: &[Vec<u8>]) {
        let nodes: Vec<Bytes> =
            paths.iter().flat_map(|key| prove(all, self.root, key).expect("recorded")).collect();
        let value = |key: &Vec<u8>| lookup_value(all, self.root, key).expect("recorded");
        let values: Vec<Bytes> = paths.iter().filter_map(value).filter(|value| value.len() > 32).collect();
        let proven = verify_multiproof(self.root, paths, &nodes, &values).expect("a proof");
        self.nodes.merge(proven).expect("within the limit");
    }

    /// The proven state.
    pub fn state(&self) -> TrieState<&ProvenNodes> {
        TrieState::new(&self.nodes, self.root)
    }

    fn result(&self) -> Result<CallOutcome, CallStop> {
        self.result_on(&self.state())
    }

    fn result_on(&self, state: &dyn StateReader) -> Result<CallOutcome, CallStop> {
        let context =
            CallContext { state, hashes: &NoHashes, block: &self.block, rules: self.rules, chain_id: 33 };
        call(&context, &self.message, &StateOverride::default(), &RunLimits::default(), None)
            .map(|r| r.into_outcome())
    }

    /// The output of the call on the proven state.
    pub fn balance(&self) -> Bytes {
        output(self.result())
    }

    /// The same call on a complete state in memory.
    pub fn balance_on(&self, state: &Trie) -> Bytes {
        output(self.result_on(state))
    }
}

fn output(result: Result<CallOutcome, CallStop>) -> Bytes {
    match result {
        Ok(CallOutcome::Success { output, .. }) => output,
        other => panic!("{other:?}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn uint(value: &Value) -> U256 {
    value.as_str().map_or(U256::MAX, |text| text.parse().expect("a number"))
}

fn bytes(value: &Value) -> Bytes {
    hex::decode(text(value).trim_start_matches("0x")).expect("hex").into()
}

fn path(key: &StateKey) -> Vec<u8> {
    match key {
        StateKey::Account(address) => keys::account_key(address).to_vec(),
        StateKey::Code(address) => keys::code_key(address).to_vec(),
        StateKey::Storage(address, slot) | StateKey::StorageBytes(address, slot) => {
            keys::slot_key(address, slot)
        }
        _ => panic!("balanceOf asks for no block"),
    }
}
