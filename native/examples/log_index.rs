//! Measures searches in the index of logs of a million blocks, stored and in memory.
//!
//!     cargo run --release -p rootlight-native --example log_index [BLOCKS]
//!
//! The blocks are repetitions of a few mined ones: each has the logs of REMASC, every 100,000th those of a rare contract.

use std::sync::Arc;
use std::time::Instant;

use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::{DevNode, Moment, Node as _};
use rootlight::local::{BlockIndex, StoredBlock, Term};
use rootlight::rpc::LocalClient;
use rootlight::types::{Address, B256};
use rootlight_native::index::MemoryIndex;
use rootlight_native::store::{Persist, Store};
use serde_json::json;

const RARE: Address = Address::repeat_byte(0xaa);
/// Blocks between two writes to the store.
const BATCH: u64 = 50_000;
const ROUNDS: usize = 2_000;

fn moment() -> Moment {
    Moment { now: 1_800_000_000, entropy: B256::ZERO }
}

fn call(client: &mut LocalClient, method: &str, params: serde_json::Value) -> serde_json::Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer =
        client.answer(client.open(message.as_bytes()), moment(), &|| false).into_text().expect("an answer");
    let mut answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].take()
}

fn head(client: &mut LocalClient) -> Arc<StoredBlock> {
    let chain = client.node().local();
    chain.block(&chain.head().hash()).expect("the head").clone()
}

/// Median time of a search in microseconds, and the number of its candidates.
fn time(index: &dyn BlockIndex, groups: &[Vec<Term>], from: u64, to: u64) -> (f64, usize) {
    let mut found = 0;
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            found = index.blocks(groups, from, to, &|| false).count();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], found)
}

fn main() {
    let blocks: u64 =
        std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number of blocks"));
    let folder = tempfile::tempdir().expect("a folder");
    let config = DevConfig { mining: Mining::Instant, ..DevConfig::new(&DevAccounts::default()) };
    let mut node = DevNode::new(config, moment()).expect("a chain");
    let open = Store::opener(folder.path(), node.local().head().hash());
    let mut persist = Persist::restore(open, node.chain_mut().local_mut(), None, true).expect("a store");
    let (stored, memory) = (persist.index().clone(), MemoryIndex::default());
    let mut client = LocalClient::new(Box::new(node));
    // PUSH1 0, PUSH1 0, LOG0.
    call(&mut client, "anvil_setCode", json!([RARE, "0x60006000a0"]));
    let from = call(&mut client, "eth_accounts", json!([]))[0].clone();
    call(&mut client, "eth_sendTransaction", json!([{ "from": from, "to": RARE, "gas": "0x30d40" }]));
    let rare = head(&mut client);
    call(&mut client, "eth_sendTransaction", json!([{ "from": from, "to": from }]));
    let usual = head(&mut client);
    let start = Instant::now();
    for number in 0..blocks {
        let block = if number % 100_000 == 99_999 { &rare } else { &usual };
        stored.add(number, block);
        memory.add(number, block);
        if number % BATCH == BATCH - 1 {
            call(&mut client, "evm_mine", json!([]));
            let settled = client.node().take_settled();
            persist.save(client.node().local(), settled, None).expect("room on the disk");
        }
    }
    println!("{blocks} blocks added to both in {:.1} s", start.elapsed().as_secs_f64());
    let sender: Address = from.as_str().expect("an address").parse().expect("an address");
    let searches = [
        ("no block", vec![vec![Term::Contract(Address::repeat_byte(0xbb))]]),
        ("rare", vec![vec![Term::Contract(RARE)]]),
        ("in every block", vec![vec![Term::Sender(sender)]]),
        ("rare and in every block", vec![vec![Term::Sender(sender)], vec![Term::Contract(RARE)]]),
        (
            "none of 100 contracts",
            vec![(0..100).map(|at| Term::Contract(Address::repeat_byte(at))).collect()],
        ),
    ];
    for (name, groups) in searches {
        for (place, index) in [("stored", &*stored as &dyn BlockIndex), ("memory", &memory)] {
            let (short, few) = time(index, &groups, blocks - 1_000, blocks - 1);
            let (long, many) = time(index, &groups, 0, blocks - 1);
            println!(
                "{name}, {place}: {short:.1} us over 1,000 blocks ({few}), {long:.1} us over {blocks} ({many})"
            );
        }
    }
}
