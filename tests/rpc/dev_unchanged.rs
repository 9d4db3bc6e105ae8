//! A method that fails has changed nothing: each method that changes a development chain is made to fail at once and late.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rootlight::consensus::bitcoin::ServedBitcoin;
use rootlight::consensus::mining::BitcoinWork;
use rootlight::dev::{BitcoinBlocks, BitcoinTip, SimulatedBitcoin};
use rootlight::exec::{Interrupts, Watchdog};
use rootlight::rpc::methods;
use rootlight::types::B256;
use serde_json::{Value, json};

use crate::fixture::{ALICE, BOB, Fixture, NOBODY};

/// Codes of answers that tell a transaction's state: it stays in the pool.
const TELL: [i64; 2] = [4, 5];

/// A Bitcoin chain that is the number of its blocks, and that at the begin of a change.
#[derive(Debug, Default)]
struct Counted(Mutex<(u64, Option<u64>)>);

impl ServedBitcoin for Counted {
    fn served_headers(&self, _: u32, _: u32) -> String {
        String::new()
    }

    fn served_coinbases(&self, _: u32, _: u32) -> String {
        String::new()
    }
}

impl SimulatedBitcoin for Counted {
    fn next(&self, commitment: &B256, time: u64) -> BitcoinWork {
        BitcoinWork::new(commitment, time as u32)
    }

    fn add_merge_mined(&self, _: &BitcoinWork) {
        self.0.lock().unwrap().0 += 1;
    }

    fn begin(&self, _: bool) {
        let mut chain = self.0.lock().unwrap();
        assert_eq!(chain.1, None, "changes are not nested");
        chain.1 = Some(chain.0);
    }

    fn end(&self, stays: bool) {
        let mut chain = self.0.lock().unwrap();
        let before = chain.1.take().unwrap();
        if !stays {
            chain.0 = before;
        }
    }

    fn mine(&self, blocks: &BitcoinBlocks) -> Result<BitcoinTip, String> {
        self.0.lock().unwrap().0 += blocks.commitments.len() as u64;
        Ok(BitcoinTip { height: 0, hash: B256::ZERO })
    }
}

/// Allows a number of blocks, or none during a shutdown.
struct Blocks(AtomicU64, bool);

impl Watchdog for Blocks {
    fn next_block(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn is_due(&self) -> bool {
        self.1
    }

    fn is_stopping(&self) -> bool {
        self.1
    }
}

#[derive(Debug, Clone, Copy)]
enum Condition {
    Usual,
    /// The time of a message is over after so many blocks.
    BlocksLeft(u64),
    Stopping,
    /// A fixed interval of 2^61 seconds: the chain's time ends after some blocks.
    TimeEnds,
}

const LATE: [Condition; 5] = [
    Condition::BlocksLeft(0),
    Condition::BlocksLeft(1),
    Condition::BlocksLeft(3),
    Condition::Stopping,
    Condition::TimeEnds,
];

struct Tested {
    fixture: Fixture,
    bitcoin: Arc<Counted>,
    refused: usize,
}

impl Tested {
    /// A chain in which these methods were called.
    fn after(calls: &[(&str, Value)]) -> Self {
        let (mut fixture, bitcoin) = (Fixture::new(), Arc::new(Counted::default()));
        fixture.dev.chain().set_bitcoin(bitcoin.clone());
        fixture.dev.get("evm_mine", json!([{"blocks": 3}]));
        for (method, params) in calls {
            fixture.dev.get(method, params.clone());
        }
        // A transaction that can be mined, and one that waits for another.
        for nonce in ["0x0", "0x2"] {
            fixture.dev.get("eth_sendTransaction", json!([{"from": BOB, "to": ALICE, "nonce": nonce}]));
        }
        Self { fixture, bitcoin, refused: 0 }
    }

    /// All that methods change, as text.
    fn state(&mut self) -> String {
        let dev = &mut self.fixture.dev;
        dev.client.node().interrupt_by(Interrupts::default());
        // The first answer differs from later ones, which miners need not begin anew.
        dev.ask("mnr_getWork", json!([]));
        let work = dev.ask("mnr_getWork", json!([]));
        let chain = dev.chain();
        let saved: Vec<_> = chain.saved().map(|(id, head)| (id, head.hash())).collect();
        let (head, root) = (chain.view().head().hash(), chain.view().head_state().root());
        let pool = (chain.pool().pending(), chain.pool().queued());
        let bitcoin = self.bitcoin.0.lock().unwrap();
        format!(
            "{:#?}",
            (head, root, chain.settings(), chain.mining(), saved, pool, chain.wallet(), work, bitcoin.0)
        )
    }

    /// Calls a method under a condition. Checks that a failed call changed nothing, and puts the former chain back.
    fn call(&mut self, method: &str, params: &Value, condition: Condition) {
        let mut before = self.state();
        let kept = self.fixture.dev.client.node().copy();
        if let Condition::TimeEnds = condition {
            self.fixture.dev.get("anvil_setBlockTimestampInterval", json!([1_u64 << 61]));
            before = self.state();
        }
        let watchdog = match condition {
            Condition::BlocksLeft(blocks) => Some(Blocks(blocks.into(), false)),
            Condition::Stopping => Some(Blocks(u64::MAX.into(), true)),
            _ => None,
        };
        if let Some(watchdog) = watchdog {
            self.fixture.dev.client.node().interrupt_by(Interrupts::by(Arc::new(watchdog)));
        }
        let answer = self.fixture.ask(method, params);
        if let Some(code) = answer["error"]["code"].as_i64().filter(|code| !TELL.contains(code)) {
            self.refused += 1;
            let after = self.state();
            let changed = before.lines().zip(after.lines()).find(|(before, after)| before != after);
            assert_eq!(
                changed, None,
                "{method} {params} {condition:?}: {code} {}",
                answer["error"]["message"]
            );
            assert_eq!(before.len(), after.len());
        }
        self.fixture.dev.client.replace_node(kept);
    }
}

/// Parameters that mine several blocks, or that fail after a part of them was used.
fn further(method: &str) -> Vec<Value> {
    match method {
        "evm_mine" | "evm_mine_detailed" => vec![
            json!([{"blocks": "0x5"}]),
            json!([{"timestamp": 2_000_000_000, "blocks": 5}]),
            json!([{"timestamp": 2_000_000_000, "blocks": 20_000}]),
        ],
        "anvil_mine" | "hardhat_mine" => {
            vec![json!(["0x5"]), json!([5, "0x1"]), json!(["0x5", 1_u64 << 61]), json!([20_000])]
        }
        "anvil_reorg" => {
            let transfer = |from: &str| json!({"from": from, "to": ALICE, "value": "0x1"});
            vec![
                json!([3, []]),
                json!([3, [[transfer(BOB), 0], [transfer(NOBODY), 2]]]),
                json!([2, [[transfer(BOB), 1], ["0x01", 1]]]),
                json!([100, []]),
            ]
        }
        "evm_setAutomine" => vec![json!([true])],
        _ => vec![],
    }
}

/// The same parameters with another value in each place.
fn damaged(params: &Value) -> Vec<Value> {
    let others = || {
        let long = format!("0x{}", "f".repeat(64));
        [
            json!(null),
            json!(true),
            json!("0x"),
            json!("zz"),
            json!(-1),
            json!({}),
            json!([]),
            json!(u64::MAX),
            json!(long),
        ]
    };
    let inner: Vec<(String, Value)> = match params {
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (at.to_string(), item.clone())).collect()
        }
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), member.clone())).collect()
        }
        _ => return others().to_vec(),
    };
    let mut all = others().to_vec();
    for (place, value) in inner {
        for other in damaged(&value) {
            let mut changed = params.clone();
            match changed.pointer_mut(&format!("/{place}")) {
                Some(at) => *at = other,
                None => unreachable!("{place} is in {params}"),
            }
            all.push(changed);
        }
    }
    all
}

#[test]
fn a_method_that_fails_changes_nothing() {
    let instant = ("evm_setAutomine", json!([true]));
    let paused = ("evm_stopMining", json!([]));
    for calls in [vec![], vec![instant.clone()], vec![instant, paused]] {
        let mut tested = Tested::after(&calls);
        for method in methods().filter(|method| method.writes()) {
            let kept = tested.fixture.dev.client.node().copy();
            let usual = tested.fixture.arguments(method.name);
            let further = further(method.name);
            for params in further.iter().chain([&usual]) {
                LATE.into_iter().for_each(|condition| tested.call(method.name, params, condition));
            }
            for params in further.iter().chain(&damaged(&usual)) {
                tested.call(method.name, params, Condition::Usual);
            }
            tested.fixture.dev.client.replace_node(kept);
        }
        assert!(tested.refused > 500, "{}", tested.refused);
    }
}
