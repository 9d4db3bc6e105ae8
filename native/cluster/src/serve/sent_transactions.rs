//! The transactions that callers have sent through any of the front ends, in the order of a stream in the hot store. Filters and
//! subscriptions of pending transactions report them at every front end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use rootlight::engine::{FILTER_IDLE, MAX_PENDING};
use rootlight_node::light::LightService;
use tokio::sync::broadcast::error::RecvError;
use tracing::debug;

use crate::Seal;
use crate::store::{HotStore, HotStoreError, Script};

/// Most transactions that are read at a time.
const MAX_PAGE: usize = 1_000;
/// Bytes of a sealed transaction: the code of [`Seal`], the hash and the asker.
const SEALED_BYTES: usize = 32 + 32 + 8;
/// Pause between two reads of the stream, if no announcement comes.
const PAUSE: Duration = Duration::from_millis(500);

/// How far the id of a transaction may be ahead of the store's clock, in milliseconds; the same number is in `last_id.lua`.
const MAX_AHEAD_MILLIS: u64 = 60_000;

/// Adds a transaction to the stream.
const ADD: &str = concat!(include_str!("last_id.lua"), include_str!("sent.lua"));
/// Reads a page of the stream.
const READ: &str = concat!(include_str!("last_id.lua"), include_str!("read.lua"));

/// The position of a transaction in the stream, as the store numbers it: milliseconds and a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId {
    millis: u64,
    count: u64,
}

impl StreamId {
    /// Reads the store's form, `MILLIS-COUNT`.
    fn read(text: &str) -> Option<Self> {
        let (millis, count) = text.split_once('-')?;
        Some(Self { millis: millis.parse().ok()?, count: count.parse().ok()? })
    }

    /// Both numbers, 8 bytes each, big-endian.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.millis) << 64) | u128::from(self.count)).to_be_bytes()
    }

    /// Reads bytes of [`Self::to_bytes`].
    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { millis: (both >> 64) as u64, count: both as u64 }
    }
}

/// The hash of a transaction, and the shared id of the asker who has sent it.
pub(super) type StreamedTransaction = (B256, u64);

/// The newest sent transactions, as this front end has read them.
pub(super) struct SentTransactions {
    store: Arc<HotStore>,
    seal: Seal,
    add: Script,
    read: Script,
    /// The key of the stream, and the channel on which new transactions are announced.
    key: String,
    read_so_far: Mutex<ReadTransactions>,
}

/// The part of the stream that this front end has read.
#[derive(Default)]
struct ReadTransactions {
    /// The newest transactions, at most `MAX_PENDING`.
    transactions: VecDeque<(StreamId, StreamedTransaction)>,
    /// The id of the last transaction that a front end has written.
    last: StreamId,
    /// The id of the last entry that was read, whichever program has written it.
    read: StreamId,
    /// The highest id that was read of this stream, or of an earlier one that was lost.
    highest: StreamId,
}

impl SentTransactions {
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, chain: u64) -> Self {
        let key = format!("sent:{chain}");
        let [add, read] = [ADD, READ].map(Script::new);
        Self { store, seal, add, read, key, read_so_far: Mutex::default() }
    }

    fn read_so_far(&self) -> MutexGuard<'_, ReadTransactions> {
        self.read_so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream id of the last transaction.
    pub(super) fn last(&self) -> StreamId {
        self.read_so_far().last
    }

    /// The transactions after a stream id, and the id of the last one. `now` is the store's time in milliseconds. An id ahead of this
    /// time is of a stream that was lost, so no transactions are returned for it.
    pub(super) fn since(&self, stream_id: StreamId, now: u64) -> (Vec<StreamedTransaction>, StreamId) {
        let known = self.read_so_far();
        if stream_id.millis > now.saturating_add(MAX_AHEAD_MILLIS) {
            return (Vec::new(), known.last);
        }
        let later = known.transactions.iter().filter(|(id, _)| *id > stream_id);
        (later.map(|(_, sent)| *sent).collect(), known.last.max(stream_id))
    }

    /// Notes that an asker has sent a transaction.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn add(&self, (hash, asker): StreamedTransaction) -> Result<(), HotStoreError> {
        let lifetime = FILTER_IDLE.saturating_mul(1_000).to_string();
        let arguments = [
            self.seal.seal(&self.key, &[hash.as_slice(), &asker.to_be_bytes()].concat()),
            MAX_PENDING.to_string().into_bytes(),
            lifetime.into_bytes(),
            self.read_so_far().highest.millis.to_string().into_bytes(),
        ];
        self.store.script::<u64>(&self.add, &self.key, &arguments).await.map(drop)
    }

    /// Reads the stream for ever, and announces new transactions to the subscriptions of this front end.
    pub(super) async fn follow(self: Arc<Self>, light: Arc<LightService>) {
        let mut subscription = self.store.subscribe(&self.key).ok();
        // Transactions that were sent before this front end started are for filters only, not for subscriptions.
        let mut is_initial = true;
        loop {
            loop {
                let (new, more) = match self.read_page().await {
                    Ok(page) => page,
                    Err(error) => {
                        debug!("transactions that were sent cannot be read: {error}");
                        break;
                    }
                };
                if !is_initial {
                    light.announce_sent(&new);
                }
                if !more {
                    is_initial = false;
                    break;
                }
            }
            let announced = async {
                match &mut subscription {
                    Some(subscription) => {
                        matches!(subscription.recv().await, Ok(_) | Err(RecvError::Lagged(_)))
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                is_open = announced => if !is_open { subscription = None },
            }
        }
    }

    /// Reads the next transactions; returns them, and whether there may be more. Entries that no front end has written are left out.
    async fn read_page(&self) -> Result<(Vec<StreamedTransaction>, bool), HotStoreError> {
        let from = self.read_so_far().read;
        let (last, page) = self.page(from).await?;
        // If the last id is lower than one that was read, the stream was lost and has begun anew.
        let is_new_stream = last != StreamId::default() && last < from;
        let page = if is_new_stream { self.page(StreamId::default()).await?.1 } else { page };
        let mut known = self.read_so_far();
        if is_new_stream {
            *known = ReadTransactions { highest: known.highest, ..ReadTransactions::default() };
        }
        let (more, mut new) = (page.len() >= MAX_PAGE, Vec::new());
        for (stream_id, sealed) in page {
            known.read = known.read.max(stream_id);
            known.highest = known.highest.max(stream_id);
            let Some(sent) = self.seal.unseal(&self.key, &sealed).and_then(read) else { continue };
            known.last = known.last.max(stream_id);
            new.push(sent);
            known.transactions.push_back((stream_id, sent));
            if known.transactions.len() > MAX_PENDING {
                known.transactions.pop_front();
            }
        }
        Ok((new, more))
    }

    /// The last id of the stream, and the transactions after `from`.
    async fn page(&self, from: StreamId) -> Result<(StreamId, Vec<(StreamId, Vec<u8>)>), HotStoreError> {
        let arguments =
            [format!("{}-{}", from.millis, from.count), MAX_PAGE.to_string(), SEALED_BYTES.to_string()];
        let arguments = arguments.map(String::into_bytes);
        let (last, entries): (String, Vec<Vec<u8>>) =
            self.store.script(&self.read, &self.key, &arguments).await?;
        let stream_id = |text: &str| {
            StreamId::read(text).ok_or_else(|| HotStoreError::Answer("the id of a transaction".to_owned()))
        };
        let entries = entries.chunks_exact(2).map(|entry| match entry {
            [at, sealed] => Ok((stream_id(&String::from_utf8_lossy(at))?, sealed.clone())),
            _ => Err(HotStoreError::Answer("a transaction".to_owned())),
        });
        Ok((stream_id(&last)?, entries.collect::<Result<_, _>>()?))
    }
}

/// Reads an unsealed transaction.
fn read(bytes: &[u8]) -> Option<StreamedTransaction> {
    let (hash, asker) = bytes.split_first_chunk()?;
    Some((B256::new(*hash), u64::from_be_bytes(asker.try_into().ok()?)))
}
