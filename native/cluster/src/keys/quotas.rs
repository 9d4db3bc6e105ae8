//! The counters of all keys at one front end.

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

/// Keys whose limits a front end remembers. One that is forgotten has no lease, and may take its share of an outage anew.
const KEPT: usize = 100_000;
/// Front ends that are assumed until the store has told how many there are.
const ASSUMED: u32 = 8;
/// Interval at which a front end tells the store that it is there.
const CENSUS: Duration = Duration::from_secs(2);
/// How long a higher number of front ends is believed, if some cannot reach the store any more.
const BELIEVED: Duration = Duration::from_secs(60);

/// Notes a front end, forgets those that were silent for 10 seconds or come from a later time, and counts them. The time
/// is the store's.
static PRESENT: LazyLock<Script> = LazyLock::new(|| {
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
        Self { store, meters: Cache::new(KEPT), front_ends: AtomicU32::new(ASSUMED), metrics }
    }

    fn front_ends(&self) -> u32 {
        self.front_ends.load(Ordering::Relaxed)
    }

    /// Counts a message of a key.
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
                    // Not by this request, which may be given up while others wait.
                    tokio::spawn(async move { counters.settle(&id, &meter).await });
                }
                match receiver.await {
                    Ok(answer) => answer,
                    // Only if the runtime ends.
                    Err(_) => (Err(limits.too_fast(0, 0)), Decision::Fallback),
                }
            }
        };
        self.metrics.decided(by);
        taken
    }

    fn meter(&self, id: &str, limits: KeyLimits) -> Arc<Mutex<ClusterMeter>> {
        if let Some(meter) = self.meters.get(id) {
            return meter;
        }
        let made = Arc::new(Mutex::new(ClusterMeter::new(limits)));
        // Two requests at once must use the same one.
        let kept = self.meters.get_or_insert_with(id, || Ok::<_, std::convert::Infallible>(made.clone()));
        kept.unwrap_or(made)
    }

    /// Asks the store for the messages that wait, until none does.
    async fn settle(&self, id: &str, meter: &Mutex<ClusterMeter>) {
        loop {
            let Some(asked) = lock(meter).question() else { return };
            match limit_query::ask(&self.store, id, &asked.question).await {
                Ok(reply) => {
                    self.metrics.called(reply.lease != (0, 0));
                    lock(meter).answer(asked, &reply);
                }
                Err(error) => {
                    debug!("a limit is kept without the store: {error}");
                    lock(meter).give_up(asked, self.front_ends());
                }
            }
        }
    }

    /// Tells the store that this front end is there, and learns how many there are, for ever.
    pub(super) async fn census(&self, name: &str) {
        let mut highest = Instant::now();
        let mut is_reported = false;
        loop {
            if let Ok(count) = self.present(name).await {
                let believed = is_reported && highest.elapsed() < BELIEVED;
                if count >= self.front_ends() || !believed {
                    self.front_ends.store(count, Ordering::Relaxed);
                    highest = Instant::now();
                }
                is_reported = true;
                self.metrics.share(self.front_ends());
            }
            tokio::time::sleep(CENSUS).await;
        }
    }

    async fn present(&self, name: &str) -> Result<u32, HotStoreError> {
        let count: u32 = self.store.script(&PRESENT, "front-ends", &[name.as_bytes().to_vec()]).await?;
        Ok(count.max(1))
    }
}
