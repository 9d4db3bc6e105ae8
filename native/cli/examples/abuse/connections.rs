//! Abuses with connections, and by web pages.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::attack::{Attack, Words, words};
use crate::http::{OWNER, call, connect, post, post_as};

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let attack = Attack::of_development;
    vec![
        ("idle-sockets", attack(|address| Box::pin(idle_sockets(address)))),
        ("slow-head", attack(|address| Box::pin(slow_head(address)))),
        ("endless-body", attack(|address| Box::pin(endless_body(address)))),
        ("pages", attack(|address| Box::pin(pages(address)))),
    ]
}

/// Silent sockets take all places.
async fn idle_sockets(address: SocketAddr) -> Words {
    let mut open = Vec::new();
    for _ in 0..4_200 {
        match tokio::time::timeout(Duration::from_millis(500), connect(address)).await {
            Ok(Ok(stream)) => open.push(stream),
            _ => break,
        }
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let started = Instant::now();
    let question = call(1, "eth_chainId", json!([])).to_string();
    let answer = tokio::time::timeout(Duration::from_secs(20), post(address, &question)).await;
    let good = answer.is_ok_and(|answer| answer.contains("0x21"));
    let text = format!(
        "{} sockets opened, a newcomer answered: {good}, after {:.1?}",
        open.len(),
        started.elapsed()
    );
    words(good && open.len() >= 4_097, text)
}

/// A hundred request heads that arrive one byte at a time.
async fn slow_head(address: SocketAddr) -> Words {
    let times = crate::http::together(100, move |_| async move {
        let mut stream = connect(address).await.ok()?;
        let started = Instant::now();
        let _ = stream.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nX: ").await;
        while started.elapsed() < Duration::from_secs(35) {
            let mut byte = [0];
            let cut = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut byte)).await;
            if cut.is_ok() || stream.write_all(b"x").await.is_err() {
                return Some(started.elapsed());
            }
        }
        None
    });
    let times = times.await;
    let cut = times.iter().flatten().count();
    let longest = times.iter().flatten().max().copied().unwrap_or_default();
    words(cut == 100, format!("{cut} of 100 cut, the last after {longest:.0?}"))
}

/// Endless chunked bodies, and bodies announced as 10 GB.
async fn endless_body(address: SocketAddr) -> Words {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let started = Instant::now();
    let (mut most, mut refusals, mut rounds) = (0, 0, 0);
    while started.elapsed() < Duration::from_secs(6) {
        rounds += 1;
        let Ok(mut stream) = connect(address).await else { continue };
        let _ = stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await;
        let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
        let mut taken = 0;
        while taken < 128 << 20 && stream.write_all(&chunk).await.is_ok() {
            taken += 0x10000;
        }
        most = taken.max(most);
        let Ok(mut stream) = connect(address).await else { continue };
        let _ = stream.write_all(format!("{head}Content-Length: 10000000000\r\n\r\n").as_bytes()).await;
        let mut answer = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await;
        refusals += u32::from(matches!(read, Ok(Ok(_))) && answer.ends_with(b"413"));
    }
    let text = format!(
        "{rounds} times; {} MiB of an endless body taken at most; 10 GB announced: 413 {refusals} times",
        most >> 20
    );
    words(refusals == rounds && most < 32 << 20, text)
}

/// A foreign page requests a private key.
async fn pages(address: SocketAddr) -> Words {
    let started = Instant::now();
    let question = call(1, "personal_dumpRawKey", json!([OWNER])).to_string();
    let (mut asked, mut leaked, mut refused) = (0, 0, 0);
    while started.elapsed() < Duration::from_secs(5) {
        let answer = post_as(address, "https://evil.example", &question).await;
        asked += 1;
        leaked +=
            u32::from(answer.contains("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"));
        refused += u32::from(answer.contains("4100"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let text = format!(
        "a foreign page asked {asked} times, was refused {refused} times, got the key {leaked} times"
    );
    words(leaked == 0 && refused == asked, text)
}
