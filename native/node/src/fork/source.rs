//! The upstreams of a fork, and the loop that sends them the requests of `rootlight::dev::fork`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::dev::fork::{Exchanges, Fetched, ForkError, Stop};
use rootlight::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};
use rootlight_limits::budget::Reservation;
use rootlight_upstream::{SharedUpstream, UpstreamError};
use tokio::sync::Mutex;

/// The upstreams of a fork, and the policy for state that they do not prove.
#[derive(Debug)]
pub struct ForkSource {
    pub(super) upstreams: Vec<SharedUpstream>,
    pub(super) unproven: UnprovenPolicy,
    /// Names of the upstreams.
    names: Arc<[String]>,
    /// Number of lists of requests that were sent.
    exchanges: AtomicU64,
    /// Locked by a message while it has responses in memory, so that only one message at a time has them. A message that reads much
    /// fetches in parts, and unlocks between two parts.
    memory_lock: Mutex<()>,
}

impl ForkSource {
    /// These upstreams, which are asked in this order. With a quorum each of them counts, whatever its domain.
    #[must_use]
    pub fn new(upstreams: Vec<SharedUpstream>, unproven: UnprovenPolicy) -> Self {
        let names = upstreams.iter().map(|upstream| upstream.name().to_owned()).collect();
        Self { upstreams, unproven, names, exchanges: AtomicU64::new(0), memory_lock: Mutex::default() }
    }

    /// How many lists of requests were sent so far.
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }

    /// Runs `work` with each response that it asks for, until it asks for no more.
    pub(super) async fn fetch<T>(
        &self,
        mut work: impl FnMut(&mut Exchanges) -> Fetched<T>,
    ) -> Result<T, ForkError> {
        let mut exchanges = Exchanges::new(self.names.clone(), self.unproven);
        // Reservations of the bytes of responses that `exchanges` still needs, one for each exchange.
        let (mut memory_lock, mut reserved) = (None, Vec::new());
        loop {
            match work(&mut exchanges) {
                Ok(value) => return Ok(value),
                Err(Stop::Failed(error @ ForkError::Unanswered { .. })) => return Err(error),
                Err(Stop::Failed(error)) => return Err(self.unusable().await.unwrap_or(error)),
                Err(Stop::Ask(upstream, requests)) => {
                    reserved.truncate(exchanges.answered());
                    // No response is in memory now, so another message may fetch first.
                    if reserved.is_empty() {
                        drop(memory_lock.take());
                        memory_lock = Some(self.memory_lock.lock().await);
                    }
                    let (responses, bytes) = self.ask(upstream, requests.clone()).await;
                    reserved.push(bytes);
                    exchanges.feed(upstream, requests, responses);
                }
            }
        }
    }

    /// The failure to report if no upstream can be used, because each is offline or of another network. Without this check, the error
    /// would say that their responses are pruned, reorganised or false.
    async fn unusable(&self) -> Option<ForkError> {
        let mut first = None;
        for upstream in &self.upstreams {
            let request = UpstreamRequest::new("eth_chainId", "[]".to_owned());
            let reason = match upstream.request(vec![request]).await.into_iter().next()? {
                // The upstream answers, so it is not the reason.
                Ok(_) | Err(UpstreamError::Rpc { .. } | UpstreamError::NotRecorded(_)) => return None,
                Err(error) => RequestFailure::from(error).to_string(),
            };
            let (name, what) = (upstream.name().to_owned(), "its network".to_owned());
            first.get_or_insert(ForkError::Unanswered { name, what, reason });
        }
        first
    }

    /// Asks an upstream. Returns the responses, and the bytes of the budget of upstream responses that they take.
    async fn ask(
        &self,
        upstream: usize,
        requests: Vec<UpstreamRequest>,
    ) -> (Vec<UpstreamResponse>, Reservation) {
        let Some(upstream) = self.upstreams.get(upstream) else { return <_>::default() };
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        let (results, reserved) = upstream.request_reserved(requests).await;
        (results.into_iter().map(|result| result.map_err(RequestFailure::from)).collect(), reserved)
    }
}
