//! Tests of transactions that are answered with their receipts.

use serde_json::{Value, json};

use super::disk_test::{get, node, request, send};
use super::*;

/// A service that mines on demand, and a transaction of its first account.
async fn on_demand() -> (LocalService, Value) {
    let entropy = Entropy::from_system().unwrap();
    let service = LocalService::new(Box::new(node(None)), LocalOptions::default(), entropy, None);
    get(&service, "evm_setAutomine", json!([false])).await;
    let from = get(&service, "eth_accounts", json!([])).await[0].clone();
    (service, json!({ "from": from, "to": from, "value": "0x5" }))
}

#[tokio::test]
async fn a_receipt_comes_with_the_block_of_the_transaction() {
    let (service, transaction) = on_demand().await;
    let sends = request("eth_sendTransactionSync", json!([transaction, "0x7530"]));
    let mines = async {
        while get(&service, "txpool_status", json!([])).await["pending"] != json!(1) {
            tokio::task::yield_now().await;
        }
        get(&service, "evm_mine", json!([])).await;
    };
    let (answer, ()) = tokio::join!(send(&service, sends), mines);
    assert_eq!((&answer["id"], &answer["result"]["blockNumber"]), (&json!(1), &json!("0x1")), "{answer}");
    let receipt =
        get(&service, "eth_getTransactionReceipt", json!([answer["result"]["transactionHash"]])).await;
    assert_eq!(answer["result"], receipt);
}

#[tokio::test]
async fn after_the_time_the_error_has_the_hash_of_a_transaction_that_waits() {
    let (service, transaction) = on_demand().await;
    let answer = send(&service, request("eth_sendTransactionSync", json!([transaction, 1]))).await;
    assert_eq!(answer["error"]["code"], json!(4), "{answer}");
    let hash = &answer["error"]["data"];
    assert_eq!(&get(&service, "eth_getTransactionByHash", json!([hash])).await["hash"], hash);
    // A gap in the nonces ends at once, whatever the time.
    let late = json!([{ "from": transaction["from"], "to": NOBODY, "nonce": "0x9" }, 30_000]);
    let answer = send(&service, request("eth_sendTransactionSync", late)).await;
    assert_eq!(answer["error"]["code"], json!(5), "{answer}");
}

const NOBODY: &str = "0x00000000000000000000000000000000000abcde";
