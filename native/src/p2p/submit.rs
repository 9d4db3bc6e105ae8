//! Transactions of peers, handed to a service.

use std::sync::Arc;

use alloy_primitives::hex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::service::Service;

/// Longest transaction that is taken, in bytes; stock nodes skip longer ones.
const MAX_TRANSACTION: usize = 128 * 1024;

/// Most transactions of one message that are taken.
const MAX_SUBMITTED: usize = 256;

/// Most messages with transactions that are worked on. Further ones are dropped: their senders tell other nodes too.
const MAX_SUBMITTING: usize = 8;

/// Sends transactions of peers as any caller would.
pub(crate) struct Submitter {
    service: Arc<dyn Service>,
    runtime: Handle,
    places: Arc<Semaphore>,
}

impl Submitter {
    /// Sends to this service; must be called inside a runtime.
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        Self { service, runtime: Handle::current(), places: Arc::new(Semaphore::new(MAX_SUBMITTING)) }
    }

    /// Sends transactions, each in RLP. What the service refuses is dropped: whoever sent it is told nothing.
    pub(crate) fn submit(&self, transactions: Vec<Vec<u8>>) {
        let service = self.service.clone();
        let Ok(place) = self.places.clone().try_acquire_owned() else { return };
        self.runtime.spawn(async move {
            let _place = place;
            for raw in transactions.into_iter().filter(|raw| raw.len() <= MAX_TRANSACTION).take(MAX_SUBMITTED)
            {
                let params = hex::encode_prefixed(raw);
                let message = serde_json::json!({
                    "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [params],
                });
                drop(service.answer(message.to_string().into_bytes()).await);
            }
        });
    }
}
