//! Every kind of response of an HTTP and of a WebSocket source at its largest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use futures::{SinkExt as _, StreamExt as _};
use rootlight::light::UpstreamRequest;
use rootlight_limits::Limits;
use rootlight_limits::budget::Reservation;
use rootlight_upstream::{HttpConfig, HttpUpstream, Upstream, UpstreamError, UpstreamResult, WsUpstream};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::watch::BudgetWatch;

/// Length of a response just below the limit, in bytes.
const LONG: usize = (12 << 20) - 4096;

/// Bytes that the honest source's response may hold meanwhile: a body is read in steps of 128 KiB, for which it takes twice the
/// room.
const OF_HONEST: usize = 2 * 128 * 1024;

/// Calls of one batch, and calls at the same time after it.
const CALLS: usize = 8;
const SINGLE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseStyle {
    Text,
    /// A text of escapes, which is shorter once decoded.
    Escapes,
    Numbers,
    /// Lists within each other.
    Nested,
    /// An object with many members.
    Members,
    /// An error with a long text and long data.
    Error,
    /// A short result among long members that no response has.
    Beside,
    /// The response, and many that were not asked for.
    Unasked,
    /// A short response after much white space.
    Blank,
    /// No JSON.
    Garbage,
    /// A text that never ends.
    Endless,
}

const KINDS: [ResponseStyle; 11] = [
    ResponseStyle::Text,
    ResponseStyle::Escapes,
    ResponseStyle::Numbers,
    ResponseStyle::Nested,
    ResponseStyle::Members,
    ResponseStyle::Error,
    ResponseStyle::Beside,
    ResponseStyle::Unasked,
    ResponseStyle::Blank,
    ResponseStyle::Garbage,
    ResponseStyle::Endless,
];

impl ResponseStyle {
    /// The response to a call or to a batch, with nearly [`LONG`] bytes.
    fn response(self, message: &Value) -> String {
        let ids: Vec<&Value> = match message {
            Value::Array(calls) => calls.iter().map(|call| &call["id"]).collect(),
            call => vec![&call["id"]],
        };
        // One buffer, so that the source takes little of the memory that is watched.
        let mut out = String::with_capacity(LONG + 4096);
        match self {
            Self::Garbage => return fill(out, "7x", LONG),
            Self::Endless => return fill(out + "\"", "7", 2 * LONG),
            Self::Blank => out = fill(out, " ", LONG - 200 * ids.len()),
            _ => {}
        }
        let is_list = message.is_array() || self == Self::Unasked;
        out.push_str(if is_list { "[" } else { "" });
        if self == Self::Unasked {
            out = fill(out, r#"{"jsonrpc":"2.0","id":99999999,"result":0},"#, LONG - 200 * ids.len());
        }
        let each = LONG / ids.len() - 200;
        for (place, id) in ids.iter().enumerate() {
            out.push_str(if place > 0 { "," } else { "" });
            out.push_str(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#));
            out = self.member(out, each);
            out.push('}');
        }
        out.push_str(if is_list { "]" } else { "" });
        out
    }

    /// Appends the result or the error of one call.
    fn member(self, mut out: String, each: usize) -> String {
        let (before, piece, after) = match self {
            Self::Text => (r#""result":""#, "7", "\""),
            Self::Escapes => (r#""result":""#, "\\u0041", "\""),
            Self::Numbers => (r#""result":["#, "0,", "0]"),
            Self::Members => (r#""result":{"#, r#""a":0,"#, r#""a":0}"#),
            Self::Beside => (r#""other":["#, "0,", r#"0],"result":"0x1""#),
            Self::Error => {
                out = fill(out + r#""error":{"code":-32000,"message":""#, "7", each / 2);
                (r#"","data":""#, "7", "\"}")
            }
            Self::Nested => {
                let half = fill(out + r#""result":"#, "[", each / 2);
                return fill(half, "]", each / 2);
            }
            Self::Unasked | Self::Blank | Self::Garbage | Self::Endless => return out + r#""result":"0x1""#,
        };
        let bytes = if self == Self::Error { each / 2 } else { each };
        fill(out + before, piece, bytes) + after
    }
}

/// Appends a piece as often as it fits into these bytes.
fn fill(mut out: String, piece: &str, bytes: usize) -> String {
    (0..bytes / piece.len().max(1)).for_each(|_| out.push_str(piece));
    out
}

/// A source that answers in this way, over HTTP or over WebSocket.
struct LargeSource {
    url: String,
    answered: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for LargeSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LargeSource {
    async fn start(kind: ResponseStyle, is_websocket: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if is_websocket { "ws" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let answered = Arc::<AtomicUsize>::default();
        let count = answered.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = count.clone();
                tokio::spawn(async move {
                    match is_websocket {
                        true => speak(stream, kind, &count).await,
                        false => serve(stream, kind, &count).await,
                    }
                });
            }
        });
        Self { url, answered, task }
    }

    fn upstream(&self, limits: &Arc<Limits>) -> Box<dyn Upstream> {
        let config = HttpConfig { attempts: 1, ..super::within(limits) };
        match self.url.starts_with("ws") {
            true => Box::new(WsUpstream::new(&self.url, config).unwrap()),
            false => Box::new(HttpUpstream::new(&self.url, config).unwrap()),
        }
    }
}

/// Makes a response apart from the threads whose waiting time is watched.
async fn made(kind: ResponseStyle, message: Value) -> Option<String> {
    tokio::task::spawn_blocking(move || kind.response(&message)).await.ok()
}

async fn serve(mut stream: TcpStream, kind: ResponseStyle, answered: &AtomicUsize) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let body = loop {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
            read.extend_from_slice(&piece[..count]);
            let head = read.windows(4).position(|end| end == b"\r\n\r\n");
            let body = head.and_then(|end| serde_json::from_slice::<Value>(&read[end + 4..]).ok());
            if let Some(body) = body {
                break body;
            }
        };
        read.clear();
        answered.fetch_add(1, Ordering::SeqCst);
        let response = made(kind, body).await?;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
        stream.write_all(format!("{head}{}\r\n\r\n", response.len()).as_bytes()).await.ok()?;
        stream.write_all(response.as_bytes()).await.ok()?;
    }
}

async fn speak(stream: TcpStream, kind: ResponseStyle, answered: &AtomicUsize) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let message: Value = serde_json::from_str(&text).ok()?;
        answered.fetch_add(1, Ordering::SeqCst);
        socket.send(Message::text(made(kind, message).await?)).await.ok()?;
    }
    None
}

fn call(number: usize) -> UpstreamRequest {
    UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",true]"#))
}

/// The errors of calls. Their results are dropped before their room is.
fn outcomes_of((results, reserved): (Vec<UpstreamResult>, Reservation)) -> Vec<Option<UpstreamError>> {
    let outcomes = results.into_iter().map(Result::err).collect();
    drop(reserved);
    outcomes
}

/// Asks a source of this kind, in one batch and by single calls at the same time, while another client asks an honest one.
async fn asked(kind: ResponseStyle, is_websocket: bool) -> Vec<UpstreamError> {
    let what = format!("{kind:?} over {}", if is_websocket { "WebSocket" } else { "HTTP" });
    let _alone = super::UPSTREAMS.lock().await;
    let (honest, limits) = (super::start(super::config()).await, Limits::new());
    let honest = HttpUpstream::new(&honest.url("/"), super::within(&limits)).unwrap();
    let source = LargeSource::start(kind, is_websocket).await;
    let upstream = source.upstream(&limits);
    let watch = BudgetWatch::start(&limits);
    let long = async {
        let batch = upstream.request_reserved((0..CALLS).map(call).collect()).await;
        let mut outcomes = outcomes_of(batch);
        let single = (0..SINGLE).map(|number| upstream.request_reserved(vec![call(number)]));
        outcomes.extend(join_all(single.map(|asked| async { outcomes_of(asked.await) })).await.concat());
        outcomes
    };
    let others = async {
        loop {
            let own = honest.request(vec![UpstreamRequest::new("own", "[]".into())]).await;
            assert!(own[0].is_ok(), "{what}: another client's call failed: {:?}", own[0]);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let results = tokio::select! {
        results = long => results,
        () = others => unreachable!(),
    };
    assert!(source.answered.load(Ordering::SeqCst) > 0, "{what}: the source was asked");
    assert_eq!(results.len(), CALLS + SINGLE, "{what}");
    let errors: Vec<UpstreamError> = results.into_iter().flatten().collect();
    println!("{what}: {} errors, first {:.200?}", errors.len(), errors.first());
    watch.check(&what, OF_HONEST);
    let read = !(is_websocket
        && matches!(kind, ResponseStyle::Garbage | ResponseStyle::Endless | ResponseStyle::Unasked));
    assert!(!read || watch.most() >= LONG, "{what}: {} bytes took room", watch.most());
    drop(upstream);
    for _ in 0..200 {
        if limits.upstreams().taken() == 0 {
            return errors;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: {} bytes are held for ever", limits.upstreams().taken());
}

/// Errors say which limit was reached and have no long text of the source.
fn check(kind: ResponseStyle, errors: &[UpstreamError]) {
    assert!(errors.iter().all(|error| error.to_string().len() < 10_000), "{kind:?}");
    let fails = matches!(kind, ResponseStyle::Garbage | ResponseStyle::Endless | ResponseStyle::Error);
    assert!(!fails || errors.len() == CALLS + SINGLE, "{kind:?}: {errors:.300?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_over_http_at_its_largest_is_within_the_budget() {
    for kind in KINDS {
        check(kind, &asked(kind, false).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_over_websocket_at_its_largest_is_within_the_budget() {
    for kind in KINDS {
        check(kind, &asked(kind, true).await);
    }
}
