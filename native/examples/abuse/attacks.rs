//! The abuses of a server by its clients.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{json, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::target::{post, Target};

/// What an abuse came to.
pub(crate) struct Words {
    pub(crate) text: String,
    pub(crate) good: bool,
}

type Attack = for<'a> fn(&'a Target) -> Pin<Box<dyn Future<Output = Words> + Send + 'a>>;

pub(crate) const ALL: [(&str, Attack); 15] = [
    ("batches-read", |target| Box::pin(batches_read(target))),
    ("http-unread", |target| Box::pin(http_unread(target))),
    ("websocket-unread", |target| Box::pin(websocket_unread(target))),
    ("bodies", |target| Box::pin(bodies(target))),
    ("websocket-messages", |target| Box::pin(messages(target))),
    ("many-members", |target| Box::pin(many_members(target))),
    ("reads", |target| Box::pin(reads(target))),
    ("modexp", |target| Box::pin(modexp(target))),
    ("bridge-reads", |target| Box::pin(bridge_reads(target))),
    ("filters", |target| Box::pin(filters(target))),
    ("blake2f", |target| Box::pin(blake2f(target))),
    ("idle-sockets", |target| Box::pin(idle_sockets(target))),
    ("slow-head", |target| Box::pin(slow_head(target))),
    ("endless-body", |target| Box::pin(endless_body(target))),
    ("pages", |target| Box::pin(pages(target))),
];

fn words(good: bool, text: String) -> Words {
    Words { text, good }
}

fn call(id: usize, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

const TARGET: &str = "0x00000000000000000000000000000000000000aa";

/// Fifty calls whose overridden code returns 2 MiB each: 12 kB that ask for 216 MB.
fn large_batch() -> String {
    let large = |id| {
        let overridden = json!({ (TARGET): {"code": "0x622000006000f3"} });
        call(id, "eth_call", json!([{"to": TARGET, "gas": "0x989680"}, "latest", overridden]))
    };
    Value::from((0..50).map(large).collect::<Vec<_>>()).to_string()
}

/// Fifty calls of 9.9 million rounds of BLAKE2 each.
fn long_batch() -> String {
    let input = format!("0x{:08x}{}", 9_900_000, "00".repeat(209));
    let long = |id| {
        let to = "0x0000000000000000000000000000000000000009";
        call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": input}, "latest"]))
    };
    Value::from((0..50).map(long).collect::<Vec<_>>()).to_string()
}

async fn socket(address: SocketAddr) -> Option<tokio_tungstenite::WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.ok()?;
    let mut config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default();
    (config.max_message_size, config.max_frame_size) = (None, None);
    let url = format!("ws://{address}/");
    tokio_tungstenite::client_async_with_config(url, stream, Some(config))
        .await
        .ok()
        .map(|(socket, _)| socket)
}

/// Eight clients send large batches and take their answers.
async fn batches_read(target: &Target) -> Words {
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let address = target.address;
        tasks.push(tokio::spawn(async move {
            let mut longest = 0;
            for _ in 0..2 {
                longest = post(address, None, &large_batch()).await.len().max(longest);
            }
            longest
        }));
    }
    let mut longest = 0;
    for task in tasks {
        longest = task.await.unwrap_or(0).max(longest);
    }
    words(longest <= 11 << 20, format!("longest answer {} MiB", longest >> 20))
}

/// Eight clients send calls and batches of 4 MiB, which are lists of two-byte members.
async fn many_members(target: &Target) -> Words {
    let many = "0,".repeat(2 << 20);
    let bodies = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{many}0]}}"#),
        format!("[{many}0]"),
        format!(r#"["eth_subscribe",{many}0]"#),
    ];
    let mut tasks = Vec::new();
    for client in 0..8 {
        let (address, bodies) = (target.address, bodies.clone());
        tasks.push(tokio::spawn(async move {
            let mut refused = 0;
            for turn in 0..6 {
                let answer = post(address, None, &bodies[(client + turn) % bodies.len()]).await;
                refused += u32::from(answer.contains("\"error\""));
            }
            refused
        }));
    }
    let mut refused = 0;
    for task in tasks {
        refused += task.await.unwrap_or(0);
    }
    words(refused > 0, format!("{refused} of 48 lists refused with an error"))
}

/// Eight clients send twenty batches of the same call each.
async fn batches_of(target: &Target, one: fn(usize) -> Value) -> Words {
    let batch = Value::from((0..50).map(one).collect::<Vec<_>>()).to_string();
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (address, batch) = (target.address, batch.clone());
        tasks.push(tokio::spawn(async move {
            let mut answered = 0;
            for _ in 0..20 {
                answered += u32::from(post(address, None, &batch).await.contains("200 OK"));
            }
            answered
        }));
    }
    let mut answered = 0;
    for task in tasks {
        answered += task.await.unwrap_or(0);
    }
    words(answered > 0, format!("{answered} of 160 batches of 50 answered in {:.1?}", started.elapsed()))
}

/// Balances, which are brief.
async fn reads(target: &Target) -> Words {
    batches_of(target, |id| call(id, "eth_getBalance", json!([TARGET, "latest"]))).await
}

/// Powers modulo a number, of the length and exponent that 10 million gas pay for.
async fn modexp(target: &Target) -> Words {
    batches_of(target, |id| {
        let word = |number: usize| format!("{number:064x}");
        let operands = [1_024, 69, 1_024].map(|length| "ff".repeat(length)).concat();
        let data = format!("0x{}{}{}{operands}", word(1_024), word(69), word(1_024));
        let to = "0x0000000000000000000000000000000000000005";
        call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": data}, "latest"]))
    })
    .await
}

/// What the Bridge says of its federation.
async fn bridge_reads(target: &Target) -> Words {
    batches_of(target, |id| {
        let to = "0x0000000000000000000000000000000001000006";
        // getFederationAddress().
        call(id, "eth_call", json!([{"to": to, "gas": "0x989680", "data": "0x6923fa85"}, "latest"]))
    })
    .await
}

/// Forty connections ask for large answers and take none.
async fn http_unread(target: &Target) -> Words {
    let body = large_batch();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        target.address,
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..40 {
        let Ok(mut stream) = TcpStream::connect(target.address).await else { continue };
        let _ = stream.write_all(request.as_bytes()).await;
        open.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(50)).await;
    let mut closed = 0;
    for stream in &open {
        closed += u32::from(is_closed(stream).await);
    }
    words(closed > 0, format!("after 50 s {closed} of 40 connections were closed"))
}

/// Whether a connection whose answers were not read was given up: then writing fails.
async fn is_closed(stream: &TcpStream) -> bool {
    for _ in 0..3 {
        if stream.try_write(b"x").is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// Ten WebSockets ask for large answers over and over and take none.
async fn websocket_unread(target: &Target) -> Words {
    let mut open = Vec::new();
    for _ in 0..10 {
        let Some(mut socket) = socket(target.address).await else { continue };
        for _ in 0..16 {
            let _ =
                tokio::time::timeout(Duration::from_secs(1), socket.send(Message::text(large_batch()))).await;
        }
        open.push(socket);
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    words(true, format!("{} WebSockets", open.len()))
}

/// Two hundred connections send all but the last byte of a body of 5 MiB.
async fn bodies(target: &Target) -> Words {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 5242880\r\n\r\n",
        target.address
    );
    let mut tasks = Vec::new();
    for _ in 0..200 {
        let (head, address) = (head.clone(), target.address);
        tasks.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.ok()?;
            stream.write_all(head.as_bytes()).await.ok()?;
            let piece = vec![b'x'; 64 << 10];
            let sent = async {
                for _ in 0..79 {
                    stream.write_all(&piece).await?;
                }
                std::io::Result::Ok(())
            };
            let _ = tokio::time::timeout(Duration::from_secs(10), sent).await;
            Some(stream)
        }));
    }
    let mut open = Vec::new();
    for task in tasks {
        open.extend(task.await.ok().flatten());
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Somebody who sends a whole body of 1 MiB meanwhile.
    let started = Instant::now();
    let honest = format!("{}{}", call(1, "eth_chainId", json!([])), " ".repeat(1 << 20));
    let good = from_elsewhere(target.address, &honest).await.contains("0x21");
    words(good, format!("1 MiB of another address: {good} after {:.1?}", started.elapsed()))
}

/// Two hundred WebSockets send messages that never become whole.
async fn messages(target: &Target) -> Words {
    let mut tasks = Vec::new();
    for _ in 0..200 {
        let address = target.address;
        tasks.push(tokio::spawn(async move {
            let mut stream = socket(address).await?.into_inner();
            // Text, not final; then continuations, each masked with zero.
            for opcode in [1_u8, 0, 0, 0] {
                let mut frame = vec![opcode, 0xff];
                frame.extend((1_u64 << 20).to_be_bytes());
                frame.extend([0; 4]);
                frame.resize(frame.len() + (1 << 20), b'x');
                let sent = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&frame)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    break;
                }
            }
            Some(stream)
        }));
    }
    let mut open = Vec::new();
    for task in tasks {
        open.extend(task.await.ok().flatten());
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    words(true, format!("{} WebSockets", open.len()))
}

/// One address installs as many filters as there may be; another wants one.
async fn filters(target: &Target) -> Words {
    let topics: Vec<String> = (0..3_000).map(|topic| format!("0x{topic:064x}")).collect();
    let filter = call(1, "eth_newFilter", json!([{ "topics": [topics] }])).to_string();
    let batch = format!("[{}]", vec![filter; 20].join(","));
    for _ in 0..210 {
        post(target.address, None, &batch).await;
    }
    let question = call(1, "eth_newBlockFilter", json!([])).to_string();
    let answer = from_elsewhere(target.address, &question).await;
    let good = answer.contains("\"result\":\"0x");
    words(good, format!("a filter of another address: {}", if good { "installed" } else { "refused" }))
}

/// As [`post`] from another loopback address.
async fn from_elsewhere(address: SocketAddr, body: &str) -> String {
    let connect = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind("127.0.0.2:0".parse().map_err(std::io::Error::other)?)?;
        socket.connect(address).await
    };
    let Ok(mut stream) = connect.await else { return String::new() };
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// One WebSocket sends eight batches of fifty long calls; somebody else wants one short call run.
async fn blake2f(target: &Target) -> Words {
    let Some(mut socket) = socket(target.address).await else { return words(false, "no socket".into()) };
    for _ in 0..8 {
        let _ = socket.send(Message::text(long_batch())).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut waits = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let short = call(1, "eth_call", json!([{"to": TARGET}, "latest"])).to_string();
        let answer = tokio::time::timeout(Duration::from_secs(60), post(target.address, None, &short)).await;
        waits.push((started.elapsed(), answer.is_ok_and(|answer| answer.contains("\"result\""))));
    }
    let started = Instant::now();
    let mut answers = 0;
    while let Ok(Some(Ok(_))) = tokio::time::timeout(Duration::from_secs(70), socket.next()).await {
        answers += 1;
        if answers == 8 {
            break;
        }
    }
    let longest = waits.iter().map(|(wait, _)| *wait).max().unwrap_or_default();
    let good = longest < Duration::from_secs(5) && waits.iter().all(|(_, answered)| *answered);
    let text = format!(
        "a short eth_call waited {longest:.1?}, {answers} batches answered in {:.0?}",
        started.elapsed()
    );
    words(good, text)
}

/// All places are taken by sockets that say nothing.
async fn idle_sockets(target: &Target) -> Words {
    let mut open = Vec::new();
    for _ in 0..4_200 {
        match tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(target.address)).await {
            Ok(Ok(stream)) => open.push(stream),
            _ => break,
        }
    }
    let started = Instant::now();
    let question = call(1, "eth_chainId", json!([])).to_string();
    let answer = tokio::time::timeout(Duration::from_secs(20), post(target.address, None, &question)).await;
    let good = answer.is_ok_and(|answer| answer.contains("0x21"));
    words(good, format!("{} sockets; a newcomer: {good} after {:.1?}", open.len(), started.elapsed()))
}

/// A head that comes a byte at a time.
async fn slow_head(target: &Target) -> Words {
    let Ok(mut stream) = TcpStream::connect(target.address).await else {
        return words(false, "refused".into());
    };
    let started = Instant::now();
    let _ = stream.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nX: ").await;
    while started.elapsed() < Duration::from_secs(35) {
        let mut byte = [0];
        let cut = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut byte)).await;
        if cut.is_ok() || stream.write_all(b"x").await.is_err() {
            return words(true, format!("cut after {:.0?}", started.elapsed()));
        }
    }
    words(false, "still open after 35 s".into())
}

/// A chunked body without end, and one announced as 10 GB.
async fn endless_body(target: &Target) -> Words {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let Ok(mut stream) = TcpStream::connect(target.address).await else {
        return words(false, "refused".into());
    };
    let _ = stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await;
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let mut taken = 0;
    while taken < 128 << 20 && stream.write_all(&chunk).await.is_ok() {
        taken += 0x10000;
    }
    let Ok(mut stream) = TcpStream::connect(target.address).await else {
        return words(false, "refused".into());
    };
    let _ = stream.write_all(format!("{head}Content-Length: 10000000000\r\n\r\n").as_bytes()).await;
    let mut answer = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await;
    let answered = matches!(read, Ok(Ok(_))) && answer.ends_with(b"413");
    let text = format!("{} MiB of an endless body taken; 10 GB announced: 413 {answered}", taken >> 20);
    words(answered && taken < 32 << 20, text)
}

/// What a page from elsewhere gets for the asking.
async fn pages(target: &Target) -> Words {
    let account = json!(["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"]);
    let question = call(1, "personal_dumpRawKey", account).to_string();
    let answer = post(target.address, Some("https://evil.example"), &question).await;
    let leaked = answer.contains("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    words(!leaked, format!("a foreign page {} the key", if leaked { "gets" } else { "does not get" }))
}
