//! Limits the requests that callers have at the operator's node at the same time: each caller has a few permits, and callers whose
//! requests the node left unanswered have few together, because a node goes on running a request after its caller has stopped waiting.

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use rootlight_limits::request_permits::{PermitLimits, RequestPermit, RequestPermits};
use rootlight_upstream::{
    ReservedResults, SharedUpstream, Upstream, UpstreamError, UpstreamResult, quota_owner,
};

/// Most requests at the same time: of all callers, of each, and of those whose requests were left unanswered together. A node runs some
/// tens of requests at the same time.
const LIMITS: PermitLimits = PermitLimits { all: 32, each: 8, doubtful: 4 };

/// The operator's node, with permits for callers' requests.
pub(super) struct LimitedNode {
    node: SharedUpstream,
    permits: Arc<RequestPermits>,
}

impl LimitedNode {
    pub(super) fn new(node: SharedUpstream) -> Self {
        Self { node, permits: RequestPermits::new(LIMITS) }
    }

    /// Waits for a permit, if the request is of a caller: `Ok(None)` for the program's own requests.
    async fn enter(&self) -> Result<Option<RequestPermit>, UpstreamError> {
        if quota_owner().is_none() {
            return Ok(None);
        }
        let permit = self.permits.acquire(quota_owner()).await;
        let full = || UpstreamError::NotSent("too many questions of this caller wait for the node".into());
        permit.ok_or_else(full).map(Some)
    }
}

/// Notes whether the node left a caller's request unanswered.
fn leave(permit: Option<RequestPermit>, results: &[UpstreamResult]) {
    let unanswered = results.iter().any(|result| matches!(result, Err(UpstreamError::Timeout(_))));
    if let Some(permit) = permit.filter(|_| unanswered) {
        permit.unanswered();
    }
}

impl Upstream for LimitedNode {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            let permit = match self.enter().await {
                Ok(permit) => permit,
                Err(error) => {
                    return (requests.iter().map(|_| Err(error.clone())).collect(), Reservation::default());
                }
            };
            let (results, reserved) = self.node.request_reserved(requests).await;
            leave(permit, &results);
            (results, reserved)
        })
    }

    fn name(&self) -> &str {
        self.node.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.node)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use rootlight_upstream::{unreserved, with_caller};

    use super::*;

    /// A node that is busy for long with what it is asked.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    impl Upstream for Slow {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(unreserved(async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                requests.iter().map(|_| Err(UpstreamError::Timeout(10_000))).collect()
            }))
        }

        fn name(&self) -> &str {
            "slow"
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_slow_calls_leaves_room_at_the_node_to_others() {
        let slow = Arc::new(Slow::default());
        let node = Arc::new(LimitedNode::new(slow.clone()));
        let ask = |caller: Option<u64>| {
            let node = node.clone();
            let asked =
                async move { node.request(vec![UpstreamRequest::new("eth_call", "[]".into())]).await };
            match caller {
                Some(caller) => tokio::spawn(with_caller(caller.into(), asked)),
                None => tokio::spawn(asked),
            }
        };
        let count = || slow.0.load(Ordering::SeqCst);
        let calls: Vec<_> = (0..50).map(|_| ask(Some(1))).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count(), 8);
        drop([Some(2), None].map(ask));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count(), 10, "another caller and the program itself do not wait");
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(count(), 14, "whose calls are left unanswered has few places");
        calls.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
