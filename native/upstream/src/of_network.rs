//! Upstreams whose network is checked by `eth_chainId`: the requests to an upstream of another network fail with an error that
//! names both chain ids.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join};
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use tokio::time::Instant;

use super::{ReservedResults, SharedUpstream, Upstream, UpstreamError, UpstreamResult, words};

/// Time after which an upstream of the network is asked for its chain id again: another node may answer at its address now.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The method that returns the chain id.
const CHAIN_ID: &str = "eth_chainId";

/// An upstream whose responses count only if it is of the network with this chain id.
struct UpstreamOfNetwork {
    upstream: SharedUpstream,
    chain_id: u64,
    /// When the upstream last stated the chain id of the network, or last refused to state one; `None` before, and after it stated
    /// another one.
    checked: Mutex<Option<Instant>>,
}

/// Wraps an upstream so that requests fail while the upstream is of another network; the error names both chain ids. The chain id
/// is requested together with the first requests, and again with each further one until it is that of the network. Then it is
/// requested every half a minute at most, together with another request, and with each request for the chain id.
pub fn of_network(upstream: SharedUpstream, chain_id: u64) -> SharedUpstream {
    Arc::new(UpstreamOfNetwork { upstream, chain_id, checked: Mutex::new(None) })
}

impl UpstreamOfNetwork {
    /// Whether the upstream need not be asked for its network beside these requests.
    fn is_checked(&self, requests: &[UpstreamRequest]) -> bool {
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.is_some_and(|at| at.elapsed() < ASK_AGAIN)
            && requests.iter().all(|request| request.method != CHAIN_ID)
    }

    /// The chain id of the upstream if it is another one.
    async fn other_network(&self) -> Option<u64> {
        let asked = UpstreamRequest::new(CHAIN_ID, "[]".into());
        let given = self.upstream.request(vec![asked]).await.into_iter().next()?;
        let found = match &given {
            Ok(id) => chain_id(id.get()),
            // A node that does not state its chain id is checked by its headers, in the core.
            Err(UpstreamError::Rpc { .. } | UpstreamError::NotRecorded(_)) => None,
            Err(_) => return None,
        };
        let other = found.filter(|id| *id != self.chain_id);
        let checked = other.is_none().then(Instant::now);
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = checked;
        other
    }
}

/// Reads a chain id as nodes give it.
fn chain_id(json: &str) -> Option<u64> {
    u64::from_str_radix(json.trim_matches('"').strip_prefix("0x")?, 16).ok()
}

impl Upstream for UpstreamOfNetwork {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            if self.is_checked(&requests) {
                return self.upstream.request_reserved(requests).await;
            }
            let count = requests.len();
            let (given, other) = join(self.upstream.request_reserved(requests), self.other_network()).await;
            let Some(found) = other else { return given };
            let refused = || -> UpstreamResult {
                Err(UpstreamError::Silent(words::other_network(found, self.chain_id)))
            };
            (std::iter::repeat_with(refused).take(count).collect(), Reservation::default())
        })
    }

    fn name(&self) -> &str {
        self.upstream.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.upstream)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::value::RawValue;

    use super::super::unreserved;
    use super::*;

    /// Answers each request with the next of these results, and counts the requests for the chain id.
    struct ScriptedNode {
        results: Mutex<Vec<UpstreamResult>>,
        asked: Mutex<usize>,
    }

    fn json(text: &str) -> UpstreamResult {
        Ok(RawValue::from_string(text.to_owned()).unwrap())
    }

    impl Upstream for ScriptedNode {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            let is_id = requests[0].method == "eth_chainId";
            let result = if is_id { self.results.lock().unwrap().remove(0) } else { json("1") };
            *self.asked.lock().unwrap() += usize::from(is_id);
            Box::pin(unreserved(std::future::ready(vec![result])))
        }

        fn name(&self) -> &str {
            "told"
        }
    }

    #[tokio::test]
    async fn requests_fail_while_the_upstream_is_of_another_network() {
        let silent = || Err(UpstreamError::Timeout(1));
        let node = Arc::new(ScriptedNode {
            results: Mutex::new(vec![json("\"0x1e\""), silent(), json("\"0x1e\""), json("\"0x21\"")]),
            asked: Mutex::default(),
        });
        let upstream = of_network(node.clone(), 33);
        let mut told_ids = Vec::new();
        for _ in 0..6 {
            let request = UpstreamRequest::new("eth_blockNumber", "[]".into());
            let error = upstream.request(vec![request]).await.remove(0).err();
            told_ids
                .push(error.map(|error| error.to_string().contains("chain id 30, not 33: use an upstream")));
        }
        assert_eq!(told_ids, [Some(true), None, Some(true), None, None, None]);
        assert_eq!(*node.asked.lock().unwrap(), 4, "not asked again once it is of the network");
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_turns_to_another_network_is_noticed() {
        let ids = ["\"0x21\"", "\"0x1f\"", "\"0x21\"", "\"0x1f\""].map(json).into();
        let node = Arc::new(ScriptedNode { results: Mutex::new(ids), asked: Mutex::default() });
        let upstream = of_network(node.clone(), 33);
        let ask = async |method| {
            let request = UpstreamRequest::new(method, "[]".into());
            upstream.request(vec![request]).await.remove(0).is_ok()
        };
        assert!(ask("eth_blockNumber").await && ask("eth_blockNumber").await);
        tokio::time::advance(ASK_AGAIN).await;
        assert!(!ask("eth_blockNumber").await);
        assert!(ask("eth_blockNumber").await);
        let refused = UpstreamRequest::new("eth_blockNumber", "[]".into());
        let id = UpstreamRequest::new(CHAIN_ID, "[]".into());
        assert!(upstream.request(vec![refused, id]).await.iter().all(Result::is_err));
    }

    #[tokio::test]
    async fn requests_to_an_upstream_without_a_chain_id_are_passed_on() {
        let unknown = UpstreamError::Rpc { code: -32601, message: "no".into(), data: None };
        for answer in [json("null"), Err(unknown), Err(UpstreamError::NotRecorded(String::new()))] {
            let node = Arc::new(ScriptedNode { results: Mutex::new(vec![answer]), asked: Mutex::default() });
            let upstream = of_network(node.clone(), 33);
            for _ in 0..2 {
                let request = UpstreamRequest::new("eth_blockNumber", "[]".into());
                assert!(upstream.request(vec![request]).await[0].is_ok());
            }
            assert_eq!(*node.asked.lock().unwrap(), 1);
        }
    }
}
