//! Keys, quotas and announcements of changes for a front end: implements the server's traits for them, and runs the tasks
//! behind them.

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

/// Memory for cached keys, in bytes: some 100,000 keys without long lists.
const KEY_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Longest time of a statement that a request waits for.
const LOOKUP_TIME: Duration = Duration::from_secs(1);

/// Longest wait of a request for the look-up of its key. A look-up waits for the statement that runs and then for its own, a
/// second each ([`LOOKUP_TIME`]); if the database then has not answered, the copy in the store is used.
const FIND_TIME: Duration = Duration::from_secs(3);

/// Longest time of writing the usage.
const FLUSH_TIME: Duration = Duration::from_secs(10);

/// Interval at which the usage is written. A front end that is killed loses the counts of this time at most.
const FLUSH_INTERVAL: Duration = Duration::from_secs(3);

/// Keys, quotas and announcements of a service on many machines, for one front end.
pub struct ClusterAccess {
    inner: Arc<AccessInner>,
    tasks: Vec<JoinHandle<()>>,
}

/// The state that the tasks share.
struct AccessInner {
    /// The secret that all front ends of the service share.
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
        f.debug_struct("ClusterAccess").field("store", &self.inner.store).finish_non_exhaustive()
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
    /// [`ClusterKeyError`]: the database cannot be reached or used. After this call it may fail for a while.
    pub async fn open(database: &Database, store: Arc<HotStore>) -> Result<Arc<Self>, ClusterKeyError> {
        Self::open_with(database, store, GRACE).await
    }

    /// As [`Self::open`], with another time for which cached keys are served while neither PostgreSQL nor the store answers.
    pub async fn open_with(
        database: &Database,
        store: Arc<HotStore>,
        grace: Duration,
    ) -> Result<Arc<Self>, ClusterKeyError> {
        let connection = |time_limit| LazyConnection::new(database.clone(), time_limit);
        let setup_connection = connection(FLUSH_TIME);
        let secret = setup_connection.run(async |client| {
            schema::check_writable(client).await?;
            schema::migrate(client).await?;
            schema::secret(client).await
        });
        let secret = secret.await?;
        // The front end's name: random, so that no other one has or had it.
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(KeyError::Random)?;
        let name = HEXLOWER.encode(&name);
        let (cache, metrics) = (Arc::new(KeyCache::new(KEY_CACHE_BYTES)), ServiceMetrics::default());
        let (changes_connection, seal) = (connection(LOOKUP_TIME), Seal::new(secret));
        let changes = KeyChanges::open(
            (store.clone(), seal.clone()),
            changes_connection,
            cache.clone(),
            metrics.clone(),
            grace,
        )
        .await?;
        let inner = Arc::new(AccessInner {
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
        let tasks = inner.spawn_tasks(name);
        Ok(Arc::new(Self { inner, tasks }))
    }

    /// The interface for a server.
    #[must_use]
    pub fn access(self: &Arc<Self>) -> KeyAccess {
        let (keys, quotas) = (self.clone(), self.clone());
        KeyAccess { keys, quotas, filters: self.clone(), notifier: self.clone(), anonymous: false }
    }

    /// The secret that all front ends of the service share.
    pub fn secret(&self) -> B256 {
        self.inner.secret
    }

    /// Writes the usage of keys that was counted; to be called before the process ends.
    ///
    /// # Errors
    /// The database cannot be written. A further call tries again.
    pub async fn flush(&self) -> Result<(), ClusterKeyError> {
        self.inner.usage.flush(&self.inner.usage_connection).await
    }

    /// Counters of keys and quotas.
    pub fn metrics(&self) -> &ServiceMetrics {
        &self.inner.metrics
    }
}

impl AccessInner {
    /// Starts the tasks, which run for ever. `name` is that of the front end.
    fn spawn_tasks(self: &Arc<Self>, name: String) -> Vec<JoinHandle<()>> {
        let spawn = |task: fn(Arc<Self>) -> BoxFuture<'static, ()>| tokio::spawn(task(self.clone()));
        let inner = self.clone();
        vec![
            spawn(|inner| Box::pin(async move { inner.lookups.serve_from_store().await })),
            spawn(|inner| Box::pin(async move { inner.lookups.serve_from_database().await })),
            spawn(|inner| Box::pin(async move { inner.lookups.recheck().await })),
            spawn(|inner| Box::pin(async move { inner.receive_changes().await })),
            spawn(|inner| Box::pin(async move { inner.changes.read().await })),
            spawn(|inner| Box::pin(async move { inner.changes.compare().await })),
            spawn(|inner| Box::pin(async move { inner.write_usage().await })),
            tokio::spawn(async move { inner.counters.census(&name).await }),
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
        let AccessInner { cache, changes, lookups, metrics, .. } = &*self.inner;
        Box::pin(async move {
            let found = match cache.get(id) {
                // The key may have changed, and neither PostgreSQL nor the store can tell.
                Some(_) if !changes.are_current() => return Err(Unavailable),
                Some(cached) => {
                    metrics.count_lookup(LookupOutcome::Memory);
                    cached
                }
                None => {
                    let lookup = tokio::time::timeout(FIND_TIME, lookups.find(id));
                    lookup.await.unwrap_or(Err(Unavailable))?
                }
            };
            match found {
                CachedLookup::Key(record) => Ok(Some(record)),
                CachedLookup::Absent => Ok(None),
            }
        })
    }

    fn refuse<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Unavailable>> {
        let AccessInner { cache, lookups, .. } = &*self.inner;
        Box::pin(async move {
            if cache.was_refused(id) {
                return Ok(());
            }
            let lookup = tokio::time::timeout(FIND_TIME, lookups.refuse(id));
            lookup.await.unwrap_or(Err(Unavailable))?;
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
            let taken = self.inner.counters.take(key, charge).await;
            self.inner.usage.count(key.number, charge, taken.is_ok());
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
                self.inner.changes.notify_listeners();
                let store = self.inner.store.clone();
                // An empty message makes the other front ends compare all of their keys with the database.
                tokio::spawn(async move { store.publish(key_copies::CHANNEL, b"").await });
            }
        }
    }

    fn listen(&self, topic: Topic) -> watch::Receiver<u64> {
        match topic {
            Topic::Keys => self.inner.changes.listen(),
        }
    }
}
