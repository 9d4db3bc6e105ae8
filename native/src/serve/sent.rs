//! The transactions that callers have sent through any of the front ends, in the order of the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use rootlight::engine::{FILTER_IDLE, MAX_PENDING};
use tokio::sync::broadcast::error::RecvError;

use crate::cluster::Seal;
use crate::cluster::store::{HotStore, Script, StoreError};
use crate::light::LightService;

/// Most transactions that are read at a time.
const PAGE: usize = 1_000;
/// Pause between two looks without an announcement.
const PAUSE: Duration = Duration::from_millis(500);

const SCRIPT: &str = include_str!("sent.lua");

/// A place in the stream of transactions, as the store numbers them: milliseconds and a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    millis: u64,
    count: u64,
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        let (millis, count) = text.split_once('-')?;
        Some(Self { millis: millis.parse().ok()?, count: count.parse().ok()? })
    }

    /// The bytes of the place.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.millis) << 64) | u128::from(self.count)).to_be_bytes()
    }

    /// The place with these bytes.
    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { millis: (both >> 64) as u64, count: both as u64 }
    }
}

/// A transaction, and the asker who has sent it.
pub(super) type Sent = (B256, u64);

/// The transactions that were sent last.
pub(super) struct SentTransactions {
    store: Arc<HotStore>,
    seal: Seal,
    script: Script,
    /// The key of the transactions, and the channel that tells of new ones.
    key: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    transactions: VecDeque<(Place, Sent)>,
    last: Place,
}

impl SentTransactions {
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, chain: u64) -> Self {
        let key = format!("sent:{chain}");
        Self { store, seal, script: Script::new(SCRIPT), key, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place after the last transaction.
    pub(super) fn last(&self) -> Place {
        self.known().last
    }

    /// The transactions after a place, and the place after them.
    pub(super) fn since(&self, place: Place) -> (Vec<Sent>, Place) {
        let known = self.known();
        let later = known.transactions.iter().filter(|(at, _)| *at > place);
        (later.map(|(_, sent)| *sent).collect(), known.last.max(place))
    }

    /// Notes that an asker has sent a transaction.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn add(&self, (hash, asker): Sent) -> Result<(), StoreError> {
        let lifetime = FILTER_IDLE.saturating_mul(1_000).to_string();
        let arguments = [
            self.seal.close(&self.key, &[hash.as_slice(), &asker.to_be_bytes()].concat()),
            MAX_PENDING.to_string().into_bytes(),
            lifetime.into_bytes(),
        ];
        self.store.script::<u64>(&self.script, &self.key, &arguments).await.map(drop)
    }

    /// Follows the store, and tells the subscriptions of this front end.
    pub(super) async fn follow(self: Arc<Self>, light: Arc<LightService>) {
        let mut told = self.store.subscribe(&self.key).ok();
        // What was sent before this front end began concerns filters only.
        let mut first = true;
        loop {
            while let Ok(new) = self.read_page().await {
                if !first {
                    light.tell_sent(&new);
                }
                if new.len() < PAGE {
                    first = false;
                    break;
                }
            }
            let news = async {
                match &mut told {
                    Some(told) => matches!(told.recv().await, Ok(_) | Err(RecvError::Lagged(_))),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                is_open = news => if !is_open { told = None },
            }
        }
    }

    /// Reads the next transactions. What no front end has written is left out.
    async fn read_page(&self) -> Result<Vec<Sent>, StoreError> {
        let last = self.last();
        let from = format!("({}-{}", last.millis, last.count);
        let arguments = [from, "+".to_owned(), "COUNT".to_owned(), PAGE.to_string()].map(String::into_bytes);
        let page: Vec<(String, Vec<Vec<u8>>)> = self.store.command("XRANGE", &self.key, &arguments).await?;
        let mut new = Vec::new();
        let mut known = self.known();
        for (place, fields) in page {
            let Some(place) = Place::read(&place) else { continue };
            known.last = known.last.max(place);
            let sealed = fields.get(1).and_then(|sealed| self.seal.open(&self.key, sealed));
            let Some(sent) = sealed.and_then(read) else { continue };
            new.push(sent);
            known.transactions.push_back((place, sent));
            if known.transactions.len() > MAX_PENDING {
                known.transactions.pop_front();
            }
        }
        Ok(new)
    }
}

fn read(bytes: &[u8]) -> Option<Sent> {
    let (hash, asker) = bytes.split_first_chunk()?;
    Some((B256::new(*hash), u64::from_be_bytes(asker.try_into().ok()?)))
}
