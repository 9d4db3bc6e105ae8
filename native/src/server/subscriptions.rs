//! The subscriptions of one WebSocket connection.
//!
//! The service treats subscriptions like filters. When the chain has changed, this module polls them and sends the
//! results as notifications.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, Notify};

use rootlight::rpc::MAX_RESPONSE;
use rootlight::types::json::for_each_member;

use super::limits::Limits;
use super::places::Guest;
use super::ws::Outgoing;
use crate::budget::{self, Held};
use crate::envelope;
use crate::service::{Answer, Caller, SharedService};

/// JSON-RPC code of a limit (EIP-1474).
const LIMIT_EXCEEDED: i32 = -32005;

/// JSON-RPC code of an answer that is too long, the same as in the core.
const RESPONSE_SIZE: i32 = -32011;

/// The largest batch that is split into its requests here. The service refuses longer ones.
const MAX_BATCH: usize = 50;

/// The members of a request that matter here.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The members of a response that matter here.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i32,
}

/// The service's error code for an unknown filter id.
const FILTER_NOT_FOUND: i32 = -32000;

/// The open subscriptions of a connection.
#[derive(Default)]
struct Open {
    /// The subscriptions by id, with whether the client has been sent the id and may receive notifications.
    ids: BTreeMap<String, bool>,
    /// Whether the connection has ended.
    ended: bool,
}

/// The subscriptions of one connection.
pub(super) struct Subscriptions {
    service: SharedService,
    limits: Arc<Limits>,
    /// The connection's client, without notifications. For messages that do not concern subscriptions.
    caller: Caller,
    /// The same client, able to receive notifications.
    subscriber: Caller,
    guest: Arc<Guest>,
    open: Mutex<Open>,
    /// Signals that a new subscription may have notifications already.
    begun: Notify,
}

impl Subscriptions {
    /// A connection without subscriptions.
    pub(super) fn new(
        service: SharedService,
        limits: Arc<Limits>,
        guest: Arc<Guest>,
        caller: Caller,
    ) -> Arc<Self> {
        let subscriber = Caller { notified: true, ..caller.clone() };
        let (open, begun) = (Mutex::default(), Notify::new());
        Arc::new(Self { service, limits, caller, subscriber, guest, open, begun })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a message. Also returns the ids of new subscriptions; the caller passes them to [`Self::begin`] once
    /// the answer is in the send queue.
    pub(super) async fn answer(self: &Arc<Self>, message: Vec<u8>) -> (Answer, Vec<String>) {
        let mut made = Vec::new();
        let answer = match self.members(&message) {
            None => self.service.answer_to(&self.caller, message).await,
            Some((false, members)) => match members.first() {
                Some(member) => self.member(member, &mut made).await,
                None => Answer::served(None),
            },
            Some((true, members)) => {
                let (mut text, mut held) = (vec![b'['], Held::default());
                for member in members {
                    let answer = self.member(&member, &mut made).await;
                    let Some(mut body) = answer.body else { continue };
                    if text.len().saturating_add(body.len()) > MAX_RESPONSE {
                        let words = format!("Response size limit of {MAX_RESPONSE} bytes exceeded");
                        body = envelope::error_for(member.get().as_bytes(), RESPONSE_SIZE, &words);
                    } else {
                        held.merge(answer.held);
                    }
                    if text.len() > 1 {
                        text.push(b',');
                    }
                    text.append(&mut body);
                }
                let said = text.len() > 1;
                text.push(b']');
                Answer::served(said.then_some(text)).holding(held)
            }
        };
        (answer, made)
    }

    /// Splits a message that may concern subscriptions into its requests. Returns whether it is a batch, and the
    /// requests; `None` for all other messages.
    fn members(&self, message: &[u8]) -> Option<(bool, Vec<Box<RawValue>>)> {
        // A cheap test that lets other messages pass; `member` looks at the method.
        let about = message.windows(b"subscribe".len()).any(|part| part == b"subscribe");
        if !about || self.service.changes().is_none() {
            return None;
        }
        let batch = message.trim_ascii_start().starts_with(b"[");
        let mut members: Vec<Box<RawValue>> = Vec::new();
        if batch {
            let text = std::str::from_utf8(message).ok()?;
            for_each_member(text, &mut |member| {
                members.push(member.to_owned());
                members.len() <= MAX_BATCH
            })
            .ok()?;
        } else {
            members.push(serde_json::from_slice(message).ok()?);
        }
        (1..=MAX_BATCH).contains(&members.len()).then_some((batch, members))
    }

    async fn member(self: &Arc<Self>, member: &RawValue, made: &mut Vec<String>) -> Answer {
        let text = member.get();
        let message = text.as_bytes().to_vec();
        match serde_json::from_str::<Request<'_>>(text) {
            // A request without an id has no response, so the client could not learn the subscription's id.
            Ok(request) if request.method == "eth_subscribe" => match request.id {
                Some(_) => Answer::served(self.subscribe(message, made).await),
                None => Answer::served(None),
            },
            Ok(request) if request.method == "eth_unsubscribe" => {
                if self.forget(request.params) {
                    return self.service.answer_to(&self.subscriber, message).await;
                }
                let answer = |id: &RawValue| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":false}}"#);
                Answer::served(request.id.map(|id| answer(id).into_bytes()))
            }
            _ => self.service.answer_to(&self.caller, message).await,
        }
    }

    /// Subscribes in a separate task, so that the service's subscription is ended even if the connection ends
    /// meanwhile.
    async fn subscribe(self: &Arc<Self>, message: Vec<u8>, made: &mut Vec<String>) -> Option<Vec<u8>> {
        let most = self.limits.subscriptions;
        if self.open().ids.len() >= most {
            let text = format!("Limit exceeded: {most} subscriptions on this connection");
            return Some(envelope::error_for(&message, LIMIT_EXCEEDED, &text));
        }
        let this = self.clone();
        let subscribing = tokio::spawn(async move {
            let body = this.service.answer_to(&this.subscriber, message).await.body?;
            let reply: Reply<'_> = serde_json::from_slice(&body).ok()?;
            let id: Option<String> = reply.result.and_then(|id| serde_json::from_str(id.get()).ok());
            if let Some(id) = &id {
                let ended = {
                    let mut open = this.open();
                    open.ids.insert(id.clone(), false);
                    open.ended
                };
                if ended {
                    this.end().await;
                }
            }
            Some((body, id))
        });
        let (body, id) = subscribing.await.ok()??;
        made.extend(id);
        Some(body)
    }

    /// Removes a subscription; returns `false` if this connection does not have it. Returns `true` for invalid
    /// parameters, which the service refuses.
    fn forget(&self, params: Option<&RawValue>) -> bool {
        let ids: Option<[String; 1]> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        match ids {
            Some([id]) => self.open().ids.remove(&id.to_ascii_lowercase()).is_some(),
            None => true,
        }
    }

    /// Starts sending notifications of these subscriptions.
    pub(super) fn begin(&self, made: Vec<String>) {
        let mut open = self.open();
        let begun = made.iter().filter_map(|id| open.ids.get_mut(id).map(|begun| *begun = true)).count();
        if begun > 0 {
            self.begun.notify_one();
        }
    }

    /// Sends notifications while the connection is open. Returns the reason if it cannot continue.
    pub(super) async fn notify(&self, queue: mpsc::Sender<Outgoing>) -> &'static str {
        let Some(mut changes) = self.service.changes() else { return std::future::pending().await };
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return "the service has ended" },
                () = self.begun.notified() => {}
                () = tokio::time::sleep(self.limits.subscription_interval) => {}
            }
            let begun = |(id, begun): (&String, &bool)| begun.then(|| id.clone());
            let ids: Vec<String> = self.open().ids.iter().filter_map(begun).collect();
            for id in ids {
                if !self.tell(&id, &queue).await {
                    return "a subscription was lost";
                }
            }
        }
    }

    /// Sends the notifications of one subscription. Returns `false` if they cannot be sent or the service no longer
    /// has the subscription.
    async fn tell(&self, id: &str, queue: &mpsc::Sender<Outgoing>) -> bool {
        let Some(body) = self.call("eth_getFilterChanges", id).await else { return true };
        let Ok(reply) = serde_json::from_slice::<Reply<'_>>(&body) else { return true };
        let results: Vec<&RawValue> =
            reply.result.and_then(|results| serde_json::from_str(results.get()).ok()).unwrap_or_default();
        for result in results {
            // The client may have unsubscribed meanwhile.
            if !self.open().ids.contains_key(id) {
                return true;
            }
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{id}","result":{result}}}}}"#
            );
            let Some(held) = budget::hold_answer(text.len()).await else { return false };
            if queue.send(Outgoing::new(&self.guest, text.into_bytes(), held)).await.is_err() {
                return true;
            }
        }
        let gone = reply.error.is_some_and(|error| error.code == FILTER_NOT_FOUND);
        !(gone && self.open().ids.contains_key(id))
    }

    async fn call(&self, method: &str, id: &str) -> Option<Vec<u8>> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":["{id}"]}}"#);
        self.service.answer_to(&self.subscriber, message.into_bytes()).await.body
    }

    /// Ends all subscriptions of a closed connection.
    pub(super) async fn end(&self) {
        let ids = {
            let mut open = self.open();
            open.ended = true;
            std::mem::take(&mut open.ids)
        };
        for id in ids.into_keys() {
            self.call("eth_unsubscribe", &id).await;
        }
    }
}
