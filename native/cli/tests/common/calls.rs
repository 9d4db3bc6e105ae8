//! Calls of services in this process, services as upstreams, and the recording of this repository.

use std::net::Ipv4Addr;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight::rpc::Message;
use rootlight::rpc::envelope::MAX_BATCH;
use rootlight_limits::caller_id::CallerId;
use rootlight_server::methods::dispatcher;
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{UpstreamError, UpstreamResult};
use serde_json::{Value, json};

fn message(method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into_bytes()
}

pub fn read_message(text: &[u8]) -> Message {
    Message::read(text, dispatcher(), MAX_BATCH)
}

fn read(answer: ReservedReply) -> Value {
    serde_json::from_str(&answer.into_text().unwrap()).unwrap()
}

/// Makes a call; returns the whole response.
pub async fn ask(service: &dyn Service, method: &str, params: Value) -> Value {
    read(service.answer(message(method, &params)).await)
}

/// As [`ask`], for a caller.
pub async fn ask_as(of: &dyn Service, caller: &Arc<Caller>, method: &str, params: Value) -> Value {
    read(of.answer_message(caller, read_message(&message(method, &params))).await)
}

/// Makes a call; returns its result or its error.
pub async fn outcome(service: &dyn Service, method: &str, params: Value) -> Result<Value, Value> {
    let mut answer = ask(service, method, params).await;
    match answer.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(answer["result"].take()),
    }
}

/// Answers a request of a light client as a node does, without reading a message.
pub async fn answered(service: &dyn Service, request: UpstreamRequest) -> UpstreamResult {
    let caller = Arc::new(CallerId::new(Ipv4Addr::LOCALHOST.into()).caller(None));
    let params = serde_json::from_str(&request.params).unwrap();
    let message = Message::of_host(request.method, params, dispatcher());
    let reply = service.answer_message(&caller, message).await.reply.unwrap();
    if let Ok(result) = &reply.responses()[0].outcome {
        return Ok(result.clone());
    }
    let answer: Value = serde_json::from_str(&reply.into_text().unwrap()).unwrap();
    let (code, message) = (&answer["error"]["code"], &answer["error"]["message"]);
    Err(UpstreamError::Rpc {
        code: code.as_i64().unwrap(),
        message: message.as_str().unwrap().into(),
        data: None,
    })
}

/// Answers requests of a light client one after another.
pub fn answers(service: &dyn Service, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
    Box::pin(async move {
        let mut results = Vec::new();
        for request in requests {
            results.push(answered(service, request).await);
        }
        results
    })
}

/// The recording in this repository: blocks 0 to 75 of a development network.
pub fn recording() -> Replay {
    Replay::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../recordings")).unwrap()
}
