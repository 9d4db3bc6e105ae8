//! Log lines for the user: blocks, failed transactions, failed calls.

use rootlight::dev::DevEvent;
use serde::Deserialize;

/// The largest message, in bytes, that is examined for a failed call.
const MAX_LOOKED_AT: usize = 16 * 1024;

/// The log line for an event of a development chain.
pub(super) fn event(event: &DevEvent) -> String {
    match event {
        DevEvent::Mined { header, transactions } => {
            let gas = header.gas_used;
            format!("block {} {}: {transactions} transactions, {gas} gas", header.number, header.hash())
        }
        DevEvent::Failed { hash, halt: Some(halt), .. } => format!("transaction {hash} failed: {halt}"),
        DevEvent::Failed { hash, output, .. } => match rootlight::rpc::revert_reason(output) {
            Some(reason) => format!("transaction {hash} reverted: {reason}"),
            None => format!("transaction {hash} reverted with {output}"),
        },
        DevEvent::Unsimulated { hash, method } => {
            format!("transaction {hash} called {method}, which is not simulated: that call failed")
        }
        DevEvent::TooSlow { hash } => {
            format!("transaction {hash} was dropped: it takes longer than the time limit of a block")
        }
        DevEvent::Reorganised { removed, added } => {
            format!("reorganisation: {removed} blocks left the chain, {added} took their place")
        }
        other => format!("{other:?}"),
    }
}

#[derive(Deserialize)]
struct Request {
    method: String,
}

#[derive(Deserialize)]
struct Refused {
    error: Failure,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

/// The methods whose failures are logged: those that execute code.
const EXECUTING: [&str; 4] = ["eth_call", "eth_estimateGas", "eth_sendTransaction", "eth_sendRawTransaction"];

/// The log line for a single call that failed; `None` for other messages and methods.
pub(super) fn failed_call(message: &[u8], reply: &str) -> Option<String> {
    if message.len() > MAX_LOOKED_AT || !reply.contains("\"error\":{") {
        return None;
    }
    let request: Request = serde_json::from_slice(message).ok()?;
    let refused: Refused = serde_json::from_str(reply).ok()?;
    let executes = EXECUTING.contains(&request.method.as_str());
    executes.then(|| format!("{}: {}", request.method, refused.error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_calls_give_a_log_line() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}"#;
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32015,"message":"VM Exception"}}"#;
        assert_eq!(failed_call(message, refused).as_deref(), Some("eth_call: VM Exception"));
        assert_eq!(failed_call(message, r#"{"jsonrpc":"2.0","id":1,"result":"0x"}"#), None);
        let other = br#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[]}"#;
        assert_eq!(failed_call(other, refused), None);
    }
}
