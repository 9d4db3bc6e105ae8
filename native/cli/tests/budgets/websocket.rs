//! WebSocket upstreams whose long messages wait for free bytes of the budget of upstream responses, or do not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use rootlight::light::UpstreamRequest;
use rootlight_limits::Limits;
use rootlight_upstream::{HttpConfig, Upstream, UpstreamError, WsUpstream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::largest::{another_upstream_is_read, freed, taken};

/// Upstreams that are asked at the same time.
const UPSTREAMS: usize = 8;

/// Length of the message that each of them sends, in bytes. Its reservation is [`COPIES`] times as long, so that the budget of
/// upstream responses has bytes for three at the same time.
const BYTES: usize = 10 << 20;

/// The memory of a message while it is decoded, in its length (`source_quota.rs` of `rootlight-upstream`).
const COPIES: usize = 2;

/// Bytes that an upstream can send although nothing is read from it: the buffers of sockets take them.
const UNREAD: usize = 2 << 20;

/// Sends a message after the first call, without its last bytes. Counts the bytes that were taken from it.
async fn speak(stream: TcpStream, missing: usize, sent: Arc<AtomicUsize>) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    // The subscription comes first.
    for _ in 0..2 {
        socket.next().await?.ok()?;
    }
    let stream = socket.get_mut();
    let head = [&[0x81, 127][..], &(BYTES as u64).to_be_bytes()].concat();
    stream.write_all(&head).await.ok()?;
    let piece = [b' '; 16 * 1024];
    let mut left = BYTES - missing;
    while left > 0 {
        let count = stream.write(&piece[..left.min(piece.len())]).await.ok()?;
        sent.fetch_add(count, Ordering::SeqCst);
        left -= count;
    }
    while socket.next().await?.is_ok() {}
    None
}

/// Upstreams that send messages without their last bytes, and the number of bytes that were taken from all of them.
async fn upstreams(limits: &Arc<Limits>, missing: usize) -> (Vec<WsUpstream>, Arc<AtomicUsize>) {
    let sent = Arc::<AtomicUsize>::default();
    let mut upstreams = Vec::new();
    for _ in 0..UPSTREAMS {
        let listener = TcpSocket::new_v4().unwrap();
        listener.set_send_buffer_size(64 * 1024).unwrap();
        listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listener.listen(8).unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let count = sent.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(speak(stream, missing, count.clone()));
            }
        });
        let config = HttpConfig { timeout: Duration::from_secs(600), ..super::within(limits) };
        upstreams.push(WsUpstream::new(&url, config).unwrap());
    }
    (upstreams, sent)
}

fn call() -> Vec<UpstreamRequest> {
    vec![UpstreamRequest::new("eth_call", "[]".into())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_over_websocket_are_not_read_while_there_is_no_room_for_them() {
    let _alone = super::UPSTREAMS.lock().await;
    let limits = Limits::new();
    let spent = limits.upstreams().try_take(limits.upstreams().size()).expect("all is free");
    let (upstreams, sent) = upstreams(&limits, 0).await;
    let results = join_all(upstreams.iter().map(|upstream| upstream.request(call()))).await;
    for result in results.into_iter().flatten() {
        assert_eq!(result.unwrap_err(), UpstreamError::BudgetUsedUp);
    }
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent <= UPSTREAMS * UNREAD, "{sent} bytes were read");
    drop((upstreams, spent));
    freed("unread messages", &limits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_over_websocket_that_do_not_end_take_room_and_keep_no_other_upstream_waiting() {
    let _alone = super::UPSTREAMS.lock().await;
    let limits = Limits::new();
    let (upstreams, _) = upstreams(&limits, 1).await;
    let asking = upstreams.into_iter().map(|upstream| async move { upstream.request(call()).await });
    let asking: Vec<_> = asking.map(tokio::spawn).collect();
    // The messages of these upstreams leave too little of the budget for the response of another upstream. The reading of one of
    // them has to end for that response (`CONTENDED` in `source_quota.rs`).
    taken(&limits, 3 * COPIES * BYTES).await;
    another_upstream_is_read(&limits).await;
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    drop(asking);
    freed("unfinished messages", &limits).await;
}
