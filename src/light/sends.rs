//! Tells whether upstreams have taken a transaction that a host sends to several of them at once, so that the host knows when to
//! stop waiting.
//!
//! One upstream that has the transaction is enough, because it passes the transaction on. So no message waits for an upstream that
//! does not respond.

use alloc::format;

use alloy_primitives::{B256, hex, keccak256};

use super::upstream::{RequestFailure, UpstreamRequest, UpstreamResponse};

/// The method that sends a signed transaction.
const SEND: &str = "eth_sendRawTransaction";

/// How long a host waits for the other upstreams after at least one upstream has taken each transaction of a round, in
/// milliseconds.
pub const SEND_GRACE: u64 = 1_000;

impl UpstreamRequest {
    /// Whether this request sends a transaction.
    pub fn sends(&self) -> bool {
        self.method == SEND
    }

    /// Whether the response says that the upstream has the transaction which this request sends.
    pub fn is_taken(&self, response: &UpstreamResponse) -> bool {
        let raw = self.params.strip_prefix("[\"").and_then(|params| params.strip_suffix("\"]"));
        let raw = raw.filter(|_| self.sends()).and_then(|raw| hex::decode(raw).ok());
        raw.is_some_and(|raw| has_taken(keccak256(raw), response))
    }
}

/// Whether the response says that the upstream has the transaction with this hash.
pub(crate) fn has_taken(hash: B256, response: &UpstreamResponse) -> bool {
    match response {
        // A node answers with the hash of the transaction that it has accepted.
        Ok(raw) => raw.get().eq_ignore_ascii_case(&format!("\"{hash}\"")),
        // The node has the transaction already, from another upstream or an earlier attempt.
        Err(RequestFailure::Rpc { message, .. }) => is_known(message),
        Err(_) => false,
    }
}

/// Whether an error message says that the node has the transaction already. Nodes use different words.
fn is_known(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["already known", "already exists", "known transaction", "already imported"]
        .iter()
        .any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn only_the_hash_of_the_transaction_or_that_it_is_known_says_that_it_is_taken() {
        let sent = UpstreamRequest::new(SEND, r#"["0x1234"]"#.into());
        let hash = keccak256([0x12, 0x34]);
        let response = |text: alloc::string::String| Ok(RawValue::from_string(text).unwrap());
        let error = |text: &str| Err(RequestFailure::Rpc { code: -32010, message: text.into() });
        assert!(sent.sends() && sent.is_taken(&response(format!("\"{hash}\""))));
        assert!(sent.is_taken(&error("Already known")));
        assert!(
            !sent.is_taken(&response(format!("\"{}\"", B256::ZERO)))
                && !sent.is_taken(&response("null".into()))
        );
        assert!(!sent.is_taken(&error("nonce too low")));
        let other = UpstreamRequest::new("eth_getCode", r#"["0x1234"]"#.into());
        assert!(!other.sends() && !other.is_taken(&response(format!("\"{hash}\""))));
    }
}
