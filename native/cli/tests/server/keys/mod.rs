//! API keys over HTTP and WebSocket: every status, header and limit, changes while the server runs, hostile paths.

mod admission;
mod quotas;
mod rights;
mod sockets;

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{RunningServer, client, config, dev_chain, start_service};
use futures::{SinkExt, StreamExt};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, ORIGIN};
use rootlight::dev::Mining;
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::keys::{KeyChange, KeyDatabase};
use rootlight_server::{AdmissionRules, KeyAccess, ServerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const SHOP: &str = "0x0000000000000000000000000000000001000006";

/// A development chain behind a server that needs keys.
struct Keyed {
    server: RunningServer,
    database: Arc<KeyDatabase>,
    folder: TempDir,
}

fn dev() -> Arc<LocalService> {
    dev_chain(Mining::Instant, LocalOptions::default())
}

fn entry(database: &Arc<KeyDatabase>) -> AdmissionRules {
    AdmissionRules { keys: Some(KeyAccess::embedded(database)), ..AdmissionRules::default() }
}

async fn keyed_with(change: impl FnOnce(&mut ServerConfig)) -> Keyed {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let mut config = ServerConfig { admission: entry(&database), ..config() };
    change(&mut config);
    let server = start_service(config, dev()).await;
    Keyed { server, database, folder }
}

async fn keyed() -> Keyed {
    keyed_with(|_| {}).await
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn number() -> Value {
    call("eth_blockNumber", json!([]))
}

/// A response as the tests look at it.
struct SeenResponse {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl SeenResponse {
    async fn new(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
        Self { status, headers, body }
    }

    fn header(&self, name: &str) -> Option<u64> {
        self.headers.get(name).map(|value| value.to_str().unwrap().parse().unwrap())
    }

    /// Status, code, message and id.
    fn error(&self) -> (u16, i64, &str, &Value) {
        let error = &self.body["error"];
        assert_eq!(self.body["jsonrpc"], "2.0", "{}", self.body);
        let text = error["message"].as_str().unwrap_or_else(|| panic!("{}", self.body));
        (self.status, error["code"].as_i64().unwrap(), text, &self.body["id"])
    }
}

impl Keyed {
    /// A new key: its text and id.
    fn key(&self, change: KeyChange) -> (String, String) {
        let (key, record) = self.database.create(&change).unwrap();
        (key.reveal(), record.id.clone())
    }

    async fn post(&self, path: &str, message: &Value) -> SeenResponse {
        self.post_from(path, None, message).await
    }

    async fn post_from(&self, path: &str, origin: Option<&str>, message: &Value) -> SeenResponse {
        let request = client().post(self.server.url(path)).header(CONTENT_TYPE, "application/json");
        let request = match origin {
            Some(origin) => request.header(ORIGIN, origin),
            None => request,
        };
        SeenResponse::new(request.body(message.to_string()).send().await.unwrap()).await
    }

    /// A message of a client that a proxy passes on.
    async fn post_through(&self, path: &str, address: &str, message: &Value) -> SeenResponse {
        let request = client().post(self.server.url(path)).header(CONTENT_TYPE, "application/json");
        let request = request.header("x-forwarded-for", address);
        SeenResponse::new(request.body(message.to_string()).send().await.unwrap()).await
    }

    async fn socket(&self, path: &str) -> KeyedSocket {
        KeyedSocket(connect_async(self.server.ws(path)).await.unwrap().0)
    }

    async fn upgrade_status(&self, path: &str, origin: Option<&str>) -> u16 {
        let mut request = self.server.ws(path).into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match connect_async(request).await {
            Ok(_) => 101,
            Err(Error::Http(response)) => {
                let body: Value = serde_json::from_slice(response.body().as_ref().unwrap()).unwrap();
                assert!(body["error"]["code"].is_i64() && body["id"].is_null(), "{body}");
                response.status().as_u16()
            }
            Err(other) => panic!("{other}"),
        }
    }
}

struct KeyedSocket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl KeyedSocket {
    async fn next(&mut self) -> Message {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
            match next.expect("a message in time").expect("an open connection").unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(self.next().await.to_text().unwrap()).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.0.send(Message::text(message.to_string())).await.unwrap();
        self.json().await
    }

    /// The error and the close code with which the server ends the connection.
    async fn ended(&mut self) -> (Value, u16) {
        let error = self.json().await;
        match self.next().await {
            Message::Close(Some(frame)) => (error, frame.code.into()),
            other => panic!("no close frame but {other:?}"),
        }
    }
}
