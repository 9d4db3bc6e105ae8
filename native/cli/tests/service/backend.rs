//! A backend of the service: the chain, told honestly or not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::rpc::envelope::Outcome;
use rootlight::rpc::{Call, Message, Notifications, Reply, RpcError};
use rootlight_limits::budget::Reservation;
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_server::{ServerConfig, ServerLimits};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::chain::{ServiceChain, SideBranch, answer_key, number};
use crate::common::{self, RunningServer};

/// How a backend behaves.
#[derive(Clone)]
pub(crate) enum Mode {
    Honest,
    /// A digit of each answer is another one.
    Lies,
    /// The backend has no block above this one.
    Lags(u64),
    /// The backend shows a branch that the chain has left behind.
    Forks(Arc<SideBranch>),
    /// The backend does not answer.
    Hangs,
}

struct Answers {
    chain: Arc<ServiceChain>,
    mode: watch::Sender<Mode>,
    lies: AtomicUsize,
}

/// A backend with a server that can be away.
pub(crate) struct ServiceBackend {
    answers: Arc<Answers>,
    port: u16,
    running: Mutex<Option<RunningServer>>,
}

/// The error response to a call.
fn refusal(call: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}})
}

fn result(call: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}

fn outcome(answer: &Value) -> Outcome {
    let error = &answer["error"];
    if error.is_null() {
        return Ok(to_raw_value(&answer["result"])?);
    }
    let code = error["code"].as_i64().and_then(|code| code.try_into().ok()).unwrap_or_default();
    Err(RpcError::Host { code, text: error["message"].as_str().unwrap_or_default().to_owned(), data: None })
}

/// The numbers and bytes in a value.
fn texts(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) if text.starts_with("0x") && text.len() > 2 => vec![text],
        Value::Array(values) => values.iter_mut().flat_map(texts).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Changes a digit of a value, another one each time.
fn change(value: &mut Value, turn: usize) {
    let mut texts = texts(value);
    let count = texts.len().max(1);
    if let Some(text) = texts.get_mut(turn % count) {
        let last = text.pop().expect("it is longer than two");
        text.push(if last == '1' { '2' } else { '1' });
    }
}

impl Answers {
    async fn honest(&self, caller: &Arc<Caller>, message: Message) -> ReservedReply {
        let _open = self.chain.gate.read().await;
        self.chain.service.answer_message(caller, message).await
    }

    async fn honest_call(&self, caller: &Arc<Caller>, call: &Value) -> Value {
        let answer = self.honest(caller, common::read_message(call.to_string().as_bytes())).await.into_text();
        answer.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default()
    }

    /// Answers one call after another in the given way.
    async fn dishonest(&self, caller: &Arc<Caller>, message: Message, mode: &Mode) -> ReservedReply {
        let mut outcomes = Vec::new();
        for entry in message.entries() {
            let Ok(Call { method, params, .. }) = &entry.call else {
                outcomes.push(Err(RpcError::InvalidRequest));
                continue;
            };
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            outcomes.push(outcome(&self.dishonest_call(caller, &call, mode).await));
        }
        ReservedReply::of(Reply::to(message, outcomes))
    }

    async fn dishonest_call(&self, caller: &Arc<Caller>, call: &Value, mode: &Mode) -> Value {
        let method = call["method"].as_str().unwrap_or_default();
        match mode {
            Mode::Lies => {
                let mut answer = self.honest_call(caller, call).await;
                // A lie about the id would only break the protocol.
                change(&mut answer["result"], self.lies.fetch_add(1, Ordering::Relaxed));
                answer
            }
            // Methods that no stock node has would show newer blocks.
            _ if method.starts_with("rootlight_") => refusal(call, -32601, "the method does not exist"),
            Mode::Lags(head) => self.lagging(caller, call, *head).await,
            Mode::Forks(branch) => self.forked(caller, call, branch).await,
            Mode::Honest | Mode::Hangs => self.honest_call(caller, call).await,
        }
    }

    async fn lagging(&self, caller: &Arc<Caller>, call: &Value, head: u64) -> Value {
        let mut call = call.clone();
        if call["method"] == "eth_blockNumber" {
            return result(&call, json!(format!("{head:#x}")));
        }
        for parameter in call["params"].as_array_mut().into_iter().flatten() {
            let text = parameter.as_str().unwrap_or_default();
            if text == "latest" {
                *parameter = json!(format!("{head:#x}"));
            } else if text.len() < 18 && text.starts_with("0x") && number(parameter) > head {
                return result(&call, Value::Null);
            }
        }
        let answer = self.honest_call(caller, &call).await;
        let is_later =
            |field: &str| answer["result"][field].is_string() && number(&answer["result"][field]) > head;
        let hidden = is_later("number") || is_later("blockNumber");
        if hidden { result(&call, Value::Null) } else { answer }
    }

    async fn forked(&self, caller: &Arc<Caller>, call: &Value, branch: &SideBranch) -> Value {
        let mut call = call.clone();
        let head = format!("{:#x}", branch.head);
        if call["method"] == "eth_blockNumber" {
            return result(&call, json!(head));
        }
        let mut is_of_branch = false;
        for parameter in call["params"].as_array_mut().into_iter().flatten() {
            let text = parameter.as_str().unwrap_or_default();
            if text == "latest" {
                *parameter = json!(head);
            }
            let text = parameter.as_str().unwrap_or_default();
            is_of_branch |= text.len() > 2
                && text.len() < 18
                && text.starts_with("0x")
                && number(parameter) >= branch.first;
        }
        let known =
            branch.answers.get(&answer_key(call["method"].as_str().unwrap_or_default(), &call["params"]));
        match known {
            Some(known) => result(&call, known.clone()),
            None if is_of_branch => refusal(&call, -32602, "block not found"),
            None => self.honest_call(caller, &call).await,
        }
    }
}

impl Service for Answers {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let mut modes = self.mode.subscribe();
            let mode = modes.borrow_and_update().clone();
            match mode {
                Mode::Honest => self.honest(caller, message).await,
                Mode::Hangs => {
                    _ = modes.changed().await;
                    self.honest(caller, message).await
                }
                mode => self.dishonest(caller, message, &mode).await,
            }
        })
    }

    fn notifications<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        subscription: u128,
    ) -> BoxFuture<'a, (Notifications, Reservation)> {
        self.chain.service.notifications(caller, subscription)
    }

    fn disconnect<'a>(&'a self, caller: &'a Arc<Caller>) -> BoxFuture<'a, ()> {
        self.chain.service.disconnect(caller)
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.chain.service.changes()
    }
}

impl ServiceBackend {
    pub(crate) async fn start(chain: Arc<ServiceChain>) -> Self {
        let answers =
            Arc::new(Answers { chain, mode: watch::channel(Mode::Honest).0, lies: AtomicUsize::new(0) });
        let running = common::start_service(config(0), answers.clone()).await;
        Self { answers, port: running.address.port(), running: Mutex::new(Some(running)) }
    }

    /// The host and the port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on it behaves like this.
    pub(crate) fn set(&self, mode: Mode) {
        self.answers.mode.send_replace(mode);
    }

    /// Ends its server.
    pub(crate) async fn go_away(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(mut running) = running {
            running.stop.take().map(|stop| stop.send(()));
            running.task.await.unwrap();
        }
    }

    /// Starts its server again.
    pub(crate) async fn come_back(&self) {
        let running = common::start_service(config(self.port), self.answers.clone()).await;
        *self.running.lock().unwrap() = Some(running);
    }
}

fn config(port: u16) -> ServerConfig {
    let limits = ServerLimits { drain_timeout: Duration::from_millis(100), ..ServerLimits::default() };
    ServerConfig { http_port: port, limits, ..common::config() }
}
