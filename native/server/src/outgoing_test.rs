//! Every response counts until it is sent, whichever path, method and input it answers.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use axum::http::{Method, Request};
use futures::future::BoxFuture;
use rootlight::rpc::{Message, Reply};
use serde_json::value::to_raw_value;

use super::*;
use crate::bans::{AddressRange, HostBans};
use crate::keys::{KeyChange, KeyDatabase};
use crate::server_state::ServerState;
use crate::service::{Caller, Counts, ReservedReply, Service};
use crate::{
    AdmissionRules, KeyAccess, Operations, Origins, Page, PageFile, Server, ServerConfig, ServerLimits, http,
};

/// Longer than the unsent bytes of a connection that are not counted in the budget.
const LONG: usize = 1 << 20;

const FILE: PageFile = PageFile { path: "/", kind: "text/html", brotli: &[1; 300_000], gzip: &[2; 300_000] };

/// Answers with the kinds of bodies that services have.
struct Kinds(Arc<HostBans>);

impl Service for Kinds {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        let method = message.calls().next().map(|call| call.method.clone()).unwrap_or_default();
        let outcome = |text: &str| vec![Ok(to_raw_value(text).unwrap())];
        Box::pin(std::future::ready(match method.as_str() {
            "nothing" => ReservedReply::default(),
            "long" => ReservedReply::of(Reply::to(message, outcome(&"x".repeat(LONG)))),
            "pieces" => {
                let piece = |_| Ok(("y".repeat(LONG / 8), Reservation::default()));
                let pieces = Pieces(futures::stream::iter((0..3).map(piece)).boxed());
                ReservedReply { pieces: Some(pieces), ..ReservedReply::default() }
            }
            _ => ReservedReply::of(Reply::to(message, outcome("short"))),
        }))
    }

    fn bans(&self) -> Option<Arc<HostBans>> {
        Some(self.0.clone())
    }
}

/// A server with a page, and, if a folder is given, with keys: one without limits and one whose quota is used up at once.
async fn server(keys: Option<&Path>) -> (ServerState, Vec<String>) {
    let database = keys.map(|folder| Arc::new(KeyDatabase::open(&folder.join("keys.redb")).unwrap()));
    let key =
        |change: KeyChange| database.as_ref().map(|database| database.create(&change).unwrap().0.reveal());
    let limited = KeyChange { per_day: Some(1), ..KeyChange::default() };
    let texts = [key(KeyChange::default()), key(limited)];
    let config = ServerConfig {
        host: "127.0.0.1".into(),
        http_port: 0,
        ws_port: None,
        origins: Origins::parse("https://known.example"),
        hosts: Vec::new(),
        limits: ServerLimits { message_bytes: LONG, ..ServerLimits::default() },
        admission: AdmissionRules {
            keys: database.as_ref().map(KeyAccess::embedded),
            ..AdmissionRules::default()
        },
        operations: Operations { page: Some(Page { files: &[FILE] }), ..Operations::default() },
    };
    let server = Server::bind(config, Arc::new(Kinds(Arc::default()))).await.unwrap();
    (server.into_shared(), texts.into_iter().flatten().collect())
}

/// Bodies of requests: no JSON, calls of each kind, a long id, and too many bytes.
fn bodies() -> Vec<String> {
    let call = |name: &str| format!(r#"{{"id":1,"method":"{name}"}}"#);
    let mut bodies: Vec<String> = ["long", "nothing", "pieces", "m"].map(call).into();
    bodies.extend(["", "{", "[]"].map(str::to_owned));
    bodies.push(format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(LONG / 2)));
    bodies.push("x".repeat(LONG + 1));
    bodies
}

/// Sends a request, and checks that each byte of the response's body counts until it is dropped.
async fn check(
    shared: &ServerState,
    address: IpAddr,
    mut request: Request<axum::body::Body>,
    name: &str,
) -> StatusCode {
    let connection = ClientConnection::new(Some(address), &Counts::default());
    let response = http::handle(shared, &connection, &mut request).await;
    let (head, mut body) = response.into_parts();
    let (mut bytes, mut parts) = (0, Vec::new());
    if let Some(exact) = body.size_hint().exact() {
        assert_eq!(connection.unsent() as u64, exact, "{name}: before it is sent");
    }
    while let Some(part) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let part = part.unwrap().into_data().unwrap();
        bytes += part.len();
        parts.push(part);
        assert_eq!(connection.unsent(), bytes, "{name}: while it is sent");
    }
    drop(body);
    assert_eq!(connection.unsent(), bytes, "{name}: until it is sent");
    drop(parts);
    assert_eq!(connection.unsent(), 0, "{name}: afterwards");
    head.status
}

#[tokio::test]
async fn every_response_counts_as_unsent_until_it_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let heads: [&[(&str, &str)]; 6] = [
        &[("host", "localhost"), ("content-type", "application/json")],
        &[("host", "localhost"), ("content-type", "application/json"), ("accept-encoding", "gzip")],
        &[("host", "localhost"), ("origin", "https://known.example")],
        &[("host", "localhost"), ("origin", "https://other.example")],
        &[("host", "elsewhere.example")],
        &[
            ("host", "localhost"),
            ("upgrade", "websocket"),
            ("connection", "upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ],
    ];
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    for keys in [None, Some(folder.path())] {
        let (shared, keys) = server(keys).await;
        let mut paths =
            ["/", "/health", "/livez", "/readyz", "/websocket", "/nokey", "/a/b", "/admin", "/metrics"]
                .map(str::to_owned)
                .to_vec();
        paths.extend(keys.iter().map(|key| format!("/{key}")));
        for path in &paths {
            for method in [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS, Method::PUT] {
                for head in heads {
                    let bodies = if method == Method::POST { bodies() } else { vec![String::new()] };
                    for body in bodies {
                        let name = format!("{method} {path} {head:?} {:.40}", body);
                        let mut request = Request::builder().method(method.clone()).uri(path);
                        for (name, value) in head {
                            request = request.header(*name, *value);
                        }
                        let request = request.body(body.into()).unwrap();
                        let status = check(&shared, [192, 0, 2, 1].into(), request, &name).await;
                        *seen.entry(status.as_u16()).or_default() += 1;
                    }
                }
            }
        }
        let banned = IpAddr::from([192, 0, 2, 66]);
        shared.bans.as_ref().unwrap().ban(AddressRange::parse(&banned.to_string()).unwrap(), &[]).unwrap();
        let request =
            Request::builder().uri("/").header("host", "localhost").body(String::new().into()).unwrap();
        assert_eq!(check(&shared, banned, request, "banned").await, 403);
    }
    for status in [200, 204, 400, 401, 403, 404, 405, 413, 415, 426, 429] {
        assert!(seen.contains_key(&status), "no response with {status}: {seen:?}");
    }
}

#[tokio::test]
async fn bytes_beyond_the_first_of_a_connection_take_their_share_of_the_budget() {
    let connection = ClientConnection::new(Some([192, 0, 2, 77].into()), &Counts::default());
    let small = || vec![0_u8; 10_000];
    let first = connection.sending(small(), Reservation::default()).await.unwrap();
    let second = connection.sending(small(), Reservation::default()).await.unwrap();
    assert_eq!((first.held_bytes(), second.held_bytes()), (0, 10 * 1024));
    drop(first);
    let long = connection.sending(vec![0_u8; LONG], Reservation::default()).await.unwrap();
    assert_eq!(long.held_bytes(), LONG);
    assert_eq!(connection.unsent(), 10_000 + LONG);
    let shared = connection.sending_uncounted(Bytes::from_static(&[0; 100_000]));
    assert_eq!((shared.held_bytes(), connection.unsent()), (0, 110_000 + LONG));
}

/// A client that sends pings without data and does not read must not be answered without end either.
#[tokio::test]
async fn the_header_of_a_pong_counts_as_unsent() {
    let connection = ClientConnection::new(Some([192, 0, 2, 78].into()), &Counts::default());
    let pongs = [0, 0, 125].map(|bytes| pong(&connection, vec![7; bytes].into()));
    assert_eq!(connection.unsent(), 2 + 2 + 127);
    drop(pongs);
    assert_eq!(connection.unsent(), 0);
}
