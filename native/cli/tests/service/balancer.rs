//! A balancer: each question goes to the next front end, and from one that cannot answer it now to the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common;
use crate::tally::{Bad, Tally};

/// Longest wait for one front end.
const LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for an answer of any front end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before the next front end is tried.
const PAUSE: Duration = Duration::from_millis(10);
/// Seconds before its end of which a killed front end may lose the usage: three, and one for the flush itself.
const UNWRITTEN: u64 = 4;

/// JSON-RPC code of answers that cannot be given at present.
pub(crate) const NOT_NOW: i64 = -32002;

/// Codes of JSON-RPC errors that clients may see: not at present, a limit, a message that took too long, and what is
/// wrong with a transaction.
const CLEAR: [i64; 4] = [NOT_NOW, -32005, -32011, -32010];

/// Why there is no result.
#[derive(Debug, Clone)]
pub(crate) enum CallFailure {
    /// No connection could be made: the front end has not seen the message.
    Refused,
    /// The connection ended: the front end may have answered.
    Broken,
    /// No answer in time.
    Silent,
    /// An HTTP status without a JSON-RPC error.
    Http(u16),
    /// A JSON-RPC error.
    Rpc { status: u16, code: i64, message: String },
}

impl CallFailure {
    fn kind(&self) -> String {
        match self {
            Self::Refused => "no connection".into(),
            Self::Broken => "broken connection".into(),
            Self::Silent => "no answer".into(),
            Self::Http(status) => format!("http {status}"),
            Self::Rpc { status: 200, code, .. } => format!("rpc {code}"),
            Self::Rpc { status, code, .. } => format!("http {status}, rpc {code}"),
        }
    }

    /// Whether the next front end may answer, without harm if this one has acted.
    fn is_transient(&self) -> bool {
        match self {
            Self::Refused | Self::Broken | Self::Silent => true,
            Self::Http(status) => *status == 503,
            Self::Rpc { status, code, .. } => *status == 503 || *status == 200 && *code == NOT_NOW,
        }
    }

    /// Whether the front end surely did nothing.
    pub(crate) fn is_harmless(&self) -> bool {
        self.is_transient() && !matches!(self, Self::Broken | Self::Silent)
    }
}

/// A key, and how it was used.
pub(crate) struct UsedKey {
    pub(crate) text: String,
    pub(crate) number: usize,
    /// Messages with an answer of a front end that had admitted them.
    pub(crate) answered: AtomicU64,
    /// Messages of which it is not known whether they were admitted.
    pub(crate) unknown: AtomicU64,
    /// Messages that a killed front end may not have written.
    pub(crate) unwritten: AtomicU64,
}

impl UsedKey {
    /// The part that is no secret.
    pub(crate) fn id(&self) -> &str {
        self.text.split('.').next().expect("a key has an id")
    }
}

/// Messages that each front end has answered in the last seconds, by second and number of the key.
type Recent = Mutex<VecDeque<(u64, BTreeMap<usize, u64>)>>;

pub(crate) struct Balancer {
    ports: Vec<u16>,
    recent: Vec<Recent>,
    next: AtomicUsize,
    client: reqwest::Client,
    started: Instant,
    pub(crate) keys: Mutex<Vec<Arc<UsedKey>>>,
    pub(crate) tally: Arc<Tally>,
}

impl Balancer {
    pub(crate) fn new(ports: Vec<u16>, tally: Arc<Tally>) -> Self {
        let recent = ports.iter().map(|_| Recent::default()).collect();
        let (client, started) = (common::client(), Instant::now());
        Self { ports, recent, next: AtomicUsize::new(0), client, started, keys: Mutex::default(), tally }
    }

    /// A key that clients use.
    pub(crate) fn add_key(&self, text: String) -> Arc<UsedKey> {
        let mut keys = self.keys.lock().unwrap();
        let zero = || AtomicU64::new(0);
        let key = UsedKey { text, number: keys.len(), answered: zero(), unknown: zero(), unwritten: zero() };
        keys.push(Arc::new(key));
        keys.last().expect("it was added").clone()
    }

    /// The front end whose turn it is.
    pub(crate) fn turn(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.ports.len()
    }

    /// The address of a front end for WebSockets.
    pub(crate) fn ws(&self, turn: usize, key: &UsedKey) -> String {
        format!("ws://127.0.0.1:{}/{}", self.ports[turn], key.text)
    }

    /// The address of a page of a front end.
    pub(crate) fn page(&self, turn: usize, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.ports[turn])
    }

    /// Asks one front end.
    pub(crate) async fn attempt(
        &self,
        turn: usize,
        key: &UsedKey,
        method: &str,
        params: &Value,
    ) -> Result<Value, CallFailure> {
        self.tally.request();
        let answer = self.post(turn, key, method, params).await;
        match &answer {
            Ok(_) => {
                self.tally.answer();
                self.note_answered(turn, key);
            }
            Err(failure) => {
                self.note(turn, key, failure);
                self.tally.error(failure.kind());
            }
        }
        answer
    }

    async fn post(
        &self,
        turn: usize,
        key: &UsedKey,
        method: &str,
        params: &Value,
    ) -> Result<Value, CallFailure> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let post = self.client.post(self.page(turn, &key.text)).header("content-type", "application/json");
        let failed = |error: reqwest::Error| match (error.is_connect(), error.is_timeout()) {
            (true, _) => CallFailure::Refused,
            (_, true) => CallFailure::Silent,
            _ => CallFailure::Broken,
        };
        let response = post.body(message).timeout(LIMIT).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let body = response.text().await.map_err(failed)?;
        let Ok(mut body) = serde_json::from_str::<Value>(&body) else {
            return Err(CallFailure::Http(status));
        };
        match body.get("error") {
            None if status == 200 => Ok(body["result"].take()),
            None => Err(CallFailure::Http(status)),
            Some(error) => Err(CallFailure::Rpc {
                status,
                code: error["code"].as_i64().unwrap_or(0),
                message: error["message"].as_str().unwrap_or_default().into(),
            }),
        }
    }

    fn note(&self, turn: usize, key: &UsedKey, failure: &CallFailure) {
        match failure {
            CallFailure::Rpc { status: 200, .. } => self.note_answered(turn, key),
            CallFailure::Broken | CallFailure::Silent => _ = key.unknown.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Notes that a front end has admitted and answered a message.
    pub(crate) fn note_answered(&self, turn: usize, key: &UsedKey) {
        key.answered.fetch_add(1, Ordering::Relaxed);
        let second = self.started.elapsed().as_secs();
        let mut recent = self.recent[turn].lock().unwrap();
        if recent.back().is_none_or(|(last, _)| *last != second) {
            recent.push_back((second, BTreeMap::new()));
        }
        *recent.back_mut().expect("just added").1.entry(key.number).or_default() += 1;
        while recent.front().is_some_and(|(first, _)| first + UNWRITTEN < second) {
            recent.pop_front();
        }
    }

    /// Notes that a front end was killed: the usage of its last seconds may be lost.
    pub(crate) fn killed(&self, turn: usize) {
        let keys = self.keys.lock().unwrap();
        for (_, counts) in self.recent[turn].lock().unwrap().drain(..) {
            for (number, count) in counts {
                keys[number].unwritten.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Asks one front end after another until one answers. An error of the question itself is returned.
    pub(crate) async fn ask(&self, key: &UsedKey, method: &str, params: Value) -> Result<Value, CallFailure> {
        let started = Instant::now();
        loop {
            let failure = match self.attempt(self.turn(), key, method, &params).await {
                Ok(answer) => {
                    self.tally.waited(method, started.elapsed());
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if !failure.is_transient() {
                self.judge(method, &failure);
                return Err(failure);
            }
            if started.elapsed() > PATIENCE {
                let text = format!("{method} {params}: no front end answers: {failure:?}");
                self.tally.bad(Bad::Unclear, 1, &text);
                return Err(failure);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Counts an error that is not in the list of the clear ones.
    pub(crate) fn judge(&self, method: &str, failure: &CallFailure) {
        let clear = match failure {
            CallFailure::Rpc { status, code, message } => {
                matches!(status, 200 | 429 | 503) && CLEAR.contains(code) && !message.is_empty()
            }
            CallFailure::Http(status) => *status == 503,
            _ => true,
        };
        if !clear {
            self.tally.bad(Bad::Unclear, 1, &format!("{method}: {failure:?}"));
        }
    }
}
