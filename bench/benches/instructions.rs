//! The instructions of ten hot paths, counted by callgrind: `cargo xtask instructions` compares them with
//! `bench/instructions.txt`. The counts do not depend on the speed or load of the machine.

// The macros of gungraun make public items that have no documentation.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, keccak256};
use gungraun::{LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::engine::{DevNode, HostInput};
use rootlight::rpc::{LocalClient, MessageProgress};
use rootlight::trie::{Trie, verify_proof};
use rootlight_bench::headers::HeaderRun;
use rootlight_bench::proven::ProvenCall;
use rootlight_bench::recordings::mainnet_headers;
use rootlight_bench::sync::HeaderReplay;
use rootlight_bench::transfers::Transfers;
use rootlight_p2p::chunk::{prove, serve};
use serde_json::{Value, json};

/// Headers that are verified or synchronized.
const HEADERS: usize = 64;
/// Accounts in a trie.
const ACCOUNTS: u32 = 2_000;
/// Transfers in the imported block.
const TRANSFERS: u64 = 25;
/// Blocks with a log each, and transactions in the full block.
const LOGS: usize = 60;

fn headers() -> Vec<Vec<u8>> {
    mainnet_headers().expect("the recordings").into_iter().take(HEADERS).collect()
}

fn accounts() -> (Trie, Vec<Vec<u8>>) {
    let key = |index: u32| {
        let address = &keccak256(index.to_be_bytes())[12..];
        [&[0][..], &keccak256(address)[..10], address].concat()
    };
    let mut trie = Trie::new();
    for index in 0..ACCOUNTS {
        trie.put(&key(index), keccak256(index.to_le_bytes())[..12].to_vec());
    }
    // The last two are absent.
    (trie, (0..12).map(|index| key(index * (ACCOUNTS / 10))).collect())
}

struct Proofs(B256, Vec<(Vec<u8>, Vec<Bytes>)>);

fn proofs() -> Proofs {
    let (trie, keys) = accounts();
    let wrapped = |node: Bytes| Bytes::from(alloy_rlp::encode(&node[..]));
    let proofs = keys.into_iter().map(|key| (trie.proof(&key).into_iter().map(wrapped).collect(), key));
    let proofs = proofs.map(|(nodes, key)| (key, nodes)).collect();
    Proofs(trie.root(), proofs)
}

fn chunk() -> (B256, u64, Vec<u8>) {
    let (trie, _) = accounts();
    let mut store = std::collections::BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| drop(store.insert(hash, bytes)));
    let (root, size) = (trie.root(), serve::trie_size(&store, &trie.root()).expect("not empty"));
    let from = size / 2;
    (root, from, serve::chunk(&store, &root, from).expect("within the trie").bytes)
}

/// A development chain, and a message for it.
struct DevBench {
    client: LocalClient,
    messages: u64,
    message: String,
}

impl DevBench {
    fn new() -> Self {
        let config = DevConfig::new(&DevAccounts::default());
        let node = DevNode::new(config, Self::moment(0)).expect("a valid configuration");
        Self { client: LocalClient::new(Box::new(node)), messages: 0, message: String::new() }
    }

    fn moment(message: u64) -> HostInput {
        HostInput { now: 1_900_000_000, entropy: keccak256(message.to_be_bytes()) }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut answer: Value = serde_json::from_str(&self.answer(&message)).expect("JSON");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// A host parses a message, then the node answers it.
    fn answer(&mut self, message: &str) -> String {
        self.messages += 1;
        let message =
            MessageProgress::read_from(&self.client.dispatcher(), Arc::default(), message.as_bytes());
        let answer = self.client.answer(message, Self::moment(self.messages), &|| false);
        answer.into_text().expect("a request gets an answer")
    }

    /// A chain whose contract logs an event when it is called. It was called in each of many blocks, and many times in the
    /// newest one.
    fn with_logs() -> Self {
        let mut chain = Self::new();
        let contract = Address::repeat_byte(0xc0);
        // PUSH1 0, PUSH1 0, LOG0: an event without topics and data.
        chain.request("anvil_setCode", &json!([contract, "0x60006000a0"]));
        let accounts = chain.request("eth_accounts", &json!([]));
        let senders = accounts.as_array().expect("a list");
        let send = |chain: &mut Self, index: usize| {
            let from = &senders[index % senders.len()];
            let call = json!([{ "from": from, "to": contract, "gas": "0x186a0" }]);
            chain.request("eth_sendTransaction", &call);
        };
        (0..LOGS).for_each(|index| send(&mut chain, index));
        chain.request("evm_setAutomine", &json!([false]));
        (0..LOGS).for_each(|index| send(&mut chain, index));
        chain.request("evm_mine", &json!([]));
        chain
    }

    fn with(mut self, method: &str, params: &Value) -> Self {
        self.message = call(method, params).to_string();
        assert!(self.answer(&self.message.clone()).contains(r#""result""#));
        self
    }
}

fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn one_call() -> DevBench {
    let mut chain = DevBench::new();
    let contract = Address::repeat_byte(0xc0);
    // PUSH1 42, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
    chain.request("anvil_setCode", &json!([contract, "0x602a60005260206000f3"]));
    chain.with("eth_call", &json!([{ "to": contract, "data": "0x01020304" }, "latest"]))
}

fn batch() -> DevBench {
    let mut chain = DevBench::new();
    let balance = |index: u8| call("eth_getBalance", &json!([Address::repeat_byte(index), "latest"]));
    chain.message = Value::Array((0..50).map(balance).collect()).to_string();
    assert_eq!(chain.answer(&chain.message.clone()).matches(r#""result""#).count(), 50);
    chain
}

fn logs() -> DevBench {
    DevBench::with_logs().with("eth_getLogs", &json!([{ "fromBlock": "0x1", "toBlock": "latest" }]))
}

fn full_block() -> DevBench {
    DevBench::with_logs().with("eth_getBlockByNumber", &json!(["latest", true]))
}

#[library_benchmark]
#[bench::of(HeaderRun::new(headers()))]
fn header_verification(run: HeaderRun) -> HeaderRun {
    run.verify();
    run
}

#[library_benchmark]
#[bench::of(HeaderReplay::new(&headers()))]
fn header_synchronization(replay: HeaderReplay) -> HeaderReplay {
    drop(black_box(replay.sync()));
    replay
}

#[library_benchmark]
#[bench::of(proofs())]
fn account_proof(proofs: Proofs) -> Proofs {
    for (key, nodes) in &proofs.1 {
        assert!(black_box(verify_proof(proofs.0, key, nodes, None)).is_ok());
    }
    proofs
}

#[library_benchmark]
#[bench::of(ProvenCall::load().expect("the recordings").0)]
fn balance_of_on_proven_state(proven: ProvenCall) -> ProvenCall {
    drop(black_box(proven.balance()));
    proven
}

#[library_benchmark]
#[bench::of(Transfers::load(100, TRANSFERS).expect("the recordings"))]
fn block_import(block: Transfers) -> Transfers {
    block.import(None);
    block
}

#[library_benchmark]
#[bench::of(chunk())]
fn chunk_proof((root, from, bytes): (B256, u64, Vec<u8>)) -> Vec<u8> {
    assert!(black_box(prove(&bytes, &root, from)).is_ok());
    bytes
}

#[library_benchmark]
#[bench::one_call(one_call())]
#[bench::batch_of_50(batch())]
#[bench::log_query(logs())]
#[bench::full_block(full_block())]
fn message(mut chain: DevBench) -> (DevBench, String) {
    let message = std::mem::take(&mut chain.message);
    let answer = chain.answer(black_box(&message));
    (chain, answer)
}

library_benchmark_group!(
    name = paths,
    benchmarks = [
        header_verification,
        header_synchronization,
        account_proof,
        balance_of_on_proven_state,
        block_import,
        chunk_proof,
        message
    ]
);

main!(
    config = LibraryBenchmarkConfig::default().pass_through_env("ROOTLIGHT_SHARED"),
    library_benchmark_groups = paths
);
