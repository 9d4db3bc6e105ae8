//! Passes transactions of peers to a service, as `eth_sendRawTransaction` of a caller at the peer's address.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, hex, keccak256};
use quick_cache::sync::Cache;
use rootlight::rpc::Message;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::quota_owner::QuotaOwner;
use rootlight_server::methods::dispatcher;
use rootlight_server::service::Service;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Longest transaction that is taken, in bytes; the reference node (rskj) skips longer ones.
const MAX_TRANSACTION: usize = 128 * 1024;

/// Most transactions in the queue of one address. Further ones are dropped; other nodes of the network still have them.
const MAX_WAITING: usize = 256;
/// Most bytes in the queue of one address.
const MAX_WAITING_BYTES: usize = 256 * 1024;

/// Most addresses with a queue: twice as many as there are peers at a time, because a queue may still be full after its
/// peer has left.
const MAX_ADDRESSES: usize = 64;

/// Most sent transactions that are remembered, because every peer announces every transaction, and each is to be sent once.
const MAX_REMEMBERED: usize = 4_096;
/// For how long a sent transaction is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Sends transactions of peers, each once for all peers. Each address has its own queue, so that an address which sends many delays and
/// drops only its own.
pub(crate) struct Submitter {
    /// When each transaction was sent, by hash.
    sent: Arc<Cache<B256, Instant>>,
    service: Arc<dyn Service>,
    runtime: Handle,
    /// The queues, by quota owner, which is a peer's address here. Each queue has a task that sends its transactions, and exists as long.
    waiting: Arc<Mutex<BTreeMap<QuotaOwner, SubmitQueue>>>,
}

/// The transactions of one address that wait.
#[derive(Default)]
struct SubmitQueue {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl SubmitQueue {
    fn has_room(&self, bytes: usize) -> bool {
        self.queue.len() < MAX_WAITING && self.bytes.saturating_add(bytes) <= MAX_WAITING_BYTES
    }

    fn push(&mut self, raw: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(raw.len());
        self.queue.push_back(raw);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let raw = self.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(raw.len());
        Some(raw)
    }
}

impl Submitter {
    /// Sends to this service; must be called inside a runtime.
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        Self {
            sent: Arc::new(Cache::new(MAX_REMEMBERED)),
            service,
            runtime: Handle::current(),
            waiting: Arc::default(),
        }
    }

    /// Sends transactions of an address, each in RLP. A transaction that the service refuses is dropped; the peer gets no error.
    pub(crate) fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>) {
        let owner = peer.quota_owner();
        let short = transactions.into_iter().filter(|raw| raw.len() <= MAX_TRANSACTION).take(MAX_WAITING);
        let new: Vec<Vec<u8>> = short.filter(|raw| is_new(&self.sent, &keccak256(raw))).collect();
        let mut waiting = lock(&self.waiting);
        let has_task = waiting.contains_key(&owner);
        if !has_task && waiting.len() >= MAX_ADDRESSES {
            return;
        }
        let queue = waiting.entry(owner).or_default();
        for raw in new {
            if queue.has_room(raw.len()) {
                queue.push(raw);
            }
        }
        if !has_task {
            drop(waiting);
            let (service, sent, waiting) = (self.service.clone(), self.sent.clone(), self.waiting.clone());
            self.runtime.spawn(send_all(service, sent, waiting, peer));
        }
    }
}

/// Whether a transaction was not sent a moment ago.
fn is_new(sent: &Cache<B256, Instant>, hash: &B256) -> bool {
    sent.get(hash).is_none_or(|sent| sent.elapsed() >= REMEMBERED)
}

/// Sends the queue of an address until it is empty.
async fn send_all(
    service: Arc<dyn Service>,
    sent: Arc<Cache<B256, Instant>>,
    waiting: Arc<Mutex<BTreeMap<QuotaOwner, SubmitQueue>>>,
    peer: CallerId,
) {
    let (owner, caller) = (peer.quota_owner(), Arc::new(peer.caller(None)));
    loop {
        let next = {
            let mut waiting = lock(&waiting);
            let next = waiting.get_mut(&owner).and_then(SubmitQueue::pop);
            if next.is_none() {
                waiting.remove(&owner);
            }
            next
        };
        let Some(raw) = next else { return };
        let hash = keccak256(&raw);
        // Another peer's task may have sent the transaction meanwhile. Queued transactions are not remembered, because then the copy of a
        // fast peer would be dropped in favour of one at the end of a slow peer's queue.
        if !is_new(&sent, &hash) {
            continue;
        }
        sent.insert(hash, Instant::now());
        let Ok(raw) = serde_json::value::to_raw_value(&hex::encode_prefixed(raw)) else { continue };
        let message = Message::of_host("eth_sendRawTransaction", vec![raw], dispatcher());
        drop(service.answer_message(&caller, message).await);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::BoxFuture;
    use rootlight_server::service::{Caller, ReservedReply};

    use super::*;

    fn peer(number: u32) -> CallerId {
        CallerId::new(std::net::IpAddr::from(number.to_be_bytes()))
    }

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Service for Counting {
        fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, _: Message) -> BoxFuture<'a, ReservedReply> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { ReservedReply::default() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transaction_that_many_peers_tell_of_is_sent_once() {
        let service = Arc::new(Counting::default());
        let submitter = Submitter::new(service.clone());
        let sent = async || {
            for _ in 0..100 {
                submitter.submit(peer(1), vec![vec![1; 100], vec![2; 100]]);
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            service.0.load(Ordering::SeqCst)
        };
        assert_eq!(sent().await, 2);
        submitter.submit(peer(1), vec![vec![1; 100], vec![3; 100]]);
        assert_eq!(sent().await, 3);
        tokio::time::sleep(REMEMBERED).await;
        assert_eq!(sent().await, 5, "a pool may take later what it refused once");
    }
    /// Answers nothing.
    #[derive(Default)]
    struct Slow(Mutex<Vec<usize>>);

    impl Service for Slow {
        fn answer_message<'a>(
            &'a self,
            _: &'a Arc<Caller>,
            message: Message,
        ) -> BoxFuture<'a, ReservedReply> {
            let sent = message.calls().flat_map(|call| &call.params).map(|param| param.get().len());
            lock(&self.0).extend(sent);
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_sends_many_drops_and_delays_its_own_only() {
        let service = Arc::new(Slow::default());
        let submitter = Submitter::new(service.clone());
        for number in 0..10_000_u32 {
            submitter
                .submit(peer(1), vec![number.to_be_bytes().to_vec(), vec![number as u8; MAX_TRANSACTION]]);
        }
        let (count, bytes) = lock(&submitter.waiting)
            .get(&peer(1).quota_owner())
            .map(|own| (own.queue.len(), own.bytes))
            .unwrap();
        assert!(count <= MAX_WAITING && bytes <= MAX_WAITING_BYTES, "{count} transactions, {bytes} bytes");
        submitter.submit(peer(2), vec![vec![7; 1_000]]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sent = lock(&service.0).clone();
        assert!(sent.iter().any(|length| *length > 2_000), "that of the other address: {sent:?}");
        for number in 3..1_000 {
            submitter.submit(peer(number), vec![vec![number as u8; 200]]);
        }
        assert_eq!(lock(&submitter.waiting).len(), MAX_ADDRESSES);
        // A transaction that was dropped is accepted when a peer sends it again.
        assert!(is_new(&submitter.sent, &keccak256(9_999_u32.to_be_bytes())));
    }
}
