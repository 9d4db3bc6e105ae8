//! Transactions that are sent and whose receipts are awaited.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::TestClient;
use crate::chain::number;

/// Time after which a transaction without a receipt is sent again: a reorganisation may have removed it.
const AGAIN: Duration = Duration::from_secs(5);
/// Time after which a transaction without a receipt has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// Sends transactions of one account until the run is over; returns how many had receipts.
pub(crate) async fn send(client: TestClient, account: String) -> u64 {
    let mut mined = 0;
    while !client.conditions.is_over() {
        mined += u64::from(client.send_one(&account).await);
        tokio::time::sleep(client.pause).await;
    }
    mined
}

impl TestClient {
    /// Sends a transaction and waits for its receipt.
    async fn send_one(&self, account: &str) -> bool {
        let Some(nonce) = self.nonce(account).await else { return false };
        let transaction = json!([{"from": account, "to": account, "value": "0x1", "gas": "0x5208",
            "gasPrice": "0x3938700", "nonce": nonce}]);
        // The keys are the chain's.
        let raw = self.chain.ask("eth_signTransaction", transaction).await;
        let (started, mut sent, mut hash) = (Instant::now(), None::<Instant>, Value::Null);
        while started.elapsed() < PATIENCE && !self.conditions.is_over() {
            if sent.is_none_or(|sent| sent.elapsed() > AGAIN) {
                let now = self.nonce(account).await;
                if now.is_some_and(|now| number(&now) < number(&nonce)) {
                    // A reorganisation has removed the transaction before, and the chain does not keep such ones.
                    return false;
                }
                match self.submit(&raw).await {
                    Submitted::Is(known) => hash = known,
                    Submitted::Refused if hash.is_null() => return false,
                    Submitted::Refused => {}
                }
                sent = Some(Instant::now());
            }
            let asked = self.balancer.ask(&self.key, "eth_getTransactionReceipt", json!([hash])).await;
            match asked {
                Ok(receipt) if receipt.is_object() => return self.check_sent(account, &hash, &receipt),
                _ => tokio::time::sleep(self.pause).await,
            }
        }
        if !self.conditions.is_over() {
            self.wrong(&format!("no receipt of {hash} of {account} in {PATIENCE:?}"));
        }
        false
    }

    async fn nonce(&self, account: &str) -> Option<Value> {
        let params = json!([account, "latest"]);
        self.balancer.ask(&self.key, "eth_getTransactionCount", params).await.ok()
    }

    fn check_sent(&self, account: &str, hash: &Value, receipt: &Value) -> bool {
        let block = receipt["blockHash"].as_str().and_then(|hash| self.chain.block(hash));
        let is_there = block.is_some_and(|block| {
            block.number == number(&receipt["blockNumber"])
                && block.transactions.iter().any(|known| *hash == known.as_str())
        });
        if !is_there || receipt["from"] != account || receipt["status"] != "0x1" {
            self.wrong(&format!("receipt of {hash}: {receipt}"));
        }
        is_there
    }

    /// Sends a signed transaction. One whose answer was lost may be there already.
    async fn submit(&self, raw: &Value) -> Submitted {
        match self.balancer.ask(&self.key, "eth_sendRawTransaction", json!([raw])).await {
            Ok(hash) => Submitted::Is(hash),
            Err(_) => Submitted::Refused,
        }
    }
}

/// What became of a signed transaction.
enum Submitted {
    /// The transaction was accepted and has this hash.
    Is(Value),
    /// The transaction was refused, because it is in the pool or in a block already.
    Refused,
}
