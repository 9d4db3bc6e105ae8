//! Hedged requests: asks a second upstream, the spare, when the first is slower than usual, and takes the response that comes first. If
//! an upstream is much slower than its spare, the spare is asked first for a while. `rootlight::light::Hedges` has the statistics.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use rootlight::light::{Hedges, UpstreamRequest};
use rootlight_server::metrics::Metrics;
use rootlight_upstream::SharedUpstream;

use super::ask::{UpstreamResponses, ask};

/// The speed of the upstreams, which the rounds of all messages share.
#[derive(Debug)]
pub(super) struct SharedHedges {
    hedges: Mutex<Hedges>,
    /// The begin of the clock for `hedges`.
    started: Instant,
}

impl SharedHedges {
    pub(super) fn new(upstreams: usize) -> Self {
        Self { hedges: Mutex::new(Hedges::new(upstreams)), started: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Hedges> {
        self.hedges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a round of requests to an upstream, and to the spare as well if the upstream is slow. If the upstream was much slower than
    /// the spare before, the spare is asked first. Returns the responses, and whether they are the spare's.
    pub(super) async fn ask(
        &self,
        metrics: &Metrics,
        first: (usize, &SharedUpstream),
        spare: (usize, &SharedUpstream),
        requests: Vec<UpstreamRequest>,
    ) -> (UpstreamResponses, bool) {
        // `patience` is the usual time of the upstream that is asked first, in microseconds.
        let (spare_first, patience) = self.lock().begin(first.0, spare.0, micros(self.started));
        let patience = Duration::from_micros(patience);
        if spare_first {
            let (fetched, of_other) = self.race(metrics, (spare, patience), first, requests).await;
            return (fetched, !of_other);
        }
        self.race(metrics, (first, patience), spare, requests).await
    }

    /// Sends a round of requests to the first upstream, and to the spare as well if the first takes longer than `patience`. Returns the
    /// responses, and whether they are the spare's. The spare's responses are used only if it has a result for each request.
    async fn race(
        &self,
        metrics: &Metrics,
        (first @ (index, _), patience): ((usize, &SharedUpstream), Duration),
        spare @ (spare_index, _): (usize, &SharedUpstream),
        requests: Vec<UpstreamRequest>,
    ) -> (UpstreamResponses, bool) {
        let started = Instant::now();
        let mut first = pin!(ask(metrics, first, requests.clone()));
        if let Some(fetched) = self.wait(patience, &mut first).await {
            // The time of a failure does not count as the upstream's speed.
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
            // The first upstream has failed; its failure is returned if the spare fails too.
            Either::Left((fetched, second)) => match second.await {
                other if answers_all(&other) => (self.count_won(metrics, other, (spare_index, asked)), true),
                _ => (fetched, false),
            },
            Either::Right((other, _)) if answers_all(&other) => {
                // The first upstream has taken at least this long.
                self.note(index, started);
                (self.count_won(metrics, other, (spare_index, asked)), true)
            }
            Either::Right((_, first)) => {
                let fetched = first.await;
                self.note(index, started);
                (fetched, false)
            }
        }
    }

    /// Waits until the round is answered; `None` if it has taken longer than `patience` and the budget allows a second round.
    async fn wait(
        &self,
        patience: Duration,
        mut first: impl Future<Output = UpstreamResponses> + Unpin,
    ) -> Option<UpstreamResponses> {
        loop {
            match tokio::time::timeout(patience, &mut first).await {
                Ok(fetched) => return Some(fetched),
                Err(_) if self.lock().take_second_round() => return None,
                Err(_) => {}
            }
        }
    }

    /// Counts a second round whose responses are used. Returns them.
    fn count_won(
        &self,
        metrics: &Metrics,
        fetched: UpstreamResponses,
        (spare, asked): (usize, Instant),
    ) -> UpstreamResponses {
        metrics.hedges_won.inc();
        self.lock().note_second_won(spare, micros(asked));
        fetched
    }

    /// Notes how long a round has taken at an upstream.
    fn note(&self, upstream: usize, asked: Instant) {
        self.lock().note(upstream, micros(asked));
    }
}

/// Microseconds since an instant.
fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros().try_into().unwrap_or(u64::MAX)
}

/// Whether each request has a result.
fn answers_all(fetched: &UpstreamResponses) -> bool {
    fetched.answers.iter().all(Result::is_ok)
}
