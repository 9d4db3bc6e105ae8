//! Keys, quotas and announcements for a front end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use data_encoding::HEXLOWER;
use futures::future::BoxFuture;
use rootlight_index::Database;
use rootlight_server::KeyAccess;
use rootlight_server::keys::{
    ChangeNotifier, Charge, Exceeded, FilterOwners, KeyError, KeyLookup, KeyRecord, LimitStatus, Quotas,
    Topic, Unavailable,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use super::changes::{GRACE, KeyChanges};
use super::connection::LazyConnection;
use super::error::ClusterKeyError;
use super::key_cache::{CachedLookup, KeyCache};
use super::lookups::Lookups;
use super::metrics::{LookupOutcome, ServiceMetrics};
use super::quotas::KeyCounters;
use super::usage::UsageBook;
use super::{key_copies, schema};
use crate::Seal;
use crate::store::HotStore;

/// Memory for keys, in bytes: some 100,000 without long lists.
const MEMORY: u64 = 64 * 1024 * 1024;

/// Longest time of a statement that a request waits for.
const LOOKUP_TIME: Duration = Duration::from_secs(1);

/// Time limit for one look-up: it may wait for the statement that runs and then for its own, a second each. The copy in
/// the store is used after that.
const FIND_TIME: Duration = Duration::from_secs(3);

/// Longest time of writing the usage.
const FLUSH_TIME: Duration = Duration::from_secs(10);

/// Interval at which the usage is written. A front end that is killed loses the counts of so long at most.
const FLUSH_INTERVAL: Duration = Duration::from_secs(3);

/// Keys, quotas and announcements of a service on many machines, for one front end.
pub struct ClusterAccess {
    parts: Arc<AccessInner>,
    tasks: Vec<JoinHandle<()>>,
}

struct AccessInner {
    secret: B256,
    store: Arc<HotStore>,
    cache: Arc<KeyCache>,
    lookups: Lookups,
    changes: KeyChanges,
    counters: Arc<KeyCounters>,
    usage: UsageBook,
    usage_connection: LazyConnection,
    metrics: ServiceMetrics,
}

impl fmt::Debug for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterAccess").field("store", &self.parts.store).finish_non_exhaustive()
    }
}

impl Drop for ClusterAccess {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl ClusterAccess {
    /// Opens the keys of a service, and brings their schema to the newest version; must be called inside a runtime.
    ///
    /// # Errors
    /// [`ClusterKeyError`]: the database cannot be reached or used. Later it may be away for a while.
    pub async fn open(database: &Database, store: Arc<HotStore>) -> Result<Arc<Self>, ClusterKeyError> {
        Self::open_with(database, store, GRACE).await
    }

    /// As [`Self::open`], with another time for which known keys are served while neither PostgreSQL nor the store answers.
    pub async fn open_with(
        database: &Database,
        store: Arc<HotStore>,
        grace: Duration,
    ) -> Result<Arc<Self>, ClusterKeyError> {
        let connection = |limit| LazyConnection::new(database.clone(), limit);
        let preparing = connection(FLUSH_TIME);
        let secret = preparing.run(async |client| {
            schema::writable(client).await?;
            schema::migrate(client).await?;
            schema::secret(client).await
        });
        let secret = secret.await?;
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(KeyError::Random)?;
        let name = HEXLOWER.encode(&name);
        let (cache, metrics) = (Arc::new(KeyCache::new(MEMORY)), ServiceMetrics::default());
        let (polling, seal) = (connection(LOOKUP_TIME), Seal::new(secret));
        let changes =
            KeyChanges::open((store.clone(), seal.clone()), polling, cache.clone(), metrics.clone(), grace)
                .await?;
        let parts = Arc::new(AccessInner {
            secret,
            lookups: Lookups::new(
                (store.clone(), seal),
                connection(LOOKUP_TIME),
                cache.clone(),
                metrics.clone(),
            ),
            counters: Arc::new(KeyCounters::new(store.clone(), metrics.clone())),
            usage: UsageBook::new(name.clone(), metrics.clone()),
            usage_connection: connection(FLUSH_TIME),
            store,
            cache,
            changes,
            metrics,
        });
        let tasks = parts.tasks(name);
        Ok(Arc::new(Self { parts, tasks }))
    }

    /// The interface for a server.
    #[must_use]
    pub fn access(self: &Arc<Self>) -> KeyAccess {
        let (keys, quotas) = (self.clone(), self.clone());
        KeyAccess { keys, quotas, filters: self.clone(), notifier: self.clone(), anonymous: false }
    }

    /// The secret that all front ends of the service share.
    pub fn secret(&self) -> B256 {
        self.parts.secret
    }

    /// Writes what keys were used for, before the process ends.
    ///
    /// # Errors
    /// The database cannot be written. A further call tries again.
    pub async fn flush(&self) -> Result<(), ClusterKeyError> {
        self.parts.usage.flush(&self.parts.usage_connection).await
    }

    /// Counters of keys and quotas.
    pub fn metrics(&self) -> &ServiceMetrics {
        &self.parts.metrics
    }
}

impl AccessInner {
    fn tasks(self: &Arc<Self>, name: String) -> Vec<JoinHandle<()>> {
        let spawn = |task: fn(Arc<Self>) -> BoxFuture<'static, ()>| tokio::spawn(task(self.clone()));
        let parts = self.clone();
        vec![
            spawn(|parts| Box::pin(async move { parts.lookups.serve_from_store().await })),
            spawn(|parts| Box::pin(async move { parts.lookups.serve_from_database().await })),
            spawn(|parts| Box::pin(async move { parts.lookups.recheck().await })),
            spawn(|parts| Box::pin(async move { parts.receive_changes().await })),
            spawn(|parts| Box::pin(async move { parts.changes.read().await })),
            spawn(|parts| Box::pin(async move { parts.changes.compare().await })),
            spawn(|parts| Box::pin(async move { parts.write_usage().await })),
            tokio::spawn(async move { parts.counters.census(&name).await }),
        ]
    }

    async fn receive_changes(&self) {
        if let Err(error) = self.changes.receive().await {
            warn!("changes of keys are learnt from the database only: {error}");
        }
    }

    async fn write_usage(&self) {
        loop {
            tokio::time::sleep(FLUSH_INTERVAL).await;
            if let Err(error) = self.usage.flush(&self.usage_connection).await {
                warn!("the usage of keys is not written yet: {error}");
            }
        }
    }
}

impl KeyLookup for ClusterAccess {
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>> {
        let AccessInner { cache, changes, lookups, metrics, .. } = &*self.parts;
        Box::pin(async move {
            let known = match cache.get(id) {
                Some(_) if !changes.are_current() => return Err(Unavailable),
                Some(known) => {
                    metrics.lookup(LookupOutcome::Memory);
                    known
                }
                None => {
                    let found = tokio::time::timeout(FIND_TIME, lookups.find(id));
                    found.await.unwrap_or(Err(Unavailable))?
                }
            };
            match known {
                CachedLookup::Key(record) => Ok(Some(record)),
                CachedLookup::Absent => Ok(None),
            }
        })
    }

    fn refuse<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Unavailable>> {
        let AccessInner { cache, lookups, .. } = &*self.parts;
        Box::pin(async move {
            if cache.was_refused(id) {
                return Ok(());
            }
            let looked_up = tokio::time::timeout(FIND_TIME, lookups.refuse(id));
            looked_up.await.unwrap_or(Err(Unavailable))?;
            cache.note_refused(id);
            Ok(())
        })
    }
}

impl Quotas for ClusterAccess {
    fn take<'a>(
        &'a self,
        key: &'a KeyRecord,
        charge: &'a Charge,
    ) -> BoxFuture<'a, Result<Option<LimitStatus>, Exceeded>> {
        Box::pin(async move {
            let taken = self.parts.counters.take(key, charge).await;
            self.parts.usage.count(key.number, charge, taken.is_ok());
            taken
        })
    }
}

impl FilterOwners for ClusterAccess {
    fn owner(&self, key: &KeyRecord) -> u32 {
        key.number
    }
}

impl ChangeNotifier for ClusterAccess {
    fn publish(&self, topic: Topic) {
        match topic {
            Topic::Keys => {
                self.parts.changes.tell();
                let store = self.parts.store.clone();
                // An empty message makes the other front ends compare all of their keys with the database.
                tokio::spawn(async move { store.publish(key_copies::CHANNEL, b"").await });
            }
        }
    }

    fn listen(&self, topic: Topic) -> watch::Receiver<u64> {
        match topic {
            Topic::Keys => self.parts.changes.listen(),
        }
    }
}
