//! Abuses with refusals, pings and answers that clients do not read, with and without API keys.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use rootlight_server::keys::{KeyChange, KeyDatabase};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::attack::{Attack, Words, words};
use crate::http::{batch, call_of, connect, ended, socket_at, together};

/// The number of clients, each with one connection.
const CLIENTS: usize = 60;

/// Longer than the write time limit of the server.
const LONG: Duration = Duration::from_secs(45);

/// The path with the key of the attackers, which allows one request a second.
static PATH: Mutex<String> = Mutex::new(String::new());

/// The folder of the database of keys, until the process ends.
static FOLDER: Mutex<Option<tempfile::TempDir>> = Mutex::new(None);

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let plain = Attack::of_development;
    let keyed = |attack| Attack { server: || Box::pin(std::future::ready(with_keys())), ..plain(attack) };
    vec![
        ("refusals", plain(|address| Box::pin(over_http(address)))),
        ("refusals-websocket", plain(|address| Box::pin(over_websocket(address)))),
        ("refusals-keys", keyed(|address| Box::pin(over_http(address)))),
        ("refusals-keys-ws", keyed(|address| Box::pin(over_websocket(address)))),
        ("pings-unread", plain(|address| Box::pin(pings(address)))),
        ("answers-read", plain(|address| Box::pin(answers(address)))),
    ]
}

/// Makes a key for the attackers; returns the arguments of a server that needs it from other addresses.
fn with_keys() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys.redb");
    let database = KeyDatabase::open(&file).expect("a database");
    let limited = KeyChange { per_second: Some(1), ..KeyChange::default() };
    let (key, _) = database.create(&limited).expect("a key");
    *PATH.lock().unwrap_or_else(PoisonError::into_inner) = key.reveal();
    *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    format!("dev --anonymous --api-keys {}", file.display())
}

fn path() -> String {
    format!("/{}", PATH.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A message of nearly the longest length, which consists of its id, and one with the longest id that is repeated.
fn messages() -> [String; 2] {
    [(5 << 20) - 100, 1_000].map(|bytes| format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(bytes)))
}

/// Sends requests that are refused, as many as the server takes, and reads no response.
async fn over_http(address: SocketAddr) -> Words {
    let path = path();
    let open = together(CLIENTS, move |client| {
        let [long, short] = messages();
        let request = |body: &str| {
            format!(
                "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let (long, short) = (request(&long), request(&short).repeat(64));
        async move {
            let mut stream = connect(address).await.ok()?;
            let endless = async {
                for _ in 0..4 {
                    stream.write_all(long.as_bytes()).await?;
                }
                if client % 2 == 1 {
                    return std::io::Result::Ok(());
                }
                loop {
                    stream.write_all(short.as_bytes()).await?;
                }
            };
            let _ = tokio::time::timeout(LONG, endless).await;
            Some(stream)
        }
    });
    let open: Vec<_> = open.await.into_iter().flatten().collect();
    let closed = ended(&open.iter().collect::<Vec<_>>()).await;
    // Every second client sends without end, until the server closes its connection.
    let text = format!("after 45 s {closed} of {} connections ended", open.len());
    words(open.len() == CLIENTS && closed >= CLIENTS / 2, text)
}

/// As [`over_http`], over WebSocket.
async fn over_websocket(address: SocketAddr) -> Words {
    let [_, short] = messages();
    unread(address, path(), Message::text(short)).await
}

/// Sends pings, as many as the server takes, and reads no pong.
async fn pings(address: SocketAddr) -> Words {
    unread(address, "/".into(), Message::Ping(vec![7; 125].into())).await
}

/// Sends a message over WebSocket, as often as the server takes it, and reads nothing. A WebSocket that the server ends is
/// opened again.
async fn unread(address: SocketAddr, path: String, message: Message) -> Words {
    let until = Instant::now() + LONG;
    let ended = together(CLIENTS, move |_| {
        let (path, message) = (path.clone(), message.clone());
        async move {
            let mut ended = 0;
            while Instant::now() < until {
                let Some(mut socket) = socket_at(address, &path).await else { continue };
                let endless = async { while socket.send(message.clone()).await.is_ok() {} };
                ended += usize::from(tokio::time::timeout_at(until, endless).await.is_ok());
            }
            ended
        }
    });
    let ended: Vec<usize> = ended.await;
    let text = format!("{} WebSockets of {CLIENTS} clients ended in 45 s", ended.iter().sum::<usize>());
    words(ended.iter().all(|ended| *ended > 0), text)
}

/// Reads one long answer on each of many WebSockets, which then stay open.
async fn answers(address: SocketAddr) -> Words {
    let large = batch(|id| call_of(id, "0x622000006000f3"));
    let (mut open, mut longest) = (Vec::new(), 0);
    for _ in 0..CLIENTS {
        let Some(mut socket) = socket_at(address, "/").await else { continue };
        let _ = socket.send(Message::text(large.clone())).await;
        if let Ok(Some(Ok(Message::Text(text)))) =
            tokio::time::timeout(Duration::from_secs(30), socket.next()).await
        {
            longest = text.len().max(longest);
        }
        open.push(socket);
    }
    let text = format!("{} WebSockets, longest answer {} MiB", open.len(), longest >> 20);
    words(open.len() == CLIENTS && longest > 4 << 20, text)
}
