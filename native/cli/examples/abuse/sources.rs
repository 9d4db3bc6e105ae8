//! Abuses of a light client by a peer that answers at its largest, and by an upstream that sends what was not asked for.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use rootlight::types::Header;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::attack::{Attack, Doing, UPSTREAM, Words, words};
use crate::http::{call, post, together};
use crate::peer::{BlockResponses, FakePeer, header, root, transactions};
use crate::watch;

/// Headers of the peer.
const HEADERS: u64 = 64;

/// How long clients ask for the blocks of the peer, and how long the upstream sends what was not asked for.
const LONG: Duration = Duration::from_secs(15);

/// Whether the attack has begun.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Messages that were sent unasked, and connections of the client.
static SENT: AtomicUsize = AtomicUsize::new(0);
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let of = |server: fn() -> Doing<String>, attack: fn(SocketAddr) -> Doing<Words>| Attack {
        server,
        question: watch::CHAIN_ID,
        priority: &UPSTREAM,
        ..Attack::of_development(attack)
    };
    vec![
        ("peer-bodies", of(|| Box::pin(peer(16_000, 1, 6_800_000)), |a| Box::pin(ask_blocks(a)))),
        ("peer-blocks", of(|| Box::pin(peer(300, 5_000, 6_800_000)), |a| Box::pin(ask_blocks(a)))),
        ("peer-gas", of(|| Box::pin(peer(60_000, 1, u64::MAX)), |a| Box::pin(ask_blocks(a)))),
        ("upstream-unasked", of(|| Box::pin(unasked()), |_| Box::pin(send_unasked()))),
    ]
}

/// Headers whose bodies have these transactions.
fn given(count: usize, data: usize, gas_limit: u64) -> BlockResponses {
    let body = transactions(count, data);
    let root = root(&body);
    let of = |number| Header { timestamp: number, ..header(100, root, gas_limit, 40) };
    BlockResponses { headers: (0..HEADERS).map(of).collect(), body }
}

/// The hashes that clients ask for.
static HASHES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();

async fn peer(count: usize, data: usize, gas_limit: u64) -> String {
    let given = given(count, data, gas_limit);
    let hashes = given.headers.iter().map(|header| header.clone().seal().hash().to_string()).collect();
    HASHES.get_or_init(|| hashes);
    let peer = FakePeer::start(9_000_000, given);
    format!("light --network mainnet --peer {}", peer.address)
}

fn block(id: usize) -> Value {
    let hashes = HASHES.get().expect("hashes");
    call(id, "eth_getBlockByHash", json!([hashes[id % hashes.len()], true]))
}

/// Lets many clients ask for blocks.
async fn ask_blocks(address: SocketAddr) -> Words {
    let started = Instant::now();
    let answered = together(40, move |client| async move {
        let mut count = 0;
        while started.elapsed() < LONG {
            let answer = post(address, &block(count * 40 + client).to_string()).await;
            count += usize::from(answer.contains("\"error\"") || answer.contains("\"result\""));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        count
    });
    let answers: usize = answered.await.iter().sum();
    words(answers > 0, format!("{answers} answers about blocks of a peer"))
}

/// Starts an upstream that answers nothing and tells of blocks as fast as it can.
async fn unasked() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tell(stream));
        }
    });
    format!("light --network mainnet --upstream ws://{address}/")
}

async fn tell(stream: TcpStream) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    CONNECTIONS.fetch_add(1, Ordering::SeqCst);
    socket.send(Message::text(r#"{"jsonrpc":"2.0","id":0,"result":"0x1"}"#)).await.ok()?;
    let head = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{}}}"#;
    loop {
        if !BEGUN.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        socket.feed(Message::text(head)).await.ok()?;
        if SENT.fetch_add(1, Ordering::SeqCst).is_multiple_of(64) {
            socket.flush().await.ok()?;
            // The requests of the client are read, so that the client does not wait.
            let _ = tokio::time::timeout(Duration::from_micros(100), socket.next()).await;
        }
    }
}

async fn send_unasked() -> Words {
    BEGUN.store(true, Ordering::SeqCst);
    let before = CONNECTIONS.load(Ordering::SeqCst);
    tokio::time::sleep(LONG).await;
    let (sent, connections) = (SENT.load(Ordering::SeqCst), CONNECTIONS.load(Ordering::SeqCst));
    let text =
        format!("{sent} messages that were not asked for, {} further connections", connections - before);
    words(sent > 6_000 && connections - before < 20, text)
}
