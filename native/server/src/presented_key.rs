//! A client with an API key, and the checks of its messages: whether the key is still valid, allows the message and has not used
//! up its limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use alloy_primitives::B256;
use axum::response::Response;
use rootlight::rpc::Message;
use rootlight::rpc::envelope::Id;
use rootlight_limits::unix_time::unix_time;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::key_access::KeyAccess;
use super::refusal::RequestRefusal;
use crate::keys::{Inspected, KeyRecord, LimitStatus, NotAllowed, Topic, inspect};
use crate::metrics::Rejection;
use crate::service::LIMIT_EXCEEDED;

/// Number of messages of one WebSocket that are refused in a row because of a limit before the connection is closed.
const REFUSED_IN_A_ROW: u32 = 1_000;

/// Interval at which the key of a WebSocket is checked even if no change is announced: keys expire without an announcement.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A message that is refused.
pub(crate) struct RefusedMessage {
    refusal: RequestRefusal,
    /// The id of the message's only call, as received.
    id: Id,
}

impl RefusedMessage {
    /// The JSON-RPC response.
    pub(crate) fn body(&self) -> String {
        self.refusal.body(&self.id)
    }

    /// The reason for metrics.
    pub(crate) fn rejection(&self) -> Rejection {
        self.refusal.rejection()
    }

    /// The HTTP response.
    pub(crate) fn response(&self) -> Response {
        self.refusal.response(&self.id)
    }
}

/// A client that has sent an API key, for one request over HTTP or for the life of a WebSocket.
pub(crate) struct PresentedKey {
    access: KeyAccess,
    /// The id of the key, and the hash of the secret that the client sent.
    id: String,
    hash: B256,
    /// The number that owns the key's filters.
    owner: u32,
    /// The record of the key when the client connected.
    began: Arc<KeyRecord>,
    /// The `Origin` header; `None` for a program.
    origin: Option<String>,
    /// The client's whole address.
    address: IpAddr,
    /// Messages refused in a row because of a limit.
    refused: AtomicU32,
    /// Signals that more than [`REFUSED_IN_A_ROW`] messages were refused in a row.
    abused: Notify,
}

impl PresentedKey {
    /// A client that has sent the whole key of a record.
    pub(super) fn new(
        access: &KeyAccess,
        record: &Arc<KeyRecord>,
        origin: Option<String>,
        address: IpAddr,
    ) -> Self {
        let (id, hash, owner) = (record.id.clone(), record.hash, access.filters.owner(record));
        let (refused, abused) = (AtomicU32::new(0), Notify::new());
        let began = record.clone();
        Self { access: access.clone(), id, hash, owner, began, origin, address, refused, abused }
    }

    /// The number that owns the key's filters.
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether the key was one of an operator when the client connected.
    pub(crate) fn is_operator(&self) -> bool {
        self.began.rules.operator
    }

    /// Whether the hosted profile had the `debug_` methods for the key when the client connected.
    pub(crate) fn debugs(&self) -> bool {
        self.began.rules.debug
    }

    /// The hash of what the key might ask about when the client connected (`KeyRules::rights`).
    pub(crate) fn rights(&self) -> u64 {
        self.began.rules.rights()
    }

    /// Checks whether the client may use the key by its present record.
    pub(super) fn check(&self, record: &KeyRecord) -> Result<(), RequestRefusal> {
        let rules = &record.rules;
        if record.revoked.is_some() || record.hash != self.hash {
            return Err(RequestRefusal::Invalid);
        }
        if rules.is_over(unix_time()) {
            return Err(RequestRefusal::Expired);
        }
        if !rules.admits(self.address) {
            return Err(RequestRefusal::Address);
        }
        if !rules.admits_page(self.origin.as_deref()) {
            return Err(RequestRefusal::Origin);
        }
        // Subscriptions of a WebSocket were made under the rights that the key had when the client connected.
        let began = &self.began.rules;
        if rules.operator != began.operator || rules.take_from(began) {
            return Err(RequestRefusal::Changed);
        }
        Ok(())
    }

    /// Looks up the present record of the key, and checks the client by it.
    async fn key(&self) -> Result<Arc<KeyRecord>, RequestRefusal> {
        let found = self.access.keys.find(&self.id).await.map_err(|_| RequestRefusal::Unavailable)?;
        let record = found.ok_or(RequestRefusal::Invalid)?;
        self.check(&record).map(|()| record)
    }

    /// Checks a message and counts it in the key's limits. Returns how much is left of them.
    pub(crate) async fn charge(&self, message: &Message) -> Result<Option<LimitStatus>, RefusedMessage> {
        // The key may have been revoked while the message was sent, so it is looked up again.
        let record = self.key().await.map_err(|refusal| RefusedMessage { refusal, id: Id::Unknown })?;
        let Inspected { charge, unfit } = inspect(message, &record.rules);
        // A message that the key does not allow counts in the limits too.
        let taken = match self.access.quotas.take(&record, &charge).await {
            Err(exceeded) => Err(RequestRefusal::Limit(exceeded)),
            Ok(status) => match unfit {
                None => Ok(status),
                Some(NotAllowed::StateOverride) => Err(RequestRefusal::StateOverride),
                Some(unfit) => Err(RequestRefusal::Method(unfit)),
            },
        };
        self.note(matches!(taken, Err(RequestRefusal::Limit(_))));
        taken.map_err(|refusal| RefusedMessage { refusal, id: message.single_id() })
    }

    /// Counts the messages that are refused in a row because of a limit.
    fn note(&self, refused: bool) {
        if !refused {
            self.refused.store(0, Ordering::Relaxed);
        } else if self.refused.fetch_add(1, Ordering::Relaxed) >= REFUSED_IN_A_ROW {
            self.abused.notify_one();
        }
    }

    /// Completes when a WebSocket of this client must be closed: the key is revoked or expired, or has lost a right that it had
    /// when the client connected, the client's address or page may not use it any more, or the client exceeds its limits without
    /// end. Returns the last message for the client.
    pub(crate) async fn revoked(&self) -> String {
        let mut changes = self.access.notifier.listen(Topic::Keys);
        loop {
            match self.key().await {
                // While the keys are unavailable, messages are refused and subscriptions go on.
                Ok(_) | Err(RequestRefusal::Unavailable) => {}
                Err(refusal) => return refusal.body(&Id::Unknown),
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
