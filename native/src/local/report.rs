//! Log lines for the user: blocks, failed transactions, failed calls.

use rootlight::dev::DevEvent;
use rootlight::rpc::Answer;

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

/// The methods whose failures are logged: those that execute code.
const EXECUTING: [&str; 4] = ["eth_call", "eth_estimateGas", "eth_sendTransaction", "eth_sendRawTransaction"];

/// The log line for a single call that failed; `None` for other messages and methods.
pub(super) fn failed_call(answer: &Answer) -> Option<String> {
    let (method, error) = &**answer.failed.as_ref()?;
    EXECUTING.contains(method).then(|| format!("{method}: {error}"))
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::RpcError;

    use super::*;

    #[test]
    fn failed_calls_give_a_log_line() {
        let answer = |method, error: Option<RpcError>| Answer {
            failed: error.map(|error| Box::new((method, error))),
            ..Answer::default()
        };
        let line = failed_call(&answer("eth_call", Some(RpcError::ParameterCount)));
        assert_eq!(line.as_deref(), Some("eth_call: method parameters invalid"));
        assert_eq!(failed_call(&answer("eth_call", None)), None);
        assert_eq!(failed_call(&answer("eth_getBalance", Some(RpcError::ParameterCount))), None);
    }
}
