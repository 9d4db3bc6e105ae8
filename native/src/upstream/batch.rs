//! JSON-RPC batches: writing one, and finding each call's answer in what came back.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use rootlight::types::json::for_each_member;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

use super::error::Secrets;
use super::{parse_reply, Call, CallResult, UpstreamError};
use crate::budget::Held;

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a [Value],
}

/// The message for some calls: an object for one, an array for more; ids count from `first`.
pub(crate) fn encode(calls: &[Call], first: u64) -> Vec<u8> {
    let requests: Vec<Request<'_>> = calls
        .iter()
        .zip(first..)
        .map(|(call, id)| Request { jsonrpc: "2.0", id, method: &call.method, params: &call.params })
        .collect();
    let text = match requests.as_slice() {
        [only] => serde_json::to_vec(only),
        all => serde_json::to_vec(all),
    };
    // Strings and values that came out of a JSON parser always serialize.
    text.unwrap_or_default()
}

/// What an upstream said to a batch.
pub(crate) enum Decoded {
    /// Results in the order of the calls.
    Results(Vec<CallResult>),
    /// One error for the whole batch, for instance that it is too long.
    Refused(UpstreamError),
}

/// Reads the answer to `count` calls whose ids count from `first`.
pub(crate) fn decode(text: &str, first: u64, count: usize) -> Result<Decoded, UpstreamError> {
    if count == 1 && !text.trim_start().starts_with('[') {
        return Ok(Decoded::Results(vec![parse_reply(text)?.result]));
    }
    if text.trim_start().starts_with('{') {
        let refusal = match parse_reply(text)?.result {
            Err(error) => error,
            Ok(_) => UpstreamError::Malformed("single answer to a batch".into()),
        };
        return Ok(Decoded::Refused(refusal));
    }
    let mut results: Vec<Option<CallResult>> = Vec::new();
    results.resize_with(count, || None);
    let mut put = |member: &RawValue| {
        let Ok(reply) = parse_reply(member.get()) else { return };
        let slot = reply
            .id
            .and_then(|id| usize::try_from(id.checked_sub(first)?).ok())
            .and_then(|at| results.get_mut(at));
        if let Some(slot @ None) = slot {
            *slot = Some(reply.result);
        }
    };
    let mut left = count;
    let read = for_each_member(text, &mut |member| {
        put(member);
        left = left.saturating_sub(1);
        left > 0
    });
    read.map_err(|failure| UpstreamError::Malformed(failure.to_string()))?;
    let missing = || Err(UpstreamError::Malformed("no answer with this id in the batch".into()));
    Ok(Decoded::Results(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()))
}

/// A way to have one message answered.
pub(crate) trait Exchange: Sync {
    /// Sends one message until it is answered or the tries are used up.
    fn send<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(Decoded, Held), UpstreamError>>;

    /// Calls per message that the upstream is known to take; shrinks when it refuses a batch.
    fn size(&self) -> &AtomicUsize;

    /// Messages on their way at the same time.
    fn parallel(&self) -> usize;

    /// For logs.
    fn label(&self) -> &str;

    /// What no error may repeat.
    fn secrets(&self) -> &Secrets;
}

/// Asks any number of calls, in messages of the size the upstream takes. Gives the bytes of the budget that the results
/// take, if they are to be `counted` until whoever asked is done with them; otherwise only those of messages that are
/// being read count.
pub(crate) async fn ask_all(
    exchange: &dyn Exchange,
    calls: Vec<Call>,
    counted: bool,
) -> (Vec<CallResult>, Held) {
    let started = Instant::now();
    let count = calls.len();
    let size = exchange.size().load(Ordering::Relaxed).max(1);
    let parts: Vec<Vec<Call>> = calls.chunks(size).map(<[Call]>::to_vec).collect();
    let asked = stream::iter(parts).map(|part| ask_one(exchange, part));
    let mut answered = asked.buffered(exchange.parallel().max(1));
    let (mut results, mut held) = (Vec::with_capacity(count), Held::default());
    while let Some((part, bytes)) = answered.next().await {
        results
            .extend(part.into_iter().map(|result| result.map_err(|error| error.without(exchange.secrets()))));
        if counted {
            held.merge(bytes);
        }
    }
    drop(answered);
    debug!(upstream = %exchange.label(), calls = count, elapsed = ?started.elapsed(), "upstream answered");
    (results, held)
}

/// Asks some calls in one message, in halves where the upstream refuses the whole.
fn ask_one(exchange: &dyn Exchange, calls: Vec<Call>) -> BoxFuture<'_, (Vec<CallResult>, Held)> {
    Box::pin(async move {
        let count = calls.len();
        let refusal = match exchange.send(&calls).await {
            Ok((Decoded::Results(results), held)) => return (results, held),
            Ok((Decoded::Refused(refusal), _)) => refusal.without(exchange.secrets()),
            Err(error) => return (calls.iter().map(|_| Err(error.clone())).collect(), Held::default()),
        };
        if count == 1 {
            return (vec![Err(refusal)], Held::default());
        }
        let half = count.div_ceil(2);
        debug!(upstream = %exchange.label(), %refusal, "batch of {count} refused, asking {half} at a time");
        exchange.size().fetch_min(half, Ordering::Relaxed);
        let mut first = calls;
        let second = first.split_off(half);
        let (mut results, mut held) = ask_one(exchange, first).await;
        let (others, more) = ask_one(exchange, second).await;
        results.extend(others);
        held.merge(more);
        (results, held)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str) -> Call {
        Call::new(method, vec![Value::from("0x1")])
    }

    #[test]
    fn one_call_is_an_object() {
        let text = encode(&[call("a")], 1);
        assert_eq!(text, br#"{"jsonrpc":"2.0","id":1,"method":"a","params":["0x1"]}"#);
        assert!(encode(&[call("a"), call("b")], 1).starts_with(b"["));
    }

    #[test]
    fn answers_in_any_order_and_with_gaps() {
        let text = r#"[{"id":3,"result":"c"},{"id":1,"result":"a"},{"id":1,"result":"later"},{"id":9,"result":"x"},7]"#;
        let Ok(Decoded::Results(results)) = decode(text, 1, 5) else { panic!() };
        assert_eq!(results[0].as_ref().unwrap().get(), "\"a\"");
        assert!(matches!(results[1], Err(UpstreamError::Malformed(_))));
        assert_eq!(results[2].as_ref().unwrap().get(), "\"c\"");
    }

    #[test]
    fn members_beyond_those_asked_for_are_only_passed_over() {
        let text = format!(r#"[{{"id":1,"result":"a"}},{}0]"#, "0,".repeat(100_000));
        let Ok(Decoded::Results(results)) = decode(&text, 1, 1) else { panic!() };
        assert_eq!(results[0].as_ref().unwrap().get(), "\"a\"");
        assert!(decode(&text[..text.len() - 1], 1, 1).is_err(), "no end");
    }

    #[test]
    fn a_refused_batch_is_told_apart() {
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long"}}"#;
        assert!(matches!(decode(text, 1, 2), Ok(Decoded::Refused(UpstreamError::Rpc { code: -32600, .. }))));
        assert!(decode("nonsense", 1, 2).is_err());
    }
}
