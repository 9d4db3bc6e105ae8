//! Abuses of the server's memory.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::attack::{Attack, Words, words};
use crate::http::{
    TARGET, batch, call, call_of, connect, ended, from_elsewhere, post, post_compressed, result, socket,
    together,
};

/// How long clients send long messages.
const LONG: Duration = Duration::from_secs(8);

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let attack = Attack::of_development;
    vec![
        ("batches-read", attack(|address| Box::pin(batches_read(address)))),
        ("compressed", attack(|address| Box::pin(compressed(address)))),
        ("http-unread", attack(|address| Box::pin(http_unread(address)))),
        ("websocket-unread", attack(|address| Box::pin(websocket_unread(address)))),
        ("bodies", attack(|address| Box::pin(bodies(address)))),
        ("websocket-messages", attack(|address| Box::pin(messages(address)))),
        ("many-members", attack(|address| Box::pin(many_members(address)))),
        ("long-params", attack(|address| Box::pin(long_params(address)))),
        ("overrides", attack(|address| Box::pin(overrides(address)))),
        ("filters", attack(|address| Box::pin(filters(address)))),
        ("subscriptions", attack(|address| Box::pin(subscriptions(address)))),
        ("snapshots", attack(|address| Box::pin(snapshots(address)))),
    ]
}

/// A batch of fifty calls whose code returns 2 MiB each: 12 kB request answers of 216 MB.
fn large_batch() -> String {
    batch(|id| call_of(id, "0x622000006000f3"))
}

/// Eight clients send large batches and read their answers.
async fn batches_read(address: SocketAddr) -> Words {
    let longest = together(8, move |_| async move {
        let mut longest = 0;
        for _ in 0..4 {
            longest = post(address, &large_batch()).await.len().max(longest);
        }
        longest
    });
    let longest = longest.await.into_iter().max().unwrap_or(0);
    words((4 << 20..11 << 20).contains(&longest), format!("longest answer {} MiB", longest >> 20))
}

/// Eight clients request compressed answers to large batches.
async fn compressed(address: SocketAddr) -> Words {
    let longest = together(8, move |_| async move {
        let mut longest = 0;
        for _ in 0..4 {
            longest = post_compressed(address, &large_batch()).await.max(longest);
        }
        longest
    });
    let longest = longest.await.into_iter().max().unwrap_or(0);
    words((1_000..11 << 20).contains(&longest), format!("longest answer {longest} bytes"))
}

/// Forty connections request large answers and read none.
async fn http_unread(address: SocketAddr) -> Words {
    let body = large_batch();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..40 {
        let Ok(mut stream) = connect(address).await else { continue };
        if stream.write_all(request.as_bytes()).await.is_ok() {
            open.push(stream);
        }
    }
    tokio::time::sleep(Duration::from_secs(45)).await;
    let closed = ended(&open.iter().collect::<Vec<_>>()).await;
    // The server answers with an error where the budget has no room.
    words(open.len() == 40 && closed >= 30, format!("after 45 s {closed} of 40 connections ended"))
}

/// Ten WebSockets request large answers repeatedly and read none.
async fn websocket_unread(address: SocketAddr) -> Words {
    let (mut open, mut sent) = (Vec::new(), 0);
    for _ in 0..10 {
        let Some(mut socket) = socket(address).await else { continue };
        for _ in 0..16 {
            let sending = socket.send(Message::text(large_batch()));
            sent +=
                u32::from(matches!(tokio::time::timeout(Duration::from_secs(1), sending).await, Ok(Ok(()))));
        }
        open.push(socket);
    }
    tokio::time::sleep(Duration::from_secs(45)).await;
    let closed = ended(&open.iter().map(|socket| socket.get_ref()).collect::<Vec<_>>()).await;
    words(closed == 10, format!("{sent} batches sent, after 45 s {closed} of 10 WebSockets ended"))
}

/// Two hundred connections send all but the last byte of a body of 5 MiB.
async fn bodies(address: SocketAddr) -> Words {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 5242880\r\n\r\n"
    );
    let open = together(200, move |_| {
        let head = head.clone();
        async move {
            let mut stream = connect(address).await.ok()?;
            stream.write_all(head.as_bytes()).await.ok()?;
            let mut sent = 0_usize;
            let piece = vec![b'x'; 64 << 10];
            let sending = async {
                for _ in 0..79 {
                    stream.write_all(&piece).await?;
                    sent += piece.len();
                }
                std::io::Result::Ok(())
            };
            let _ = tokio::time::timeout(Duration::from_secs(10), sending).await;
            Some((stream, sent))
        }
    });
    let open: Vec<(TcpStream, usize)> = open.await.into_iter().flatten().collect();
    let sent: usize = open.iter().map(|(_, sent)| sent).sum();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // An honest client sends a whole body of 1 MiB meanwhile.
    let started = Instant::now();
    let honest = format!("{}{}", call(1, "eth_chainId", json!([])), " ".repeat(1 << 20));
    let good = from_elsewhere(address, &honest).await.contains("0x21");
    let waited = started.elapsed();
    let text =
        format!("{} MiB sent, 1 MiB of another address answered: {good}, after {waited:.1?}", sent >> 20);
    words(good && sent > 64 << 20, text)
}

/// Two hundred WebSockets send messages that are never completed.
async fn messages(address: SocketAddr) -> Words {
    let open = together(200, move |_| async move {
        let mut stream = socket(address).await?.into_inner();
        let mut sent = 0_usize;
        // A text frame that is not final, then continuation frames, each masked with zero.
        for opcode in [1_u8, 0, 0, 0] {
            let mut frame = vec![opcode, 0xff];
            frame.extend((1_u64 << 20).to_be_bytes());
            frame.extend([0; 4]);
            frame.resize(frame.len() + (1 << 20), b'x');
            let sending = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&frame)).await;
            if !matches!(sending, Ok(Ok(()))) {
                break;
            }
            sent += frame.len();
        }
        Some((stream, sent))
    });
    let open: Vec<(TcpStream, usize)> = open.await.into_iter().flatten().collect();
    let sent: usize = open.iter().map(|(_, sent)| sent).sum();
    tokio::time::sleep(Duration::from_secs(35)).await;
    let closed = ended(&open.iter().map(|(stream, _)| stream).collect::<Vec<_>>()).await;
    let text = format!("{} MiB sent, after 35 s {closed} of {} WebSockets ended", sent >> 20, open.len());
    words(sent > 16 << 20 && closed == open.len() && !open.is_empty(), text)
}

/// Sends messages in turn for a while; returns the number sent, and the number of answers that contain
/// `text`.
async fn ask_in_turn(address: SocketAddr, bodies: &[String], first: usize, text: &str) -> (u32, u32) {
    let started = Instant::now();
    let (mut sent, mut good) = (0, 0);
    for body in bodies.iter().cycle().skip(first) {
        if started.elapsed() > LONG {
            break;
        }
        sent += 1;
        good += u32::from(post(address, body).await.contains(text));
    }
    (sent, good)
}

/// Adds up the counts of all clients.
fn sum(counts: Vec<(u32, u32)>) -> (u32, u32) {
    counts.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Eight clients send calls and batches of 4 MiB that consist of lists of two-byte members.
async fn many_members(address: SocketAddr) -> Words {
    let many = "0,".repeat(2 << 20);
    let bodies = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{many}0]}}"#),
        format!("[{many}0]"),
        format!(r#"["eth_subscribe",{many}0]"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{{"topics":[{many}0]}}]}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{{"topics":[[{many}0]]}}]}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getProof","params":["{TARGET}",[{many}0],"latest"]}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"trace_filter","params":[{{"fromAddress":["",{many}0]}}]}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":[{many}0],"method":"eth_chainId","params":[]}}"#),
    ];
    let refused = together(8, move |client| {
        let bodies = bodies.clone();
        async move { ask_in_turn(address, &bodies, client, "\"error\"").await }
    });
    let (sent, refused) = sum(refused.await);
    words(refused == sent && sent >= 64, format!("{refused} of {sent} lists refused with an error"))
}

/// Eight clients send calls with 4 MiB of data, and transactions and hashes of that length.
async fn long_params(address: SocketAddr) -> Words {
    let data = format!("0x{}", "61".repeat(2 << 20));
    let objects = [
        ("eth_call", json!([{"to": TARGET, "data": data}, "latest"])),
        ("eth_estimateGas", json!([{"to": TARGET, "data": data}])),
        ("eth_sendRawTransaction", json!([data])),
        ("eth_getBlockByHash", json!([data, true])),
        ("web3_sha3", json!([data])),
        ("trace_filter", json!([{"fromBlock": data}])),
    ];
    let bodies = objects.map(|(method, params)| call(1, method, params).to_string());
    let answered = together(8, move |client| {
        let bodies = bodies.clone();
        async move { ask_in_turn(address, &bodies, client, "\"jsonrpc\"").await }
    });
    let (sent, answered) = sum(answered.await);
    words(answered == sent && sent >= 48, format!("{answered} of {sent} messages of 4 MiB answered"))
}

/// Eight clients send calls that override many storage cells, balances and codes: 1 MiB of each, the most
/// that the server accepts.
async fn overrides(address: SocketAddr) -> Words {
    let account = |number: usize| format!("0x{number:040x}");
    let cells: serde_json::Map<String, Value> =
        (1..7_000).map(|cell| (format!("0x{cell:064x}"), json!(format!("0x{cell:064x}")))).collect();
    let balances: serde_json::Map<String, Value> =
        (0x1000..0x1000 + 15_000).map(|number| (account(number), json!({"balance": "0x1"}))).collect();
    let code = format!("0x{}", "5b".repeat(12_000));
    let codes: serde_json::Map<String, Value> =
        (0x1000..0x1000 + 40).map(|number| (account(number), json!({"code": code}))).collect();
    let all = [json!({ (TARGET): {"state": cells} }), json!(balances), json!(codes)];
    let bodies = all.map(|overridden| {
        call(1, "eth_call", json!([{"to": TARGET, "data": "0x00"}, "latest", overridden])).to_string()
    });
    let answered = together(8, move |client| {
        let bodies = bodies.clone();
        async move { ask_in_turn(address, &bodies, client, "\"result\"").await }
    });
    let (sent, answered) = sum(answered.await);
    words(answered == sent && sent >= 24, format!("{answered} of {sent} calls with overrides answered"))
}

/// Parameters of a log filter with this many topics.
fn log_filter(topics: usize) -> Value {
    let topics: Vec<String> = (0..topics).map(|topic| format!("0x{topic:064x}")).collect();
    json!([{ "topics": [topics] }])
}

/// One address installs as many filters as possible; another address installs one.
async fn filters(address: SocketAddr) -> Words {
    let filter = call(1, "eth_newFilter", log_filter(3_000)).to_string();
    let batch = format!("[{}]", vec![filter; 20].join(","));
    let mut installed = 0;
    for _ in 0..210 {
        installed += post(address, &batch).await.matches("\"result\"").count();
    }
    let question = call(1, "eth_newBlockFilter", json!([])).to_string();
    let good = from_elsewhere(address, &question).await.contains("\"result\":\"0x");
    let text = format!("{installed} of 4,200 installed, one of another address: {good}");
    words(good && installed > 400, text)
}

/// Forty WebSockets make a hundred subscriptions each and do not read; then the chain grows.
async fn subscriptions(address: SocketAddr) -> Words {
    let mut open = Vec::new();
    let mut made = 0;
    for _ in 0..40 {
        let Some(mut socket) = socket(address).await else { continue };
        for kind in [json!(["newHeads"]), json!(["logs", {"topics": log_filter(200)[0]["topics"]}])] {
            let _ = socket.send(Message::text(batch(|id| call(id, "eth_subscribe", kind.clone())))).await;
            let answer = tokio::time::timeout(Duration::from_secs(20), socket.next()).await;
            if let Ok(Some(Ok(Message::Text(text)))) = answer {
                made += text.matches("\"result\"").count();
            }
        }
        open.push(socket);
    }
    let started = Instant::now();
    let mut blocks = 0;
    while started.elapsed() < Duration::from_secs(10) {
        result(address, "evm_mine", json!([])).await;
        blocks += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    words(made > 3_000, format!("{made} subscriptions made, then {blocks} blocks"))
}

/// Takes snapshots of a chain whose state changes between them.
async fn snapshots(address: SocketAddr) -> Words {
    let mut taken = 0;
    for round in 0..400_usize {
        let batch = batch(|id| match id % 3 {
            0 => call(id, "evm_snapshot", json!([])),
            1 => call(id, "evm_mine", json!([])),
            _ => {
                let cell = format!("0x{:064x}", round * 50 + id);
                call(id, "anvil_setStorageAt", json!([TARGET, cell, cell]))
            }
        });
        taken += post(address, &batch).await.matches("\"result\":\"0x").count();
    }
    words(taken > 1_000, format!("{taken} snapshots taken"))
}
