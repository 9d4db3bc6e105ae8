//! Reads whose answers are known.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::TestClient;
use crate::chain::{BlockSummary, COUNTED, number};
use crate::tally::Bad;

/// Fields of a block that are compared with the chain's.
const FIELDS: [&str; 8] = [
    "hash",
    "parentHash",
    "timestamp",
    "stateRoot",
    "transactionsRoot",
    "receiptsRoot",
    "gasUsed",
    "transactions",
];
/// How far below the head most questions go.
const NEAR: u64 = 24;
/// Age of blocks in which front ends may differ while the store fails: 1.5 s, and more on a busy machine.
const MOMENT: Duration = Duration::from_secs(5);
/// Blocks of a question about logs.
const RANGE: u64 = 8;

/// Asks until the run is over.
pub(crate) async fn read(client: TestClient, seed: u64) {
    let (mut random, mut head) = (Rng::with_seed(seed), 0);
    while !client.conditions.is_over() {
        if let Some(now) = client.head().await {
            client.check_head(&mut head, now);
            let oldest = client.chain.oldest() + RANGE + 1;
            let depth = if random.u64(..4) == 0 { head } else { NEAR };
            let at = head.saturating_sub(random.u64(..depth.max(1))).max(oldest.min(head));
            match random.u64(..5) {
                0 => client.check_block(at).await,
                1 => client.check_balance(at).await,
                2 => client.check_call(at).await,
                3 => client.check_receipt(at).await,
                _ => client.check_logs(at).await,
            }
        }
        tokio::time::sleep(client.pause).await;
    }
}

impl TestClient {
    async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        self.balancer.ask(&self.key, method, params).await.ok()
    }

    pub(super) fn wrong(&self, what: &str) {
        self.balancer.tally.bad(Bad::Wrong, 1, what);
    }

    async fn head(&self) -> Option<u64> {
        self.ask("eth_blockNumber", json!([])).await.map(|answer| number(&answer))
    }

    /// A head never goes back, but for blocks of the last moments while the store fails.
    fn check_head(&self, head: &mut u64, now: u64) {
        let next = self.chain.canonical(now + 1);
        let is_young = next.is_none_or(|next| next.made.elapsed() < MOMENT);
        if now < *head && is_young && self.conditions.store_is_unsure() {
            self.balancer.tally.stepped_back();
        } else if now < *head {
            self.wrong(&format!("the head went from {head} back to {now}"));
        }
        *head = now;
    }

    /// Checks an answer against all blocks that were ever at this height: a reorganisation may come between.
    fn check(&self, what: &str, at: u64, answer: &Value, is_right: impl Fn(&BlockSummary) -> bool) {
        if !self.chain.all_at(at).iter().any(|record| is_right(record)) {
            self.wrong(&format!("{what} at block {at}: {answer}"));
        }
    }

    async fn check_block(&self, at: u64) {
        let params = json!([format!("{at:#x}"), false]);
        let Some(block) = self.ask("eth_getBlockByNumber", params).await else { return };
        self.check("block", at, &block, |record| block["hash"] == record.hash.as_str());
        // The chain forgets blocks that it reverts.
        let truth = self.chain.ask("eth_getBlockByHash", json!([block["hash"], false])).await;
        for field in FIELDS.iter().filter(|_| truth.is_object()) {
            if block[field] != truth[field] {
                self.wrong(&format!("{field} of block {at}: {} instead of {}", block[field], truth[field]));
            }
        }
    }

    async fn check_balance(&self, at: u64) {
        let params = json!([COUNTED, format!("{at:#x}")]);
        let Some(balance) = self.ask("eth_getBalance", params).await else { return };
        self.check("balance", at, &balance, |record| balance == record.balance.as_str());
    }

    async fn check_call(&self, at: u64) {
        let call = json!({"to": self.chain.contract, "data": "0x01"});
        let Some(count) = self.ask("eth_call", json!([call, format!("{at:#x}")])).await else { return };
        self.check("count", at, &count, |record| count == record.count.as_str());
    }

    async fn check_receipt(&self, at: u64) {
        let Some(record) = self.chain.canonical(at) else { return };
        let Some(hash) = record.transactions.first() else { return };
        let Some(receipt) = self.ask("eth_getTransactionReceipt", json!([hash])).await else { return };
        // Transactions of blocks that have left the chain have no receipt.
        let gone = self.chain.canonical(at).is_none_or(|now| now.hash != record.hash);
        let young = at + NEAR > self.chain.head().number;
        if receipt.is_null() {
            if !gone && !young {
                self.wrong(&format!("no receipt of {hash} in block {at}"));
            }
        } else if receipt["blockHash"] != record.hash.as_str() || receipt["status"] != "0x1" {
            let elsewhere = receipt["blockHash"].as_str().and_then(|hash| self.chain.block(hash));
            let is_there = elsewhere.is_some_and(|block| block.transactions.contains(hash));
            if !is_there {
                self.wrong(&format!("receipt of {hash} in block {at}: {receipt}"));
            }
        }
    }

    /// Logs of some blocks: all of one branch.
    async fn check_logs(&self, last: u64) {
        let first = last.saturating_sub(RANGE);
        let (from, to) = (format!("{first:#x}"), format!("{last:#x}"));
        let filter = json!([{"address": self.chain.contract, "fromBlock": from, "toBlock": to}]);
        let Some(logs) = self.ask("eth_getLogs", filter).await else { return };
        let found: Vec<(String, u64, String)> = logs.as_array().into_iter().flatten().map(place).collect();
        let is_right = self.chain.all_at(last).iter().any(|tip| self.logs_up_to(tip, first) == found);
        if !is_right {
            self.wrong(&format!("logs of blocks {first} to {last}: {found:?}"));
        }
    }

    /// The logs of a block and its ancestors down to a height.
    fn logs_up_to(&self, tip: &BlockSummary, first: u64) -> Vec<(String, u64, String)> {
        let mut blocks = vec![];
        let mut hash = tip.hash.clone();
        while let Some(record) = self.chain.block(&hash).filter(|record| record.number >= first) {
            hash.clone_from(&record.parent);
            blocks.push(record);
        }
        let of = |record: &BlockSummary| -> Vec<_> {
            record.logs.iter().map(|(at, data)| (record.hash.clone(), *at, data.clone())).collect()
        };
        blocks.iter().rev().flat_map(|record| of(record)).collect()
    }
}

fn place(log: &Value) -> (String, u64, String) {
    let text = |field: &str| log[field].as_str().unwrap_or_default().to_owned();
    (text("blockHash"), number(&log["logIndex"]), text("data"))
}
