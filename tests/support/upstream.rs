//! An upstream made from a recording, and a light client that is driven with it.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use rootlight::exec::CallPolicy;
use rootlight::{
    consensus::{Checkpoint, Network},
    light::{ClientConfig, Now, RequestFailure, SyncStep, UpstreamRequest, UpstreamResponse},
    rpc::{Client, SessionStep},
    state::keys,
    trie::{self, NodeSource},
};
use serde_json::{Value, json, value::RawValue};

use super::{bytes, chain::lines, chain::text, u64_of, u256};

/// Files of a recorded chain with data that a light client requests.
const FILES: [&str; 8] = [
    "blocks",
    "uncles",
    "headers_raw",
    "receipts",
    "receipts_raw",
    "txs_get",
    "blocks_byhash",
    "side_blocks",
];

/// Recorded answers by method and parameters, and state proofs made from recorded trie nodes.
pub struct RecordedUpstream {
    answers: BTreeMap<String, String>,
    nodes: BTreeMap<B256, Bytes>,
    roots: BTreeMap<u64, B256>,
    /// The head of the chain; later blocks are left out.
    pub head: u64,
    /// The announced height, if it is not the head.
    pub announced: Option<u64>,
    /// Methods that are answered with `null` for any parameters.
    pub withheld: Vec<&'static str>,
}

fn key_of(method: &str, params: &Value) -> String {
    format!("{} {params}", method.replacen("ext_", "rsk_", 1))
}

impl RecordedUpstream {
    /// Reads a folder of recorded answers. The chain ends at `head`.
    pub fn open(folder: &Path, head: u64) -> Self {
        let mut recording = Self {
            answers: BTreeMap::new(),
            nodes: BTreeMap::new(),
            roots: BTreeMap::new(),
            head,
            announced: None,
            withheld: Vec::new(),
        };
        for name in FILES {
            let path = folder.join(format!("{name}.jsonl"));
            if !path.exists() {
                continue;
            }
            for line in lines(&path) {
                recording.keep(&line);
            }
        }
        let nodes = folder.join("state_nodes.jsonl");
        if nodes.exists() {
            for line in lines(&nodes) {
                recording.nodes.insert(text(&line, "hash").parse().unwrap(), bytes(text(&line, "value")));
            }
        }
        recording
    }

    fn keep(&mut self, line: &Value) {
        let (request, response) = (&line["request"], &line["response"]);
        let Some(result) = response.get("result") else { return };
        let method = text(request, "method");
        if method == "eth_getBlockByNumber" && result.is_object() {
            self.roots.insert(u64_of(text(result, "number")), text(result, "stateRoot").parse().unwrap());
        }
        self.answers.entry(key_of(method, &request["params"])).or_insert_with(|| result.to_string());
    }

    /// The recorded answer, or one that is made from the state.
    pub fn answer(&self, call: &UpstreamRequest) -> Option<String> {
        let params: Value = serde_json::from_str(&call.params).unwrap();
        match call.method {
            method if self.withheld.contains(&method) => Some("null".into()),
            "eth_blockNumber" => Some(format!("\"{:#x}\"", self.announced.unwrap_or(self.head))),
            "eth_getProof" => {
                self.answers.get(&key_of(call.method, &params)).cloned().or_else(|| self.proof(&params))
            }
            "eth_getCode" => self.code(&params),
            "rsk_getStorageBytesAt" => self.storage_bytes(&params),
            "eth_getBlockByNumber" | "rsk_getRawBlockHeaderByNumber" if self.is_above(&params) => {
                Some("null".into())
            }
            method => self.answers.get(&key_of(method, &params)).cloned(),
        }
    }

    fn is_above(&self, params: &Value) -> bool {
        params[0].as_str().is_some_and(|number| u64_of(number) > self.head)
    }

    fn proof(&self, params: &Value) -> Option<String> {
        let address: Address = params[0].as_str()?.parse().ok()?;
        // Supports block numbers only.
        let root = *self.roots.get(&u64_of(params[2].as_str().filter(|text| text.len() < 20)?))?;
        let way = |key: &[u8]| -> Option<Value> {
            let nodes = trie::prove(&self.nodes, root, key).ok()?;
            Some(nodes.iter().map(|node| hex::encode_prefixed(alloy_rlp::encode(node))).collect())
        };
        let mut storage = Vec::new();
        for slot in params[1].as_array()? {
            let slot = u256(slot.as_str()?);
            storage.push(json!({ "key": format!("{slot:#x}"), "value": "0x0", "proof": way(&keys::slot_key(&address, &slot))? }));
        }
        Some(
            json!({ "accountProof": way(&keys::account_key(&address))?, "storageProof": storage })
                .to_string(),
        )
    }

    fn code(&self, params: &Value) -> Option<String> {
        let address: Address = params[0].as_str()?.parse().ok()?;
        let root = *self.roots.get(&u64_of(params[1].as_str()?))?;
        let code = trie::lookup_value(&self.nodes, root, &keys::code_key(&address)).ok()?.unwrap_or_default();
        Some(format!("\"{}\"", hex::encode_prefixed(code)))
    }

    fn storage_bytes(&self, params: &Value) -> Option<String> {
        let address: Address = params[0].as_str()?.parse().ok()?;
        let root = *self.roots.get(&u64_of(params[2].as_str()?))?;
        let key = keys::slot_key(&address, &u256(params[1].as_str()?));
        let value = trie::lookup_value(&self.nodes, root, &key).ok()?.unwrap_or_default();
        Some(format!("\"{}\"", hex::encode_prefixed(value)))
    }

    /// Serves another block (a node's JSON with complete transactions) at its height.
    pub fn show(&mut self, block: &Value) {
        let params = json!([block["number"], true]);
        self.answers.insert(key_of("eth_getBlockByNumber", &params), block.to_string());
    }

    pub fn replace(&mut self, method: &str, params: &Value, answer: &Value) {
        self.answers.insert(key_of(method, params), answer.to_string());
    }

    /// Removes the answer to a request.
    pub fn forget(&mut self, method: &str, params: &Value) {
        self.answers.remove(&key_of(method, params));
    }

    /// A trie node of the recorded states.
    pub fn node(&self, hash: &B256) -> Option<Bytes> {
        self.nodes.node(hash)
    }
}

/// The text with the byte at a position replaced by another one.
fn change(text: &str, place: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes[place] = if bytes[place] == b'1' { b'2' } else { b'1' };
    String::from_utf8(bytes).unwrap()
}

/// A light client with its upstream.
pub struct Harness<'a> {
    pub client: Client,
    pub recording: &'a RecordedUpstream,
    /// A request whose response is changed in one byte, and the position of that byte.
    pub change: Option<(UpstreamRequest, usize)>,
    /// Every request, with the length of its honest response.
    pub asked: Vec<(UpstreamRequest, usize)>,
    /// Whether facts that a message has proven are dropped instead of cached.
    pub forgetful: bool,
}

impl<'a> Harness<'a> {
    /// A client that trusts only the genesis block.
    pub fn new(recording: &'a RecordedUpstream, network: Network) -> Self {
        let total_difficulty = Some(U256::from(1));
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty };
        Self::from_checkpoint(recording, network, checkpoint)
    }

    /// A client that trusts a checkpoint.
    pub fn from_checkpoint(
        recording: &'a RecordedUpstream,
        network: Network,
        checkpoint: Checkpoint,
    ) -> Self {
        let config = ClientConfig {
            version: "Rootlight/test".into(),
            upstreams: vec!["recording".into()],
            ..ClientConfig::default()
        };
        let client = Client::new(Arc::new(network), checkpoint, config);
        Self { client, recording, change: None, asked: Vec::new(), forgetful: false }
    }

    /// A client with the given limits and defaults of calls.
    pub fn with_policy(recording: &'a RecordedUpstream, network: Network, policy: CallPolicy) -> Self {
        let checkpoint =
            Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: Some(U256::from(1)) };
        let config = ClientConfig { policy, ..ClientConfig::default() };
        let client = Client::new(Arc::new(network), checkpoint, config);
        Self { client, recording, change: None, asked: Vec::new(), forgetful: false }
    }

    pub fn ask(&mut self, calls: &[UpstreamRequest]) -> Vec<UpstreamResponse> {
        calls.iter().map(|call| self.ask_one(call)).collect()
    }

    fn ask_one(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        let honest = self.recording.answer(call).ok_or(RequestFailure::NotRecorded)?;
        self.asked.push((call.clone(), honest.len()));
        let text = match &self.change {
            Some((changed, place)) if changed == call => change(&honest, *place),
            _ => honest,
        };
        RawValue::from_string(text).map_err(|_| RequestFailure::Malformed("not JSON"))
    }

    /// Synchronizes to the head. Returns the fault if it stops earlier.
    pub fn sync(&mut self) -> Result<(), String> {
        for _ in 0..100_000 {
            match self.client.sync_next(0, Now::default()) {
                SyncStep::Wait(_) => {
                    return match self.client.sync().fault() {
                        Some(fault) => Err(fault.to_string()),
                        None => Ok(()),
                    };
                }
                SyncStep::Fetch(calls) => {
                    let answers = self.ask(&calls);
                    self.client.sync_feed(0, answers, Now::default());
                }
            }
        }
        panic!("synchronization does not end");
    }

    /// The answer to a message; `None` for a notification.
    pub fn send(&mut self, message: &str) -> Option<Value> {
        let mut session = self.client.open(message.as_bytes(), self.client.sync().now());
        for _ in 0..1_000 {
            match self.client.step(&mut session, &|| false) {
                SessionStep::Done(reply) => {
                    // Facts from changed responses are not cached, so that each change is tried on a client without
                    // them.
                    if !self.forgetful {
                        self.client.close(session);
                    }
                    return reply.into_text().map(|text| serde_json::from_str(&text).unwrap());
                }
                SessionStep::Fetch(round) => {
                    let answers = round.answered(|part| self.ask(&part.requests));
                    self.client.feed(&mut session, answers);
                }
            }
        }
        panic!("no end to {message}");
    }

    /// Calls a method; an error is returned as its `error` object.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut answer = self.send(&message).unwrap();
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }
}
