//! The chain behind both backends, and what it says: the answers that clients compare theirs with.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rootlight::dev::Mining;
use rootlight_node::local::{LocalOptions, LocalService};
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, RwLock};

use crate::common;

/// The account that mines and sends the chain's own transactions.
const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// An account that receives one unit in each block.
pub(crate) const COUNTED: &str = "0x00000000000000000000000000000000c0047ed0";
/// Deploys a contract that counts calls without data, and emits a log with the count; a call with data returns the count.
const COUNTER: &str =
    "0x6025600c60003960256000f33660195760005460010180600055600052600760206000a1005b60005460005260206000f3";

/// Blocks whose answers are kept.
const KEPT: u64 = 2_048;
/// Blocks that a reorganisation removes, and those that replace them.
pub(crate) const REMOVED: u64 = 3;
const ADDED: u64 = 5;
/// Blocks of a branch that a forked backend shows, and those of the chain meanwhile.
const FORKED: u64 = 2;
const GREW: u64 = 4;
/// Blocks below the head that no reorganisation of these tests removes.
pub(crate) const FINAL: u64 = 12;

#[derive(Debug)]
pub(crate) struct BlockSummary {
    pub(crate) number: u64,
    pub(crate) hash: String,
    pub(crate) parent: String,
    /// Balance of [`COUNTED`] and count of the contract after the block.
    pub(crate) balance: String,
    pub(crate) count: String,
    /// The places and the data of the contract's logs.
    pub(crate) logs: Vec<(u64, String)>,
    pub(crate) transactions: Vec<String>,
    pub(crate) made: Instant,
}

#[derive(Default)]
struct Records {
    by_hash: HashMap<String, Arc<BlockSummary>>,
    by_number: BTreeMap<u64, Vec<Arc<BlockSummary>>>,
    canonical: BTreeMap<u64, Arc<BlockSummary>>,
}

/// A branch beside the chain: the answers about its blocks, by method and parameters.
pub(crate) struct SideBranch {
    pub(crate) head: u64,
    pub(crate) first: u64,
    pub(crate) answers: HashMap<String, Value>,
}

pub(crate) struct ServiceChain {
    pub(crate) service: Arc<LocalService>,
    pub(crate) contract: String,
    pub(crate) genesis: String,
    /// Accounts with money that clients may use.
    pub(crate) accounts: Vec<String>,
    records: Mutex<Records>,
    /// Held while blocks are made.
    making: AsyncMutex<()>,
    /// Backends read; held alone while the chain is in a state that no backend may see.
    pub(crate) gate: RwLock<()>,
    blocks: AtomicU64,
}

/// Reads a quantity.
pub(crate) fn number(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).expect("a quantity")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The key of an answer of a [`SideBranch`].
pub(crate) fn answer_key(method: &str, params: &Value) -> String {
    format!("{method} {params}")
}

impl ServiceChain {
    pub(crate) async fn start() -> Arc<Self> {
        let service = common::dev_chain(Mining::Manual, LocalOptions::default());
        let of = async |method, params| common::ask(&*service, method, params).await["result"].clone();
        let deploy = json!([{"from": ALICE, "data": COUNTER, "gas": "0x30d40"}]);
        let hash = of("eth_sendTransaction", deploy).await;
        of("evm_mine", json!([])).await;
        let receipt = of("eth_getTransactionReceipt", json!([hash])).await;
        let accounts =
            of("eth_accounts", json!([])).await.as_array().unwrap()[1..].iter().map(text).collect();
        let genesis = text(&of("eth_getBlockByNumber", json!(["0x0", false])).await["hash"]);
        let chain = Arc::new(Self {
            contract: text(&receipt["contractAddress"]),
            genesis,
            accounts,
            service,
            records: Mutex::default(),
            making: AsyncMutex::default(),
            gate: RwLock::default(),
            blocks: AtomicU64::new(0),
        });
        for _ in 0..FINAL + 4 {
            chain.mine().await;
        }
        chain
    }

    /// What the chain says.
    ///
    /// # Errors
    /// The error that it answers.
    pub(crate) async fn try_ask(&self, method: &str, params: Value) -> Result<Value, Value> {
        common::outcome(&*self.service, method, params).await
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        self.try_ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub(crate) async fn mine(&self) {
        let _making = self.making.lock().await;
        self.mine_alone().await;
    }

    /// Mines a block that no backend shows before it is recorded here.
    async fn mine_alone(&self) {
        let _alone = self.gate.write().await;
        self.mine_one().await;
    }

    async fn mine_one(&self) {
        let calls = 1 + self.blocks.fetch_add(1, Ordering::Relaxed) % 3;
        for _ in 0..calls {
            let call = json!([{"from": ALICE, "to": self.contract, "gas": "0x186a0"}]);
            self.ask("eth_sendTransaction", call).await;
        }
        let pay = json!([{"from": ALICE, "to": COUNTED, "value": "0x1", "gas": "0x5208"}]);
        self.ask("eth_sendTransaction", pay).await;
        self.ask("evm_mine", json!([])).await;
        let record = self.record_of_head().await;
        let mut records = self.records.lock().unwrap();
        records.add(Arc::new(record));
    }

    async fn record_of_head(&self) -> BlockSummary {
        let block = self.ask("eth_getBlockByNumber", json!(["latest", false])).await;
        let at = &block["number"];
        let logs = json!([{"blockHash": block["hash"], "address": self.contract}]);
        let logs = self.ask("eth_getLogs", logs).await;
        let call = json!([{"to": self.contract, "data": "0x01"}, at]);
        BlockSummary {
            number: number(at),
            hash: text(&block["hash"]),
            parent: text(&block["parentHash"]),
            balance: text(&self.ask("eth_getBalance", json!([COUNTED, at])).await),
            count: text(&self.ask("eth_call", call).await),
            logs: logs
                .as_array()
                .unwrap()
                .iter()
                .map(|log| (number(&log["logIndex"]), text(&log["data"])))
                .collect(),
            transactions: block["transactions"].as_array().unwrap().iter().map(text).collect(),
            made: Instant::now(),
        }
    }

    /// The newest block.
    pub(crate) fn head(&self) -> Arc<BlockSummary> {
        let records = self.records.lock().unwrap();
        records.canonical.last_key_value().expect("it has blocks").1.clone()
    }

    pub(crate) fn block(&self, hash: &str) -> Option<Arc<BlockSummary>> {
        self.records.lock().unwrap().by_hash.get(hash).cloned()
    }

    /// The block of this height on the chain.
    pub(crate) fn canonical(&self, number: u64) -> Option<Arc<BlockSummary>> {
        self.records.lock().unwrap().canonical.get(&number).cloned()
    }

    /// All blocks that are or were on the chain at this height.
    pub(crate) fn all_at(&self, number: u64) -> Vec<Arc<BlockSummary>> {
        self.records.lock().unwrap().by_number.get(&number).cloned().unwrap_or_default()
    }

    /// The oldest block of which answers are kept.
    pub(crate) fn oldest(&self) -> u64 {
        *self.records.lock().unwrap().canonical.first_key_value().expect("it has blocks").0
    }

    /// Replaces the newest blocks by more others, after clients have seen them.
    pub(crate) async fn reorganise(&self, pause: Duration) {
        let _making = self.making.lock().await;
        let before = self.ask("evm_snapshot", json!([])).await;
        for _ in 0..REMOVED {
            self.mine_alone().await;
            tokio::time::sleep(pause).await;
        }
        let _alone = self.gate.write().await;
        let old = self.head();
        self.revert(&before).await;
        // Blocks with the same transactions and times would be the same blocks.
        self.blocks.fetch_add(1, Ordering::Relaxed);
        for _ in 0..ADDED {
            self.mine_one().await;
        }
        let new = self.canonical(old.number).expect("the new branch is longer");
        assert_ne!(new.hash, old.hash);
    }

    async fn revert(&self, snapshot: &Value) {
        assert_eq!(self.ask("evm_revert", json!([snapshot])).await, true);
        let head = number(&self.ask("eth_blockNumber", json!([])).await);
        self.records.lock().unwrap().canonical.split_off(&(head + 1));
    }

    /// Makes a branch that the chain has left behind.
    pub(crate) async fn fork(&self) -> SideBranch {
        let _making = self.making.lock().await;
        let _alone = self.gate.write().await;
        let before = self.ask("evm_snapshot", json!([])).await;
        let mut branch = SideBranch { head: 0, first: self.head().number + 1, answers: HashMap::new() };
        for _ in 0..FORKED {
            self.ask("evm_mine", json!([])).await;
            self.describe(&mut branch).await;
        }
        self.revert(&before).await;
        for _ in 0..GREW {
            self.mine_one().await;
        }
        branch
    }

    async fn describe(&self, branch: &mut SideBranch) {
        let block = self.ask("eth_getBlockByNumber", json!(["latest", false])).await;
        for (name, place) in [("Number", &block["number"]), ("Hash", &block["hash"])] {
            for full in [true, false] {
                let (method, params) = (format!("eth_getBlockBy{name}"), json!([place, full]));
                let answer = self.ask(&method, params.clone()).await;
                branch.answers.insert(answer_key(&method, &params), answer);
            }
            let (method, params) = (format!("rsk_getRawBlockHeaderBy{name}"), json!([place]));
            let answer = self.ask(&method, params.clone()).await;
            branch.answers.insert(answer_key(&method, &params), answer);
        }
        branch.head = number(&block["number"]);
    }
}

impl Records {
    fn add(&mut self, record: Arc<BlockSummary>) {
        let number = record.number;
        self.by_hash.insert(record.hash.clone(), record.clone());
        self.by_number.entry(number).or_default().push(record.clone());
        self.canonical.insert(number, record);
        let lowest = number.saturating_sub(KEPT);
        while let Some(entry) = self.by_number.first_entry().filter(|entry| *entry.key() < lowest) {
            for old in entry.remove() {
                self.by_hash.remove(&old.hash);
            }
        }
        self.canonical = self.canonical.split_off(&lowest);
    }
}
