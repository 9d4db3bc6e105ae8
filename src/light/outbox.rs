//! Sends this client's transactions to an upstream again, for an hour, while the upstream does not show them as mined.

use alloc::{format, sync::Arc, vec::Vec};

use alloy_primitives::hex;

use super::{RequestFailure, UpstreamRequest, UpstreamResponse, clock::Now, fact_store::FactCache};
use crate::types::{Transaction, json::location_from_json};

/// Milliseconds between two checks of the sent transactions.
const CHECK_INTERVAL_MS: u64 = 30_000;

/// Most checks, and so most re-sends, of one transaction at one upstream: one hour at [`CHECK_INTERVAL_MS`]. Only
/// checks that the upstream answered count. Mined transactions are still checked, because a reorganization may remove
/// them.
const MAX_CHECKS: u32 = 120;

/// The re-sends to one upstream. The host sends the requests and passes in the responses.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Time of the last check, in milliseconds of the monotonic clock.
    last_check: Option<u64>,
    /// The transactions sent by the time of the last check, oldest first.
    sent: Vec<SentBefore>,
}

/// A transaction that was sent before the last check.
#[derive(Debug)]
struct SentBefore {
    transaction: Arc<Transaction>,
    /// Number of checks that the upstream answered. `None` at the first check after the transaction was sent, which is too early
    /// to send it again.
    checks: Option<u32>,
}

impl SentBefore {
    /// Whether the last check asks for the transaction's receipt.
    fn is_due(&self) -> bool {
        self.checks.is_some_and(|checks| checks < MAX_CHECKS)
    }
}

impl Outbox {
    /// Requests for the receipts of the sent transactions; none before the interval is over.
    pub fn receipt_requests(&mut self, cache: &FactCache, now: Now) -> Vec<UpstreamRequest> {
        let last = *self.last_check.get_or_insert(now.millis);
        if now.millis.saturating_sub(last) < CHECK_INTERVAL_MS {
            return Vec::new();
        }
        self.last_check = Some(now.millis);
        let before = core::mem::take(&mut self.sent);
        let mut requests = Vec::new();
        for (hash, transaction) in cache.sent_by_hash() {
            // If a caller sends the same transaction again, it is a new allocation, and the count starts again.
            let before = before.iter().find(|before| Arc::ptr_eq(&before.transaction, transaction));
            let checks = before.map(|before| before.checks.unwrap_or(0));
            let sent = SentBefore { transaction: transaction.clone(), checks };
            if sent.is_due() {
                requests.push(UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#)));
            }
            self.sent.push(sent);
        }
        requests
    }

    /// Requests that send transactions again, given the responses to [`Self::receipt_requests`]. The responses to the
    /// returned requests are ignored.
    ///
    /// The report that a transaction is mined is not verified: an upstream that lies only stops re-sends that it could discard
    /// anyway.
    pub fn resend_requests(&mut self, responses: Vec<UpstreamResponse>) -> Vec<UpstreamRequest> {
        let mut requests = Vec::new();
        let due = self.sent.iter_mut().filter(|sent| sent.is_due());
        for (sent, response) in due.zip(responses) {
            // If the upstream was not reached, or asks for a pause, the transaction is not sent and the check does not count.
            if RequestFailure::of_silence(&response).is_some() {
                continue;
            }
            sent.checks = sent.checks.map(|checks| checks.saturating_add(1));
            if response.is_ok_and(|raw| matches!(location_from_json(raw.get()), Ok(Some(_)))) {
                continue;
            }
            let raw = format!(r#"["{}"]"#, hex::encode_prefixed(sent.transaction.encode()));
            requests.push(UpstreamRequest::new("eth_sendRawTransaction", raw));
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned, boxed::Box, vec};

    use alloy_primitives::{Address, B256};
    use serde_json::value::RawValue;

    use super::*;
    use crate::light::{FactStore, fact_store::SentTransaction};

    fn send(cache: &mut FactCache, nonce: u64) {
        let transaction = Transaction::remasc(nonce);
        let sent = SentTransaction {
            hash: transaction.hash(),
            sender: Address::ZERO,
            asker: Default::default(),
            transaction: Arc::new(transaction),
        };
        cache.absorb(FactStore { sent: vec![sent], ..FactStore::default() });
    }

    fn cache(nonces: &[u64]) -> FactCache {
        let mut cache = FactCache::new();
        nonces.iter().for_each(|nonce| send(&mut cache, *nonce));
        cache
    }

    /// The time of a check.
    fn check(number: u64) -> Now {
        Now { unix: 0, millis: 5 + number * CHECK_INTERVAL_MS }
    }

    /// An outbox that knows the transactions of the cache. They are due at check 2.
    fn outbox(cache: &FactCache) -> Outbox {
        let mut outbox = Outbox::default();
        assert!(outbox.receipt_requests(cache, check(0)).is_empty());
        assert!(
            outbox.receipt_requests(cache, check(1)).is_empty(),
            "new transactions wait for one interval"
        );
        outbox
    }

    /// Number of re-sends in a check at which the upstream gives one response, or 0 if the check sends no requests.
    fn resends(outbox: &mut Outbox, cache: &FactCache, number: u64, response: UpstreamResponse) -> usize {
        let requests = outbox.receipt_requests(cache, check(number));
        outbox.resend_requests(vec![response; requests.len()]).len()
    }

    fn says(json: &str) -> UpstreamResponse {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let raw: Box<RawValue> = raw.to_owned();
        Ok(raw)
    }

    fn receipt() -> UpstreamResponse {
        let hash = B256::repeat_byte(1);
        says(&format!(r#"{{"blockHash":"{hash}","blockNumber":"0x1","transactionIndex":"0x0","logs":[]}}"#))
    }

    #[test]
    fn transactions_that_are_not_mined_are_sent_again_once_an_interval() {
        let cache = cache(&[1, 2]);
        let mut outbox = outbox(&cache);
        let early = Now { millis: check(2).millis - 1, ..check(2) };
        assert!(outbox.receipt_requests(&cache, early).is_empty());
        let asked = outbox.receipt_requests(&cache, check(2));
        assert_eq!(asked.len(), 2);
        assert!(asked.iter().all(|request| request.method == "eth_getTransactionReceipt"));
        let again = outbox.resend_requests(vec![receipt(), says("null")]);
        let second = cache.sent_by_hash().nth(1).unwrap().1.encode();
        assert_eq!(again.len(), 1, "a mined transaction is not sent again");
        assert_eq!(again[0].params, format!(r#"["{}"]"#, hex::encode_prefixed(second)));
        let soon = Now { millis: check(2).millis + 1, ..check(2) };
        assert!(outbox.receipt_requests(&cache, soon).is_empty());
    }

    #[test]
    fn a_transaction_sent_just_before_a_check_waits_for_the_next_check() {
        let mut cache = cache(&[1]);
        let mut outbox = outbox(&cache);
        send(&mut cache, 2);
        assert_eq!(resends(&mut outbox, &cache, 2, says("null")), 1);
        assert_eq!(resends(&mut outbox, &cache, 3, says("null")), 2);
    }

    #[test]
    fn an_upstream_that_never_shows_a_transaction_gets_it_again_for_an_hour() {
        let mut cache = cache(&[1]);
        let mut outbox = outbox(&cache);
        let sent: usize = (2..300).map(|number| resends(&mut outbox, &cache, number, says("null"))).sum();
        assert_eq!(sent, MAX_CHECKS as usize);
        send(&mut cache, 1);
        let sent: usize = (300..600).map(|number| resends(&mut outbox, &cache, number, says("null"))).sum();
        assert_eq!(sent, MAX_CHECKS as usize, "a caller that sends the transaction again starts a new hour");
    }

    #[test]
    fn a_transaction_that_a_reorganization_removed_is_sent_again() {
        let cache = cache(&[1]);
        let mut outbox = outbox(&cache);
        assert_eq!(resends(&mut outbox, &cache, 2, receipt()), 0);
        assert_eq!(resends(&mut outbox, &cache, 3, says("null")), 1);
        let checks = (4..300).filter(|number| {
            let requests = outbox.receipt_requests(&cache, check(*number));
            outbox.resend_requests(vec![receipt(); requests.len()]);
            !requests.is_empty()
        });
        assert_eq!(
            checks.count(),
            MAX_CHECKS as usize - 2,
            "checks of a mined transaction end after the hour"
        );
    }

    #[test]
    fn an_upstream_that_gives_no_response_gets_no_resend_and_the_check_does_not_count() {
        let cache = cache(&[1]);
        let mut outbox = outbox(&cache);
        let failures = [RequestFailure::Transport("timeout".into()), RequestFailure::Busy { seconds: None }];
        for number in 2..300 {
            let failure = failures[number as usize % 2].clone();
            assert_eq!(resends(&mut outbox, &cache, number, Err(failure)), 0);
        }
        assert_eq!(resends(&mut outbox, &cache, 300, says("null")), 1);
    }

    #[test]
    fn only_a_receipt_with_a_block_shows_a_transaction_as_mined() {
        let cache = cache(&[1]);
        let mut outbox = outbox(&cache);
        for (number, json) in
            ["{}", "false", "[]", r#"{"blockNumber":null}"#, r#"{"blockHash":1}"#].iter().enumerate()
        {
            assert_eq!(resends(&mut outbox, &cache, 2 + number as u64, says(json)), 1, "{json}");
        }
        let error = RequestFailure::Rpc { code: -32601, message: "no such method".into() };
        assert_eq!(resends(&mut outbox, &cache, 9, Err(error)), 1);
    }
}
