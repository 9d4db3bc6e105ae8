//! The counters of all keys at one front end: asks the hot store for the messages that their meters make wait, and tells the store
//! that this front end shares the limits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use rootlight_server::keys::{Charge, KeyRecord};
use tracing::debug;

use super::limit_query;
use super::limits::KeyLimits;
use super::meter::{ClusterMeter, MeterStep, TakeResult};
use super::metrics::{Decision, ServiceMetrics};
use crate::store::{HotStore, HotStoreError, Script};

/// Most keys whose meters a front end keeps. A key whose meter was evicted loses its lease, and while the store is away gets its
/// share of the limits once more.
const MAX_METERS: usize = 100_000;
/// Number of front ends that is assumed until the store has answered how many there are.
const ASSUMED_FRONT_ENDS: u32 = 8;
/// Interval at which a front end tells the store that it is running.
const CENSUS_INTERVAL: Duration = Duration::from_secs(2);
/// How long a front end goes on with a higher number of front ends than the store reports: those that cannot reach the store
/// any more still take their shares of the limits.
const HIGHER_COUNT_TIME: Duration = Duration::from_secs(60);

/// Notes a front end with the time of the store, removes front ends that were noted more than 10 seconds (five intervals) ago
/// or in the future (the store's clock was set back), and counts the rest.
static CENSUS: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 10)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
redis.call('EXPIRE', KEYS[1], 60)
return redis.call('ZCARD', KEYS[1])",
    )
});

/// The counters of all keys at one front end.
pub(super) struct KeyCounters {
    store: Arc<HotStore>,
    meters: Cache<String, Arc<Mutex<ClusterMeter>>>,
    front_ends: AtomicU32,
    metrics: ServiceMetrics,
}

fn lock(meter: &Mutex<ClusterMeter>) -> MutexGuard<'_, ClusterMeter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeyCounters {
    pub(super) fn new(store: Arc<HotStore>, metrics: ServiceMetrics) -> Self {
        Self {
            store,
            meters: Cache::new(MAX_METERS),
            front_ends: AtomicU32::new(ASSUMED_FRONT_ENDS),
            metrics,
        }
    }

    fn front_ends(&self) -> u32 {
        self.front_ends.load(Ordering::Relaxed)
    }

    /// Counts a message of a key, or refuses it.
    pub(super) async fn take(self: &Arc<Self>, key: &KeyRecord, charge: &Charge) -> TakeResult {
        let Some(limits) = KeyLimits::of(&key.rules) else { return Ok(None) };
        let meter = self.meter(&key.id, limits);
        let demand = limits.demand(charge);
        let step = lock(&meter).step(limits, demand, self.front_ends());
        let (taken, by) = match step {
            MeterStep::Done(taken, by) => (taken, by),
            MeterStep::Wait { receiver, start } => {
                if start {
                    let (counters, id, meter) = (self.clone(), key.id.clone(), meter.clone());
                    // A task of its own: this request may be given up while other messages wait.
                    tokio::spawn(async move { counters.ask_store(&id, &meter).await });
                }
                match receiver.await {
                    Ok(answer) => answer,
                    // The task was ended, which happens only when the runtime ends.
                    Err(_) => (Err(limits.too_fast(0, 0)), Decision::Fallback),
                }
            }
        };
        self.metrics.count_decision(by);
        taken
    }

    /// The meter of a key, which is made if there is none.
    fn meter(&self, id: &str, limits: KeyLimits) -> Arc<Mutex<ClusterMeter>> {
        if let Some(meter) = self.meters.get(id) {
            return meter;
        }
        let made = Arc::new(Mutex::new(ClusterMeter::new(limits)));
        // Two requests at once must use the same meter.
        let shared = self.meters.get_or_insert_with(id, || Ok::<_, std::convert::Infallible>(made.clone()));
        shared.unwrap_or(made)
    }

    /// Asks the store about the messages of a key that wait, until no message waits.
    async fn ask_store(&self, id: &str, meter: &Mutex<ClusterMeter>) {
        loop {
            let Some(query) = lock(meter).next_question() else { return };
            match limit_query::ask(&self.store, id, &query.question).await {
                Ok(reply) => {
                    self.metrics.count_question(reply.lease != (0, 0));
                    lock(meter).answer(query, &reply);
                }
                Err(error) => {
                    debug!("a limit is kept without the store: {error}");
                    lock(meter).give_up(query, self.front_ends());
                }
            }
        }
    }

    /// Tells the store that this front end is running, and learns how many front ends there are, for ever.
    pub(super) async fn census(&self, name: &str) {
        // When the store last reported at least as many front ends as are assumed.
        let mut confirmed = Instant::now();
        let mut has_answered = false;
        loop {
            if let Ok(count) = self.count_front_ends(name).await {
                let keeps_higher = has_answered && confirmed.elapsed() < HIGHER_COUNT_TIME;
                if count >= self.front_ends() || !keeps_higher {
                    self.front_ends.store(count, Ordering::Relaxed);
                    confirmed = Instant::now();
                }
                has_answered = true;
                self.metrics.set_front_ends(self.front_ends());
            }
            tokio::time::sleep(CENSUS_INTERVAL).await;
        }
    }

    /// Notes this front end in the store; returns the number of front ends.
    async fn count_front_ends(&self, name: &str) -> Result<u32, HotStoreError> {
        let count: u32 = self.store.script(&CENSUS, "front-ends", &[name.as_bytes().to_vec()]).await?;
        Ok(count.max(1))
    }
}
