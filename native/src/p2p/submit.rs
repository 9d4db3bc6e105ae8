//! Transactions of peers, handed to a service.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, hex, keccak256};
use quick_cache::sync::Cache;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::service::Service;

/// Longest transaction that is taken, in bytes; stock nodes skip longer ones.
const MAX_TRANSACTION: usize = 128 * 1024;

/// Most transactions of one message that are taken.
const MAX_SUBMITTED: usize = 256;

/// Most messages with transactions that are worked on. Further ones are dropped: their senders tell other nodes too.
const MAX_SUBMITTING: usize = 8;

/// Most transactions that are remembered, and the time for which each is. Every peer tells of every transaction.
const MAX_REMEMBERED: usize = 4_096;
const REMEMBERED: Duration = Duration::from_secs(60);

/// Sends transactions of peers as any caller would, once for all peers.
pub(crate) struct Submitter {
    /// When each transaction was sent, by hash.
    sent: Cache<B256, Instant>,
    service: Arc<dyn Service>,
    runtime: Handle,
    places: Arc<Semaphore>,
}

impl Submitter {
    /// Sends to this service; must be called inside a runtime.
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        Self {
            sent: Cache::new(MAX_REMEMBERED),
            service,
            runtime: Handle::current(),
            places: Arc::new(Semaphore::new(MAX_SUBMITTING)),
        }
    }

    /// The transactions that were not sent a moment ago; `None` without any.
    fn new_ones(&self, transactions: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        let is_new = |raw: &Vec<u8>| {
            let hash = keccak256(raw);
            let known = self.sent.get(&hash).is_some_and(|sent| sent.elapsed() < REMEMBERED);
            if !known {
                self.sent.insert(hash, Instant::now());
            }
            !known
        };
        let short = transactions.into_iter().filter(|raw| raw.len() <= MAX_TRANSACTION);
        let new: Vec<Vec<u8>> = short.take(MAX_SUBMITTED).filter(is_new).collect();
        (!new.is_empty()).then_some(new)
    }

    /// Sends transactions, each in RLP. What the service refuses is dropped: whoever sent it is told nothing.
    pub(crate) fn submit(&self, transactions: Vec<Vec<u8>>) {
        // Transactions that are dropped are not remembered.
        let Ok(place) = self.places.clone().try_acquire_owned() else { return };
        let Some(new) = self.new_ones(transactions) else { return };
        let service = self.service.clone();
        self.runtime.spawn(async move {
            let _place = place;
            for raw in new {
                let params = hex::encode_prefixed(raw);
                let message = serde_json::json!({
                    "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [params],
                });
                drop(service.answer(message.to_string().into_bytes()).await);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::BoxFuture;

    use super::*;
    use crate::service::{Caller, HeldAnswer};

    /// Counts its messages.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Service for Counting {
        fn answer_to<'a>(&'a self, _: &'a Caller, _: Vec<u8>) -> BoxFuture<'a, HeldAnswer> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { HeldAnswer::served(None) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transaction_that_many_peers_tell_of_is_sent_once() {
        let service = Arc::new(Counting::default());
        let submitter = Submitter::new(service.clone());
        let sent = async || {
            for _ in 0..100 {
                submitter.submit(vec![vec![1; 100], vec![2; 100]]);
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            service.0.load(Ordering::SeqCst)
        };
        assert_eq!(sent().await, 2);
        submitter.submit(vec![vec![1; 100], vec![3; 100]]);
        assert_eq!(sent().await, 3);
        tokio::time::sleep(REMEMBERED).await;
        assert_eq!(sent().await, 5, "a pool may take later what it refused once");
    }
}
