//! Filters that all front ends share: each is in the store between two polls, and at the front end that answers a poll
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rootlight::engine::FILTER_IDLE;
use tokio::time::Instant;
use tracing::debug;

use super::seal::Seal;
use super::sent::{Place, SentTransactions};
use crate::cluster::store::{HotStore, Script, StoreError};
use crate::light::LightService;

/// Milliseconds without a poll after which a filter is dropped.
const LIFETIME: u64 = FILTER_IDLE * 1_000;
/// Milliseconds for which a front end may have a filter. Should it die, the filter can be polled again after them.
const TAKEN: u64 = 10_000;
/// How long a poll waits for another one of the same filter.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Most filters of one key, or of one address without a key.
const MAX_OWN: usize = 256;
/// Most filters that one message may use.
const MAX_USED: usize = 64;

/// Why a message about filters is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// The store cannot be reached, or is full.
    #[error("filters cannot be reached at present; ask again: {0}")]
    Store(#[from] StoreError),
    /// Another message polls the same filter all the time.
    #[error("the filter is being polled by another request; ask again")]
    Busy,
    /// The answer took longer than a front end may keep a filter. Nothing was reported.
    #[error("the poll took too long; ask again")]
    Late,
    /// The message uses too many filters.
    #[error("a message may use at most {MAX_USED} filters")]
    TooMany,
}

/// The filters of all front ends.
pub(super) struct SharedFilters {
    store: Arc<HotStore>,
    seal: Seal,
    sent: Arc<SentTransactions>,
    chain: u64,
    take: Script,
    put: Script,
    own: Script,
}

/// Filters that this front end has taken. They go back when their message is answered.
pub(super) struct Taken {
    /// Who has taken them: no other message has this name.
    name: String,
    /// For each filter up to where it was told of transactions.
    filters: BTreeMap<u128, Place>,
}

impl SharedFilters {
    pub(super) fn new(store: Arc<HotStore>, seal: Seal, sent: Arc<SentTransactions>, chain: u64) -> Self {
        let [take, put, own] =
            [include_str!("take.lua"), include_str!("put.lua"), include_str!("own.lua")].map(Script::new);
        Self { store, seal, sent, chain, take, put, own }
    }

    /// Takes filters, so that the light client has those that exist.
    ///
    /// # Errors
    /// [`FilterError`]. No filter stays taken.
    pub(super) async fn take(
        &self,
        light: &LightService,
        wanted: impl Iterator<Item = u128>,
        name: String,
    ) -> Result<Taken, FilterError> {
        let mut taken = Taken { name, filters: BTreeMap::new() };
        for id in wanted {
            let result = match taken.filters.len() {
                MAX_USED.. => Err(FilterError::TooMany),
                _ => self.take_one(light, id, &taken.name).await,
            };
            match result {
                Ok(Some(place)) => _ = taken.filters.insert(id, place),
                // The light client says that it does not exist, or has a subscription of this id.
                Ok(None) => {}
                Err(error) => {
                    self.give_back(light, &taken).await.ok();
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    async fn take_one(
        &self,
        light: &LightService,
        id: u128,
        name: &str,
    ) -> Result<Option<Place>, FilterError> {
        let (key, until) = (self.key(id), Instant::now() + PATIENCE);
        let arguments = [name.to_owned(), TAKEN.to_string(), LIFETIME.to_string()].map(String::into_bytes);
        loop {
            let (state, sealed): (String, Vec<u8>) = self.store.script(&self.take, &key, &arguments).await?;
            match state.as_str() {
                "taken" => return Ok(self.admit(light, id, &sealed)),
                "busy" if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                "busy" => return Err(FilterError::Busy),
                _ => return Ok(None),
            }
        }
    }

    /// Gives a filter of the store to the light client.
    fn admit(&self, light: &LightService, id: u128, sealed: &[u8]) -> Option<Place> {
        let (place, bytes) = self.seal.open(&self.key(id), sealed)?.split_first_chunk()?;
        let (sent, place) = self.sent.since(Place::from_bytes(*place));
        let taken = light.take_over(id, bytes, &sent);
        taken.inspect_err(|error| debug!("a filter of the store is {error}")).ok()?;
        Some(place)
    }

    /// Puts filters back as they are now; those that were removed are removed for all.
    ///
    /// # Errors
    /// [`FilterError`]: what the answer reports of the filters would be reported again.
    pub(super) async fn give_back(&self, light: &LightService, taken: &Taken) -> Result<(), FilterError> {
        let mut outcome = Ok(());
        for (id, place) in &taken.filters {
            let value = light.hand_over(*id).map(|bytes| self.sealed(*id, *place, &bytes));
            let put = self.put(*id, &taken.name, value.unwrap_or_default(), "taken").await;
            outcome = outcome.and(put);
        }
        outcome
    }

    fn sealed(&self, id: u128, place: Place, bytes: &[u8]) -> Vec<u8> {
        self.seal.close(&self.key(id), &[&place.to_bytes(), bytes].concat())
    }

    /// Puts a filter into the store. If it is not known whether the store has it, that is tried again.
    async fn put(&self, id: u128, name: &str, value: Vec<u8>, kind: &str) -> Result<(), FilterError> {
        let lifetime = LIFETIME.to_string().into_bytes();
        let arguments = [name.as_bytes().to_vec(), value, lifetime, kind.as_bytes().to_vec()];
        let until = Instant::now() + PATIENCE;
        loop {
            match self.store.script(&self.put, &self.key(id), &arguments).await {
                Ok(1_u64) => return Ok(()),
                // A filter that is gone was removed by the first of two tries, or has expired meanwhile.
                Ok(_) => return Err(FilterError::Late),
                Err(error @ (StoreError::Full | StoreError::Answer(_))) => return Err(error.into()),
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Puts the new filters among these numbers into the store. Those that were used longest ago by the same owner are removed
    /// if it has too many.
    ///
    /// # Errors
    /// [`FilterError`]. Filters that could not be put there do not exist.
    pub(super) async fn add(
        &self,
        light: &LightService,
        numbers: &[u128],
        (name, owner): (&str, u64),
    ) -> Result<(), FilterError> {
        let place = self.sent.last();
        let mut new = Vec::new();
        for id in numbers {
            let Some(bytes) = light.hand_over(*id) else { continue };
            self.put(*id, name, self.sealed(*id, place, &bytes), "new").await?;
            new.push(*id);
        }
        self.own(new.iter(), owner).await
    }

    /// Notes that an owner has used filters.
    ///
    /// # Errors
    /// [`FilterError`].
    pub(super) async fn note(&self, taken: &Taken, owner: u64) -> Result<(), FilterError> {
        self.own(taken.filters.keys(), owner).await
    }

    fn key(&self, id: u128) -> String {
        format!("filter:{}:{id:x}", self.chain)
    }

    async fn own(&self, ids: impl Iterator<Item = &u128>, owner: u64) -> Result<(), FilterError> {
        let mut arguments = vec![MAX_OWN.to_string().into_bytes(), LIFETIME.to_string().into_bytes()];
        arguments.extend(ids.map(|id| format!("{id:x}").into_bytes()));
        if arguments.len() == 2 {
            return Ok(());
        }
        let surplus: Vec<String> =
            self.store.script(&self.own, &format!("owner:{}:{owner:x}", self.chain), &arguments).await?;
        for id in surplus.iter().filter_map(|id| u128::from_str_radix(id, 16).ok()) {
            self.store.remove(&self.key(id)).await?;
        }
        Ok(())
    }
}
