//! Subscriptions over WebSocket: a client that is disconnected subscribes anew elsewhere and fetches what it missed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::TestClient;
use crate::view::View;

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for news before the client looks whether the run is over.
const LOOK: Duration = Duration::from_millis(500);
/// Pause before the next front end is tried.
const PAUSE: Duration = Duration::from_millis(50);

struct SubscriptionSocket<'a> {
    client: &'a TestClient,
    turn: usize,
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Notifications that came before an answer.
    news: Vec<Value>,
    next: u64,
}

/// Listens until the run is over.
pub(crate) async fn subscribe(client: TestClient, view: Arc<View>) {
    while !client.conditions.is_over() {
        let turn = client.balancer.turn();
        let url = client.balancer.ws(turn, &client.key);
        let connected = tokio::time::timeout(LIMIT, tokio_tungstenite::connect_async(url)).await;
        let Ok(Ok((stream, _))) = connected else {
            client.balancer.tally.error("no websocket".into());
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let socket = SubscriptionSocket { client: &client, turn, stream, news: Vec::new(), next: 1 };
        if socket.listen(&view).await.is_none() && !client.conditions.is_over() {
            client.balancer.tally.error("websocket closed".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl SubscriptionSocket<'_> {
    /// Listens until the connection or the run ends.
    async fn listen(mut self, view: &View) -> Option<()> {
        let contract = json!({"address": self.client.chain.contract});
        self.ask("eth_subscribe", json!(["newHeads"])).await?;
        self.ask("eth_subscribe", json!(["logs", contract])).await?;
        self.catch_up(view).await?;
        std::mem::take(&mut self.news).iter().for_each(|news| tell(view, news));
        while !self.client.conditions.is_over() {
            if let Some(message) = self.receive(LOOK).await? {
                tell(view, &message);
            }
        }
        let _ = self.stream.close(None).await;
        Some(())
    }

    /// Fetches what came between two connections.
    async fn catch_up(&mut self, view: &View) -> Option<()> {
        let mut heads = Vec::new();
        let mut block = self.ask("eth_getBlockByNumber", json!(["latest", false])).await?;
        let last = block["number"].clone();
        loop {
            let hash = block["hash"].as_str()?.to_owned();
            if view.has(&hash) {
                break;
            }
            heads.insert(0, hash);
            if view.is_empty() {
                break;
            }
            block = self.ask("eth_getBlockByHash", json!([block["parentHash"], false])).await?;
        }
        let first = block["number"].clone();
        let range = json!([{"address": self.client.chain.contract, "fromBlock": first, "toBlock": last}]);
        let logs = self.ask("eth_getLogs", range).await?;
        view.fetched(&heads, logs.as_array()?);
        Some(())
    }

    /// Asks on this connection; `None` if it is of no use.
    async fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        let id = self.next;
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let (balancer, key) = (&self.client.balancer, &self.client.key);
        balancer.tally.request();
        self.stream.send(Message::text(message)).await.ok()?;
        loop {
            let Some(Some(mut answer)) = self.receive(LIMIT).await else {
                key.unknown.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            if answer["id"] != id {
                self.news.push(answer);
                continue;
            }
            balancer.note_answered(self.turn, key);
            if let Some(code) = answer["error"]["code"].as_i64() {
                balancer.tally.error(format!("websocket rpc {code}"));
                return None;
            }
            balancer.tally.answer();
            return Some(answer["result"].take());
        }
    }

    /// The next message: `None` if the connection has ended, `Some(None)` if there is none in time.
    async fn receive(&mut self, limit: Duration) -> Option<Option<Value>> {
        match tokio::time::timeout(limit, self.stream.next()).await {
            Err(_) => Some(None),
            Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str(&text).ok().map(Some),
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => Some(Some(Value::Null)),
            Ok(_) => None,
        }
    }
}

fn tell(view: &View, message: &Value) {
    let result = &message["params"]["result"];
    if result["logIndex"].is_string() {
        view.tell_log(result);
    } else if let Some(hash) = result["hash"].as_str() {
        view.tell_head(hash);
    }
}
