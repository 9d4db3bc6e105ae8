//! Requests of a command to its own light client, and to upstreams for their chain id.

use rootlight_node::light::LightService;
use rootlight_server::service::Service as _;
use rootlight_upstream::{SharedUpstream, UpstreamError, call};
use serde_json::{Value, json};

/// Sends a request to a light client; an error is the message of the JSON-RPC error.
pub(super) async fn ask(service: &LightService, method: &str, params: Value) -> Result<Value, String> {
    ask_all(service, &[(method, params)]).await.pop().unwrap_or_else(|| Err("no answer".into()))
}

/// Sends several requests as a batch, so that all are answered by the same head. Returns one result for each; an error is the
/// message of the JSON-RPC error.
pub(super) async fn ask_all(service: &LightService, calls: &[(&str, Value)]) -> Vec<Result<Value, String>> {
    let member = |(id, (method, params)): (usize, &(&str, Value))| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let batch: Vec<Value> = calls.iter().enumerate().map(member).collect();
    let body = service.answer(Value::from(batch).to_string().into_bytes()).await.into_text();
    let answers: Value = serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default();
    // A refusal of the whole batch is one object instead of an array.
    let one = |index: usize| answers.get(index).unwrap_or(&answers);
    (0..calls.len()).map(|index| outcome(one(index))).collect()
}

/// The result of an answer, or the message of its error.
fn outcome(answer: &Value) -> Result<Value, String> {
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(answer["error"]["message"].as_str().unwrap_or("unknown error").to_owned()),
    }
}

/// Reads a number as JSON-RPC writes it: hexadecimal with `0x`.
pub(super) fn quantity(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// Asks an upstream for its chain id. If the chain id is not the expected one, returns a sentence that says so.
pub(super) async fn other_chain(
    upstream: &SharedUpstream,
    expected: u64,
) -> Result<Option<String>, UpstreamError> {
    let answer = upstream.request(vec![call("eth_chainId", json!([]))]).await.into_iter().next();
    let text = answer.unwrap_or_else(|| Err(UpstreamError::Silent("no response".into())))?;
    let is_expected = text.get() == format!("\"{expected:#x}\"");
    Ok((!is_expected)
        .then(|| format!("its chain id is {}, that of the network is {expected:#x}", text.get())))
}
