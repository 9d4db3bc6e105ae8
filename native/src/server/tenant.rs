//! A client with an API key: the checks of its messages, and the answers that refuse them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::B256;
use axum::body::{HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rootlight::rpc::envelope::{Entry, Id, MAX_BATCH, Message};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::entry::KeyAccess;
use crate::keys::{Exceeded, Inspected, Record, Standing, Topic, Unfit, Window, inspect};
use crate::priority::{self, SHORT_JSON};
use crate::service::LIMIT_EXCEEDED;

/// JSON-RPC code of a request without the right to be made.
const UNAUTHORIZED: i32 = -32016;
/// JSON-RPC code of an invalid request (JSON-RPC 2.0).
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC code of invalid parameters (JSON-RPC 2.0).
const INVALID_PARAMS: i32 = -32602;

/// Longest body of a refused request that is read for its id, in bytes.
const READ_FOR_ID: u64 = 4 * 1024;
/// Time limit for that.
const READ_FOR_ID_TIME: Duration = Duration::from_secs(1);

/// Messages of one WebSocket that are refused in a row because of a limit, before the connection is closed.
const REFUSED_IN_A_ROW: u32 = 1_000;

/// Interval at which a WebSocket's key is looked at even if no change is announced: keys end by themselves.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The path has no key.
    #[error("Unauthorized: missing API key")]
    Missing,
    /// The key does not exist, or is revoked.
    #[error("Unauthorized: invalid API key")]
    Invalid,
    /// The key has ended.
    #[error("Unauthorized: the API key has expired")]
    Expired,
    /// The key may not be used by this page.
    #[error("Forbidden: the origin is not allowed for this key")]
    Origin,
    /// The key may not be used from this address.
    #[error("Forbidden: the client address is not allowed for this key")]
    Address,
    /// The key does not allow what the message asks.
    #[error("Forbidden: {0}")]
    Method(Unfit),
    /// The key does not allow state overrides.
    #[error("{}", Unfit::StateOverride)]
    StateOverride,
    /// The message exceeds a limit of the key.
    #[error("{}", limit_text(.0))]
    Limit(Exceeded),
    /// The key has as many WebSockets as it may have.
    #[error("Limit exceeded: {0} WebSocket connections of this key")]
    Sockets(usize),
    /// Nothing is at this path.
    #[error("no service at this path: send requests to /API_KEY")]
    NotFound,
    /// The server could not read the message.
    #[error("Internal server error")]
    Failed,
}

fn limit_text(exceeded: &Exceeded) -> &'static str {
    match exceeded.window {
        Window::Second => "Limit exceeded: too many requests per second",
        Window::Day => "Daily quota exceeded",
    }
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Invalid | Self::Expired => StatusCode::UNAUTHORIZED,
            Self::Origin | Self::Address | Self::Method(_) => StatusCode::FORBIDDEN,
            // An error of the call, as the reference node gives it.
            Self::StateOverride => StatusCode::OK,
            Self::Limit(_) | Self::Sockets(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn code(&self) -> i32 {
        match self {
            Self::StateOverride => INVALID_PARAMS,
            Self::Limit(_) | Self::Sockets(_) => LIMIT_EXCEEDED,
            Self::NotFound => INVALID_REQUEST,
            Self::Failed => crate::service::INTERNAL_ERROR,
            _ => UNAUTHORIZED,
        }
    }

    /// The JSON-RPC response, under an id as received; `None` stands for `null`.
    pub(crate) fn body(&self, id: Option<&str>) -> String {
        let mut error = json!({"code": self.code(), "message": self.to_string()});
        if let (Self::Limit(exceeded), Some(members)) = (self, error.as_object_mut()) {
            let Exceeded { window, standing, retry_after } = exceeded;
            let window = if *window == Window::Second { "second" } else { "day" };
            let data = json!({"limit": standing.limit, "window": window, "retryAfter": retry_after});
            members.insert("data".to_owned(), data);
        }
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.unwrap_or("null"))
    }

    /// The HTTP response, under an id as received.
    pub(crate) fn response(&self, id: Option<&str>) -> Response {
        let mut response = (self.status(), self.body(id)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey"));
        }
        if let Self::Sockets(_) = self {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Self::Limit(exceeded) = self {
            headers.insert(header::RETRY_AFTER, exceeded.retry_after.into());
            add_standing(headers, &exceeded.standing);
        }
        response
    }

    /// The HTTP response to a request whose body has not been read. A short body is read for the id of its call.
    pub(crate) async fn response_to(&self, request: Request) -> Response {
        let length = request.body().size_hint().exact();
        let reads = *request.method() == Method::POST && length.is_some_and(|length| length <= READ_FOR_ID);
        let limit = usize::try_from(READ_FOR_ID).unwrap_or(usize::MAX);
        let read = match reads {
            true => timeout(READ_FOR_ID_TIME, to_bytes(request.into_body(), limit)).await.ok(),
            false => None,
        };
        let Some(Ok(body)) = read else {
            let mut response = self.response(None);
            // The rest of the body is unread, so the connection cannot be used again.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        };
        self.response(id_of(&body).as_deref())
    }
}

/// The id of a single call, as received.
fn id_of(message: &[u8]) -> Option<String> {
    match Message::parse(message, MAX_BATCH) {
        Ok(Message::Single(Entry { id: Id::Given(id), .. })) => Some(id.get().to_owned()),
        _ => None,
    }
}

/// Adds the headers that say how much of a limit is left.
pub(crate) fn add_standing(headers: &mut HeaderMap, standing: &Standing) {
    for (name, value) in [
        ("x-ratelimit-limit", standing.limit),
        ("x-ratelimit-remaining", standing.remaining),
        ("x-ratelimit-reset", standing.reset),
    ] {
        headers.insert(HeaderName::from_static(name), value.into());
    }
}

/// A message that is refused.
pub(crate) struct Refused {
    refusal: Refusal,
    /// The id of its call, as received.
    id: Option<String>,
}

impl Refused {
    /// The JSON-RPC response.
    pub(crate) fn body(&self) -> String {
        self.refusal.body(self.id.as_deref())
    }

    /// The HTTP response.
    pub(crate) fn response(&self) -> Response {
        self.refusal.response(self.id.as_deref())
    }
}

/// A client with a key.
pub(crate) struct Tenant {
    access: KeyAccess,
    id: String,
    hash: B256,
    owner: u32,
    origin: Option<String>,
    address: IpAddr,
    /// Messages refused in a row because of a limit.
    refused: AtomicU32,
    /// Signals that there were too many.
    abused: Notify,
}

impl Tenant {
    /// A client that has sent the whole key of a record.
    pub(super) fn new(access: &KeyAccess, record: &Record, origin: Option<String>, address: IpAddr) -> Self {
        let (id, hash, owner) = (record.id.clone(), record.hash, access.filters.owner(record));
        let (refused, abused) = (AtomicU32::new(0), Notify::new());
        Self { access: access.clone(), id, hash, owner, origin, address, refused, abused }
    }

    /// The number that owns the key's filters.
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Checks the key as it is now.
    pub(super) fn check(&self, record: &Record) -> Result<(), Refusal> {
        let rules = &record.rules;
        if record.revoked.is_some() || record.hash != self.hash {
            return Err(Refusal::Invalid);
        }
        if rules.is_over(seconds()) {
            return Err(Refusal::Expired);
        }
        if !rules.admits(self.address) {
            return Err(Refusal::Address);
        }
        if !rules.admits_page(self.origin.as_deref()) {
            return Err(Refusal::Origin);
        }
        Ok(())
    }

    async fn key(&self) -> Result<Arc<Record>, Refusal> {
        let record = self.access.keys.find(&self.id).await.ok_or(Refusal::Invalid)?;
        self.check(&record).map(|()| record)
    }

    /// Checks a message and counts it. Returns the message, and what is left of the key's limits.
    pub(crate) async fn charge(&self, message: Vec<u8>) -> (Vec<u8>, Result<Option<Standing>, Refused>) {
        let record = match self.key().await {
            Ok(record) => record,
            Err(refusal) => return (message, Err(Refused { refusal, id: None })),
        };
        let (rules, short) = (record.clone(), message.len() <= SHORT_JSON);
        let read = move || (inspect(&message, &rules.rules), message);
        // Reading a long message takes milliseconds.
        let read = if short { Some(read()) } else { priority::run_last(read).await };
        let Some((Inspected { charge, unfit, id }, message)) = read else {
            return (Vec::new(), Err(Refused { refusal: Refusal::Failed, id: None }));
        };
        let taken = match self.access.quotas.take(&record, &charge).await {
            Err(exceeded) => Err(Refusal::Limit(exceeded)),
            Ok(standing) => match unfit {
                None => Ok(standing),
                Some(Unfit::StateOverride) => Err(Refusal::StateOverride),
                Some(unfit) => Err(Refusal::Method(unfit)),
            },
        };
        self.note(matches!(taken, Err(Refusal::Limit(_))));
        (message, taken.map_err(|refusal| Refused { refusal, id }))
    }

    /// Counts the messages that are refused in a row because of a limit.
    fn note(&self, refused: bool) {
        if !refused {
            self.refused.store(0, Ordering::Relaxed);
        } else if self.refused.fetch_add(1, Ordering::Relaxed) >= REFUSED_IN_A_ROW {
            self.abused.notify_one();
        }
    }

    /// Completes when a WebSocket of this client must be closed: the key is revoked or has ended, may not be used from
    /// there any more, or its limits are exceeded all the time. Returns the last message for the client.
    pub(crate) async fn ends(&self) -> String {
        let mut changes = self.access.fanout.listen(Topic::Keys);
        loop {
            if let Err(refusal) = self.key().await {
                return refusal.body(None);
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    tokio::time::sleep(LOOK_INTERVAL).await;
                },
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = self.abused.notified() => {
                    let error = json!({"code": LIMIT_EXCEEDED, "message": "Limit exceeded: too many refused requests"});
                    return json!({"jsonrpc": "2.0", "id": Value::Null, "error": error}).to_string();
                }
            }
        }
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The number of open WebSockets of each key, by the number of the key.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeySockets(Arc<Mutex<BTreeMap<u32, usize>>>);

/// A counted WebSocket of a key, until it is dropped.
#[derive(Debug)]
pub(crate) struct KeySocket {
    all: KeySockets,
    key: u32,
}

impl KeySockets {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts another WebSocket of a key, unless it has `most` already.
    pub(crate) fn enter(&self, key: u32, most: usize) -> Result<KeySocket, Refusal> {
        let mut open = self.open();
        let count = open.entry(key).or_default();
        if *count >= most {
            return Err(Refusal::Sockets(most));
        }
        *count = count.saturating_add(1);
        Ok(KeySocket { all: self.clone(), key })
    }
}

impl Drop for KeySocket {
    fn drop(&mut self) {
        let mut open = self.all.open();
        match open.get_mut(&self.key) {
            Some(count) if *count > 1 => *count = count.saturating_sub(1),
            _ => _ = open.remove(&self.key),
        }
    }
}
