//! Asks a second upstream when the first is slower than usual, and takes the response that comes first. An upstream that is
//! much slower than the second loses its turns to it for a while.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use rootlight::light::UpstreamRequest;
use rootlight_server::metrics::Metrics;
use rootlight_upstream::SharedUpstream;

use super::ask::{UpstreamResponses, ask};

/// The usual time of an upstream that has not answered yet, in microseconds.
const FIRST: u64 = 100_000;

/// Bounds of the usual time, in microseconds.
const LEAST: u64 = 10_000;
const MOST: u64 = 2_000_000;

/// Points that a round of requests adds to the budget, that a second one costs, and that are given back if it was of use: at
/// most a tenth of all rounds is sent twice in vain, but none waits for an upstream that hangs.
const EARNED: i64 = 100;
const COST: i64 = 1_000;
const REFUND: i64 = 900;

/// Most that the budget holds.
const FULL: i64 = 32_000;

/// How many times as long as the spare an upstream takes when it loses its turns, and for how long it does.
const SLOWER: u32 = 4;
const DEMOTION_TIME: Duration = Duration::from_secs(60);

/// The measured speed of each upstream.
#[derive(Debug)]
pub(super) struct Hedges {
    usual: Vec<LatencyEstimate>,
    budget: AtomicI64,
}

/// The usual time of an upstream.
#[derive(Debug)]
struct LatencyEstimate {
    /// The time within which it answers 19 of 20 rounds, in microseconds.
    micros: AtomicU64,
    /// Since when the spare is asked first in its place.
    demoted_since: Mutex<Option<Instant>>,
}

impl LatencyEstimate {
    fn get(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// Whether the spare is asked first in the place of this upstream at this moment. When its time is over, this one counts
    /// as hardly slower than the spare, to show whether it still is.
    fn is_demoted(&self, spare: &Self, now: Instant) -> bool {
        let quick = spare.get();
        let mut since = self.demoted_since.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get() < quick.saturating_mul(SLOWER) {
            *since = None;
            return false;
        }
        if now.duration_since(*since.get_or_insert(now)) < DEMOTION_TIME {
            return true;
        }
        *since = None;
        let next = quick.as_micros().try_into().unwrap_or(MOST).saturating_mul(2);
        self.micros.store(next.clamp(LEAST, MOST), Ordering::Relaxed);
        false
    }

    /// Moves up by 19 parts when a round took longer, and down by one part otherwise, so that one in twenty takes longer.
    fn note(&self, took: Duration) {
        let now = self.micros.load(Ordering::Relaxed);
        let part = now / 200;
        let longer = took > Duration::from_micros(now);
        let next = if longer { now.saturating_add(part * 19) } else { now.saturating_sub(part) };
        // A lost update of another task does no harm.
        self.micros.store(next.clamp(LEAST, MOST), Ordering::Relaxed);
    }
}

impl Hedges {
    pub(super) fn new(upstreams: usize) -> Self {
        let usual = (0..upstreams)
            .map(|_| LatencyEstimate { micros: AtomicU64::new(FIRST), demoted_since: Mutex::default() })
            .collect();
        Self { usual, budget: AtomicI64::new(FULL) }
    }

    /// Sends a round of requests to an upstream, and to the spare one as well if the first is slow; to the spare first if the
    /// other is passed over. Returns the responses, and whether they are the spare's.
    pub(super) async fn ask(
        &self,
        metrics: &Metrics,
        first: (usize, &SharedUpstream),
        spare: (usize, &SharedUpstream),
        requests: Vec<UpstreamRequest>,
    ) -> (UpstreamResponses, bool) {
        let usual = |index: usize| self.usual.get(index);
        let passed = usual(first.0).zip(usual(spare.0));
        if passed.is_some_and(|(first, spare)| first.is_demoted(spare, Instant::now())) {
            let (fetched, of_other) = self.race(metrics, spare, first, requests).await;
            return (fetched, !of_other);
        }
        self.race(metrics, first, spare, requests).await
    }

    /// Sends a round of requests to the first upstream, and to the spare one as well if the first is slow. Returns the
    /// responses, and whether they are the spare's. Those of the spare count only if it has a result for each request.
    async fn race(
        &self,
        metrics: &Metrics,
        first @ (index, _): (usize, &SharedUpstream),
        spare @ (spare_index, _): (usize, &SharedUpstream),
        requests: Vec<UpstreamRequest>,
    ) -> (UpstreamResponses, bool) {
        let started = Instant::now();
        self.change(EARNED);
        let mut first = pin!(ask(metrics, first, requests.clone()));
        if let Some(fetched) = self.wait(index, &mut first).await {
            // A quick failure does not make an upstream quick.
            if answers_all(&fetched) {
                self.note(index, started);
            }
            return (fetched, false);
        }
        metrics.hedged.inc();
        let asked = Instant::now();
        let second = pin!(ask(metrics, spare, requests));
        match select(first, second).await {
            Either::Left((fetched, _)) if answers_all(&fetched) => {
                self.note(index, started);
                (fetched, false)
            }
            // The first has failed; its failure is reported if the spare is of no more use.
            Either::Left((fetched, second)) => match second.await {
                other if answers_all(&other) => (self.won(metrics, other, (spare_index, asked)), true),
                _ => (fetched, false),
            },
            Either::Right((other, _)) if answers_all(&other) => {
                self.note(index, started);
                (self.won(metrics, other, (spare_index, asked)), true)
            }
            Either::Right((_, first)) => {
                let fetched = first.await;
                self.note(index, started);
                (fetched, false)
            }
        }
    }

    /// Waits until the round is answered, or it has taken its usual time and the budget allows a second one.
    async fn wait(
        &self,
        index: usize,
        mut first: impl Future<Output = UpstreamResponses> + Unpin,
    ) -> Option<UpstreamResponses> {
        let usual = self.usual.get(index).map_or(Duration::from_micros(MOST), LatencyEstimate::get);
        loop {
            match tokio::time::timeout(usual, &mut first).await {
                Ok(fetched) => return Some(fetched),
                Err(_) if self.take() => return None,
                Err(_) => {}
            }
        }
    }

    fn won(
        &self,
        metrics: &Metrics,
        fetched: UpstreamResponses,
        (spare, asked): (usize, Instant),
    ) -> UpstreamResponses {
        metrics.hedges_won.inc();
        self.note(spare, asked);
        self.change(REFUND);
        fetched
    }

    fn note(&self, upstream: usize, started: Instant) {
        if let Some(usual) = self.usual.get(upstream) {
            usual.note(started.elapsed());
        }
    }

    fn take(&self) -> bool {
        let enough = |left: i64| (left >= COST).then(|| left.saturating_sub(COST));
        self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough).is_ok()
    }

    fn change(&self, by: i64) {
        let add = |left: i64| Some(left.saturating_add(by).min(FULL));
        let _ = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

fn answers_all(fetched: &UpstreamResponses) -> bool {
    fetched.answers.iter().all(Result::is_ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_much_slower_than_its_spare_is_passed_over_for_a_minute() {
        let hedges = Hedges::new(2);
        let [slow, spare] = [0, 1].map(|index| &hedges.usual[index]);
        let begun = Instant::now();
        assert!(!slow.is_demoted(spare, begun) && !spare.is_demoted(slow, begun));
        for _ in 0..20 {
            slow.note(Duration::MAX);
        }
        assert!(slow.is_demoted(spare, begun) && !spare.is_demoted(slow, begun));
        assert!(slow.is_demoted(spare, begun + Duration::from_secs(59)));
        assert!(!slow.is_demoted(spare, begun + DEMOTION_TIME), "it is tried again");
        for _ in 0..20 {
            slow.note(Duration::MAX);
        }
        assert!(slow.is_demoted(spare, begun + DEMOTION_TIME), "it is no quicker");
    }
}
