//! Sends this client's transactions to an upstream again until the upstream shows them as mined.

use alloc::{format, sync::Arc, vec::Vec};

use alloy_primitives::{B256, hex};

use super::{UpstreamRequest, UpstreamResponse, clock::Now, store::FactCache};
use crate::types::Transaction;

/// Milliseconds between two checks of the sent transactions. An upstream whose pool dropped a transaction gets it
/// again.
const INTERVAL: u64 = 30_000;

/// How often one transaction is sent to an upstream again: for an hour.
const MOST: u32 = 120;

/// The repeated sends to one upstream. The host sends the requests and passes in the responses.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Time of the last check, in milliseconds of the host's clock.
    last: Option<u64>,
    /// One entry per transaction, in the order of sending. A mined transaction has the count [`MOST`].
    reminders: Vec<Reminder>,
}

#[derive(Debug)]
struct Reminder {
    hash: B256,
    transaction: Arc<Transaction>,
    count: u32,
}

impl Outbox {
    /// Requests for the receipts of the transactions that were sent; none before the interval is over.
    pub fn requests(&mut self, cache: &FactCache, now: Now) -> Vec<UpstreamRequest> {
        let last = *self.last.get_or_insert(now.millis);
        // If the clock was set back, the interval starts again.
        if now.millis < last {
            self.last = Some(now.millis);
        }
        if now.millis.saturating_sub(last) < INTERVAL {
            return Vec::new();
        }
        self.last = Some(now.millis);
        let known = core::mem::take(&mut self.reminders);
        let reminder = |(hash, transaction): (B256, &Arc<Transaction>)| {
            let count =
                known.iter().find(|reminder| reminder.hash == hash).map_or(0, |reminder| reminder.count);
            Reminder { hash, transaction: transaction.clone(), count }
        };
        self.reminders = cache.sent_by_hash().map(reminder).collect();
        let due = self.reminders.iter().filter(|reminder| reminder.count < MOST);
        due.map(|reminder| {
            UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{}"]"#, reminder.hash))
        })
        .collect()
    }

    /// Requests that send transactions again, given the responses to [`Self::requests`]. Errors of the upstream about
    /// them are not evaluated here.
    ///
    /// An upstream that claims that a transaction is mined only ends the repeated sends to itself. It could drop those
    /// as well.
    pub fn reminders(&mut self, responses: Vec<UpstreamResponse>) -> Vec<UpstreamRequest> {
        let mut requests = Vec::new();
        let due = self.reminders.iter_mut().filter(|reminder| reminder.count < MOST);
        for (reminder, response) in due.zip(responses) {
            if matches!(&response, Ok(raw) if raw.get() != "null") {
                reminder.count = MOST;
                continue;
            }
            reminder.count = reminder.count.saturating_add(1);
            let raw = format!(r#"["{}"]"#, hex::encode_prefixed(reminder.transaction.encode()));
            requests.push(UpstreamRequest::new("eth_sendRawTransaction", raw));
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned, boxed::Box, vec};

    use alloy_primitives::Address;
    use serde_json::value::RawValue;

    use super::*;
    use crate::light::{FactStore, RequestFailure, store::Sent};

    fn cache(nonces: &[u64]) -> FactCache {
        let mut learned = FactStore::default();
        for nonce in nonces {
            let transaction = Transaction::remasc(*nonce);
            let sent =
                Sent { hash: transaction.hash(), sender: Address::ZERO, transaction: Arc::new(transaction) };
            learned.sent.push(sent);
        }
        let mut cache = FactCache::new();
        cache.absorb(learned);
        cache
    }

    fn at(millis: u64) -> Now {
        Now { unix: 0, millis }
    }

    fn says(json: &str) -> UpstreamResponse {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let raw: Box<RawValue> = raw.to_owned();
        Ok(raw)
    }

    #[test]
    fn transactions_that_are_not_mined_are_sent_again_once_an_interval() {
        let (cache, mut outbox) = (cache(&[1, 2]), Outbox::default());
        assert!(outbox.requests(&cache, at(5)).is_empty(), "it was only just sent");
        assert!(outbox.requests(&cache, at(5 + INTERVAL - 1)).is_empty());
        let asked = outbox.requests(&cache, at(5 + INTERVAL));
        assert_eq!(asked.len(), 2);
        assert!(asked.iter().all(|request| request.method == "eth_getTransactionReceipt"));
        let again = outbox.reminders(vec![says(r#"{"blockNumber":"0x1"}"#), says("null")]);
        let second = cache.sent().nth(1).unwrap().encode();
        assert_eq!(again.len(), 1, "a mined transaction is not sent again");
        assert_eq!(again[0].params, format!(r#"["{}"]"#, hex::encode_prefixed(second)));
        assert!(outbox.requests(&cache, at(6 + INTERVAL)).is_empty());
        assert_eq!(
            outbox.requests(&cache, at(5 + 2 * INTERVAL)).len(),
            1,
            "a mined transaction is not checked again"
        );
    }

    #[test]
    fn an_upstream_that_never_shows_a_transaction_gets_it_again_for_an_hour() {
        let (cache, mut outbox) = (cache(&[1]), Outbox::default());
        outbox.requests(&cache, at(0));
        let mut reminded = 0;
        for look in 1..=2 * u64::from(MOST) {
            outbox.requests(&cache, at(look * INTERVAL));
            let silent = Err(RequestFailure::Transport("timeout".into()));
            reminded += outbox.reminders(vec![silent]).len();
        }
        assert_eq!(reminded, MOST as usize);
    }

    #[test]
    fn a_clock_set_back_does_not_stop_repeated_sends() {
        let (cache, mut outbox) = (cache(&[1]), Outbox::default());
        outbox.requests(&cache, at(1_000_000_000));
        assert!(outbox.requests(&cache, at(1_000)).is_empty());
        assert_eq!(outbox.requests(&cache, at(1_000 + INTERVAL)).len(), 1);
    }
}
