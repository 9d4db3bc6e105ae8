//! Keys with limits that are used beyond them.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::TestClient;
use crate::balancer::CallFailure;
use crate::conditions::Conditions;
use crate::running_service::FRONT_ENDS;

/// The requests of a key with a limit that were admitted.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Admitted {
    pub(crate) per_second: u64,
    pub(crate) burst: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// The sum of the leases that the front ends may have.
    pub(crate) leases: u64,
    /// The most that was admitted above burst and rate while the store was well.
    pub(crate) most_above: f64,
    /// The same, beyond the leases; more than 0 is a fault.
    pub(crate) excess: f64,
    /// Times in which the store failed, and the most that was admitted above what is documented for them; more than 0 is a
    /// fault.
    pub(crate) failures: u64,
    pub(crate) excess_in_failures: f64,
}

pub(crate) struct Limited {
    bucket: Mutex<Bucket>,
}

struct Bucket {
    counts: Admitted,
    /// Requests that were admitted and for which the rate has not yet made up.
    level: f64,
    at: Instant,
    /// Since when the store fails, and what was admitted since then.
    failing: Option<(Instant, u64)>,
    losses: u64,
}

impl Limited {
    pub(crate) fn new(per_second: u64, burst: u64) -> Arc<Self> {
        let leases = FRONT_ENDS as u64 * per_second.div_ceil(10);
        let counts = Admitted { per_second, burst, leases, ..Admitted::default() };
        let bucket = Bucket { counts, level: 0.0, at: Instant::now(), failing: None, losses: 0 };
        Arc::new(Self { bucket: Mutex::new(bucket) })
    }

    /// The requests that were admitted so far.
    pub(crate) fn counts(&self) -> Admitted {
        self.bucket.lock().unwrap().counts.clone()
    }

    fn refused(&self) {
        self.bucket.lock().unwrap().counts.refused += 1;
    }

    /// Notes a message that was asked at this time and admitted by now.
    fn admitted(&self, asked: Instant, conditions: &Conditions) {
        let now = Instant::now();
        let bucket = &mut *self.bucket.lock().unwrap();
        let counts = &mut bucket.counts;
        let rate = counts.per_second as f64;
        counts.admitted += 1;
        let passed = now.duration_since(bucket.at).as_secs_f64();
        bucket.at = now;
        let (unsure, losses) = (conditions.store_is_unsure(), conditions.losses());
        if unsure || losses != bucket.losses {
            if losses != bucket.losses || bucket.failing.is_none() {
                counts.failures += 1;
                bucket.failing = Some((now, 0));
                bucket.losses = losses;
            }
            let (since, admitted) = bucket.failing.as_mut().expect("just set");
            *admitted += 1;
            // The burst before it, half of it by the front ends alone, and the burst of counters that start anew; half as
            // much again as the rate, as for a store that is partitioned.
            let time = now.duration_since(*since).as_secs_f64();
            let most =
                2.5 * counts.burst as f64 + 1.5 * rate * time + counts.leases as f64 + FRONT_ENDS as f64;
            let above = *admitted as f64 - most;
            counts.excess_in_failures = counts.excess_in_failures.max(above);
            bucket.level = 0.0;
            return;
        }
        bucket.failing = None;
        // The time that a message needs may bring the messages of a moment together.
        let late = rate * now.duration_since(asked).min(Duration::from_secs(1)).as_secs_f64();
        bucket.level = (bucket.level - rate * passed).max(0.0) + 1.0;
        let above = bucket.level - counts.burst as f64 - late;
        counts.most_above = counts.most_above.max(above);
        counts.excess = counts.excess.max(above - counts.leases as f64);
    }
}

/// Sends messages that cost one request each until the run is over.
pub(crate) async fn flood(client: TestClient, limited: Arc<Limited>) {
    while !client.conditions.is_over() {
        let (asked, turn) = (Instant::now(), client.balancer.turn());
        match client.balancer.attempt(turn, &client.key, "eth_chainId", &json!([])).await {
            Ok(answer) if answer == "0x21" => limited.admitted(asked, &client.conditions),
            Ok(answer) => client.wrong(&format!("eth_chainId: {answer}")),
            Err(CallFailure::Rpc { status: 429, code: -32005, .. }) => limited.refused(),
            Err(failure @ CallFailure::Rpc { .. }) => client.balancer.judge("eth_chainId", &failure),
            Err(_) => {}
        }
        tokio::time::sleep(client.pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_burst_and_leases_is_found() {
        let (limited, conditions) = (Limited::new(10, 20), Conditions::default());
        // The rate adds at most one a tenth of a second to what is admitted at once.
        let admit = |count| (0..count).for_each(|_| limited.admitted(Instant::now(), &conditions));
        admit(20);
        assert!(limited.counts().excess <= 0.0);
        admit(30);
        assert!(limited.counts().excess > 10.0, "{:?}", limited.counts());
        conditions.store_fails();
        admit(40);
        assert!(limited.counts().excess_in_failures <= 0.0);
        admit(60);
        assert!(limited.counts().excess_in_failures > 10.0, "{:?}", limited.counts());
    }
}
