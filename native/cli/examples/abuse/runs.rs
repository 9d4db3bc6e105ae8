//! Abuses of the server's processors, and of the memory of runs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::attack::{Attack, Doing, Words, words};
use crate::http::{OWNER, TARGET, batch, call, call_of, post, result, socket, together};

/// How long clients send batches.
const LONG: Duration = Duration::from_secs(12);

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let attack = Attack::of_development;
    vec![
        ("reads", attack(|address| Box::pin(batches_of(address, balance)))),
        ("modexp", attack(|address| Box::pin(batches_of(address, modexp)))),
        ("bridge-reads", attack(|address| Box::pin(batches_of(address, bridge_read)))),
        ("bridge-loop", attack(|address| Box::pin(batches_of(address, bridge_loop)))),
        ("hash-loop", attack(|address| Box::pin(batches_of(address, |id| call_of(id, HASH_LOOP))))),
        ("blake2f", attack(|address| Box::pin(blake2f(address)))),
        ("large-logs", Attack { prepare: prepare_logs, ..attack(|address| Box::pin(logs(address, 8))) }),
        (
            "many-logs",
            Attack { prepare: prepare_many_logs, ..attack(|address| Box::pin(logs(address, 1_000))) },
        ),
        ("traces", Attack { prepare: prepare_traces, ..attack(|address| Box::pin(traces(address))) }),
    ]
}

/// Eight clients send batches of the same call for a while.
async fn batches_of(address: SocketAddr, one: fn(usize) -> Value) -> Words {
    let started = Instant::now();
    let answered = together(8, move |_| async move {
        let batch = batch(one);
        let mut answered = [0; 3];
        while started.elapsed() < LONG {
            let answer = post(address, &batch).await;
            for (count, text) in answered.iter_mut().zip(["\"jsonrpc\"", "\"result\"", "-32011"]) {
                *count += answer.matches(text).count();
            }
        }
        answered
    });
    let [answered, results, late] =
        answered.await.into_iter().fold([0; 3], |sum, one| [0, 1, 2].map(|at| sum[at] + one[at]));
    let text = format!("{answered} calls answered, {results} results, {late} refused for lack of time");
    words(answered >= 400 && results > 0 && results + late == answered, text)
}

/// A request for a balance, which is brief.
fn balance(id: usize) -> Value {
    call(id, "eth_getBalance", json!([TARGET, "latest"]))
}

/// A call of MODEXP, with the lengths and exponent that 10 million gas pay for.
fn modexp(id: usize) -> Value {
    let word = |number: usize| format!("{number:064x}");
    let operands = [1_024, 69, 1_024].map(|length| "ff".repeat(length)).concat();
    let data = format!("0x{}{}{}{operands}", word(1_024), word(69), word(1_024));
    let to = "0x0000000000000000000000000000000000000005";
    call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": data}, "latest"]))
}

/// A call of the Bridge's `getFederationAddress()`.
fn bridge_read(id: usize) -> Value {
    let to = "0x0000000000000000000000000000000001000006";
    call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": "0x6923fa85"}, "latest"]))
}

/// A call of code that calls the Bridge in a loop until less than 50,000 gas are left: for the redeem script
/// of its federation (`getActivePowpegRedeemScript()`) or its newest Bitcoin header
/// (`getBtcBlockchainBestBlockHeader()`). These methods take the most time for their gas.
fn bridge_loop(id: usize) -> Value {
    let selector = ["1d73d5dd", "f0b2424b"][id % 2];
    // Stores the selector in memory. Loop: STATICCALL of the Bridge with 200,000 gas, POP; repeat while GAS >
    // 50,000.
    let code = format!(
        "0x63{selector}60e01b6000525b60206000600460006301000006\
         62030d40fa506200c3505a11600b5700"
    );
    call_of(id, &code)
}

/// Code that hashes 1 MiB of memory in a loop until less than 250,000 gas are left.
const HASH_LOOP: &str = "0x5b62100000600020506203d0905a1160005700";

/// A batch of fifty calls with 9.9 million rounds of BLAKE2 each.
fn long_batch() -> String {
    let input = format!("0x{:08x}{}", 9_900_000, "00".repeat(209));
    let to = "0x0000000000000000000000000000000000000009";
    batch(|id| call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": input}, "latest"])))
}

/// One WebSocket sends eight batches of fifty long calls.
async fn blake2f(address: SocketAddr) -> Words {
    let Some(mut socket) = socket(address).await else { return words(false, "no socket".into()) };
    let started = Instant::now();
    for _ in 0..8 {
        let _ = socket.send(Message::text(long_batch())).await;
    }
    let (mut batches, mut late) = (0, 0);
    while let Ok(Some(Ok(message))) = tokio::time::timeout(Duration::from_secs(70), socket.next()).await {
        if let Message::Text(text) = message {
            batches += 1;
            late += text.matches("-32011").count();
        }
        if batches == 8 {
            break;
        }
    }
    let text = format!(
        "{batches} batches answered after {:.0?}, {late} calls refused for lack of time",
        started.elapsed()
    );
    words(batches == 8 && late > 0, text)
}

async fn deploy(address: SocketAddr, code: &str) -> String {
    let code = code.trim_start_matches("0x");
    // PUSH2 length, DUP1, PUSH1 offset, PUSH1 0, CODECOPY, PUSH1 0, RETURN.
    let init = format!("0x61{:04x}80600c6000396000f3{code}", code.len() / 2);
    let sent = json!([{"from": OWNER, "gas": "0x4c4b40", "data": init}]);
    let hash = result(address, "eth_sendTransaction", sent).await;
    let receipt = result(address, "eth_getTransactionReceipt", json!([hash])).await;
    receipt["contractAddress"].as_str().expect("an address").to_owned()
}

/// Sends this many transactions with this gas limit to a contract; returns the hash of the last one.
async fn run_often(address: SocketAddr, contract: &str, times: usize, gas: u64) -> Value {
    let mut last = Value::Null;
    for _ in 0..times {
        let sent = json!([{"from": OWNER, "to": contract, "gas": format!("{gas:#x}")}]);
        last = result(address, "eth_sendTransaction", sent).await;
    }
    last
}

/// Mines sixty blocks with 512 KiB of logs each.
fn prepare_logs(address: SocketAddr) -> Doing<()> {
    Box::pin(async move {
        // PUSH3 131,072, PUSH1 0, LOG0, four times.
        let contract = deploy(address, &"620200006000a0".repeat(4)).await;
        run_often(address, &contract, 60, 5_000_000).await;
    })
}

/// Mines twelve blocks with about 11,000 logs without data each.
fn prepare_many_logs(address: SocketAddr) -> Doing<()> {
    Box::pin(async move {
        // Loop: PUSH1 0, PUSH1 0, LOG0; repeat while GAS > 3,000.
        let contract = deploy(address, "5b60006000a0610bb85a1160005700").await;
        run_often(address, &contract, 12, 5_000_000).await;
    })
}

/// Eight clients request all logs repeatedly.
async fn logs(address: SocketAddr, least: usize) -> Words {
    let started = Instant::now();
    let head = result(address, "eth_getBlockByNumber", json!(["latest", true])).await;
    let hash = head["transactions"][0]["hash"].clone();
    let receipt = result(address, "eth_getTransactionReceipt", json!([hash])).await;
    let there = receipt["logs"].as_array().map_or(0, Vec::len);
    let answered = together(8, move |_| async move {
        let question = call(1, "eth_getLogs", json!([{"fromBlock": "0x0"}])).to_string();
        let mut answered = [0; 2];
        while started.elapsed() < LONG {
            let answer = post(address, &question).await;
            answered[0] += usize::from(answer.contains("\"jsonrpc\"") && answer.ends_with("\r\n0\r\n\r\n"));
            answered[1] = answered[1].max(answer.len());
        }
        answered
    });
    let [answered, longest] =
        answered.await.into_iter().fold([0; 2], |sum, one| [sum[0] + one[0], sum[1].max(one[1])]);
    let text = format!(
        "{there} logs in the last receipt, {answered} complete answers, the longest {} MiB",
        longest >> 20
    );
    words(there * 2 >= least && answered > 0 && longest > 16 << 20, text)
}

/// Sends a transaction with many instructions over 32 KiB of memory, and one with many instructions and
/// little memory.
fn prepare_traces(address: SocketAddr) -> Doing<()> {
    Box::pin(async move {
        for memory in ["617fe0", "6020"] {
            // PUSH 0, MSTORE at the end of memory. Loop: repeat while GAS > 3,000.
            let contract =
                deploy(address, &format!("6001{memory}525b610bb85a1160{:02x}5700", 2 + memory.len() / 2 + 1))
                    .await;
            run_often(address, &contract, 1, 4_000_000).await;
        }
    })
}

/// Eight clients request traces of the last blocks.
async fn traces(address: SocketAddr) -> Words {
    let started = Instant::now();
    let refused = together(8, move |client| async move {
        let head = result(address, "eth_blockNumber", json!([])).await;
        let head =
            u64::from_str_radix(head.as_str().unwrap_or_default().trim_start_matches("0x"), 16).unwrap_or(0);
        let block = format!("{:#x}", if client % 2 == 0 { head } else { head - 2 });
        let question = call(1, "debug_traceBlockByNumber", json!([block])).to_string();
        let mut refused = [0; 2];
        while started.elapsed() < LONG {
            let answer = post(address, &question).await;
            refused[0] += usize::from(answer.contains("\"jsonrpc\""));
            refused[1] += usize::from(answer.contains("\"error\""));
        }
        refused
    });
    let [answered, refused] =
        refused.await.into_iter().fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    words(refused > 0, format!("{answered} requests answered, {refused} of them refused"))
}
