//! The log lines of a development chain for its user: blocks, failed transactions, failed calls.

use rootlight::dev::DevEvent;
use rootlight::rpc::{Method, Reply, RpcError, Runs};
use rootlight_limits::sanitize::sanitize;

/// The log line for an event of a development chain.
pub(super) fn event(event: &DevEvent) -> String {
    match event {
        DevEvent::Mined { header, transactions } => {
            let gas = header.gas_used;
            format!("block {} {}: {transactions} transactions, {gas} gas", header.number, header.hash())
        }
        DevEvent::Failed { hash, halt: Some(halt), .. } => format!("transaction {hash} failed: {halt}"),
        DevEvent::Failed { hash, output, .. } => match rootlight::rpc::revert_reason(output) {
            Some(reason) => format!("transaction {hash} reverted: {}", sanitize(reason)),
            None => format!("transaction {hash} reverted with {}", sanitize(output)),
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

/// The log line for a single call or transaction that failed; `None` for other messages and methods. The error is escaped,
/// because it contains text of contracts and callers.
pub(super) fn failed_call(reply: &Reply) -> Option<String> {
    let (row, error) = reply.failed()?;
    line(row, error)
}

/// The log line for an error of a method that runs code.
fn line(row: &Method, error: &RpcError) -> Option<String> {
    matches!(row.runs, Runs::Call | Runs::Transaction).then(|| format!("{}: {}", row.name, sanitize(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{B256, U256};
    use rootlight::rpc::Dispatcher;
    use rootlight_limits::sanitize::is_unseen;

    fn row(name: &str) -> &'static Method {
        Dispatcher::default().find(name).unwrap()
    }

    #[test]
    fn failed_calls_give_a_log_line() {
        let error = RpcError::ParameterCount;
        assert_eq!(line(row("eth_call"), &error).as_deref(), Some("eth_call: method parameters invalid"));
        for logged in ["eth_estimateGas", "eth_sendTransaction", "eth_sendRawTransaction"] {
            assert!(line(row(logged), &error).is_some(), "{logged}");
        }
        for other in ["eth_getBalance", "eth_createAccessList", "eth_signTransaction", "evm_mine"] {
            assert_eq!(line(row(other), &error), None, "{other}");
        }
    }

    #[test]
    fn revert_texts_are_cut_and_escaped_in_the_log() {
        let said = format!("\n\r ERROR forged \u{202e}{}", "x".repeat(4_000_000));
        let text = [&[0x08, 0xc3, 0x79, 0xa0][..], &abi_text(&said)].concat();
        let failed = DevEvent::Failed { hash: B256::ZERO, halt: None, output: text.into() };
        let raw = DevEvent::Failed { hash: B256::ZERO, halt: None, output: vec![1; 4_000_000].into() };
        let lines = [event(&failed), event(&raw), line(row("eth_call"), &RpcError::Halted(said)).unwrap()];
        assert!(lines[0].contains("forged") && lines[2].contains("forged"), "{lines:?}");
        for line in lines {
            assert!(line.len() < 1_200 && !line.chars().any(is_unseen), "{}", line.len());
        }
    }

    /// A text as the parameter of `Error(string)`.
    fn abi_text(text: &str) -> Vec<u8> {
        let word = |number: usize| B256::from(U256::from(number)).to_vec();
        let padding = vec![0; text.len().next_multiple_of(32) - text.len()];
        [word(32), word(text.len()), text.as_bytes().to_vec(), padding].concat()
    }
}
