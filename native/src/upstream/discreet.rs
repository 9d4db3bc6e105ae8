//! Upstreams of a service for others: their words are for its operator only.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use tokio::sync::Notify;
use tracing::info;

use super::{Dismissal, SharedUpstream, Turn, Upstream, UpstreamResult};
use crate::budget::Held;

/// What callers read in place of an upstream's words, which may name machines and accounts of the operator.
const INSTEAD: &str = "the server's log has the reason";

/// The request whose refusal is its answer.
const SEND: &str = "eth_sendRawTransaction";

/// An upstream whose words go to the log. Only the refusal of a transaction reaches its sender.
struct Discreet(SharedUpstream);

/// The same upstream, whose words do not reach callers, probes and pages.
pub(crate) fn discreet(upstream: SharedUpstream) -> SharedUpstream {
    Arc::new(Discreet(upstream))
}

/// Which of the requests may be answered with the upstream's words.
fn refusals(requests: &[UpstreamRequest]) -> Vec<bool> {
    requests.iter().map(|request| request.method == SEND).collect()
}

impl Discreet {
    fn conceal(&self, results: &mut [UpstreamResult], shown: &[bool]) {
        for (result, shown) in results.iter_mut().zip(shown) {
            let Err(error) = result else { continue };
            if *shown {
                continue;
            }
            let told = error.to_string();
            if let Some(words) = error.words() {
                INSTEAD.clone_into(words);
                info!(upstream = self.0.name(), error = %told, "a request to an upstream failed");
            }
        }
    }
}

impl Upstream for Discreet {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        Box::pin(async move { self.request_held(requests).await.0 })
    }

    fn request_held(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, (Vec<UpstreamResult>, Held)> {
        Box::pin(async move {
            let shown = refusals(&requests);
            let (mut results, held) = self.0.request_held(requests).await;
            self.conceal(&mut results, &shown);
            (results, held)
        })
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn heads(&self) -> Option<Arc<Notify>> {
        self.0.heads()
    }

    fn turn(&self) -> Option<Turn> {
        self.0.turn()
    }

    fn dismiss(&self, turn: u64, reason: Dismissal) {
        self.0.dismiss(turn, reason);
    }

    fn address(&self) -> Option<IpAddr> {
        self.0.address()
    }
}

#[cfg(test)]
mod tests {
    use super::super::UpstreamError;
    use super::*;

    const WORDS: &str = "upstream connect error: db-7.corp.internal:5432, project 0123456789abcdef";

    /// An upstream that fails in every way that has words.
    struct Talkative;

    impl Upstream for Talkative {
        fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
            let errors = [
                UpstreamError::Rpc { code: -32_000, message: WORDS.into(), data: None },
                UpstreamError::Transport(WORDS.into()),
                UpstreamError::Malformed(WORDS.into()),
            ];
            let results = requests.iter().zip(errors.into_iter().cycle()).map(|(_, error)| Err(error));
            Box::pin(std::future::ready(results.collect()))
        }

        fn name(&self) -> &str {
            "talkative"
        }
    }

    #[tokio::test]
    async fn callers_learn_no_words_of_an_upstream_but_why_it_refuses_a_transaction() {
        let request = |method| UpstreamRequest::new(method, "[]".into());
        let methods = ["eth_getProof", "eth_getBlockByNumber", "eth_getLogs", SEND];
        let results = discreet(Arc::new(Talkative)).request(methods.map(request).into()).await;
        let texts: Vec<String> = results.into_iter().map(|result| result.unwrap_err().to_string()).collect();
        assert_eq!(texts.len(), methods.len());
        for text in &texts[..3] {
            assert!(text.ends_with(INSTEAD), "{text}");
        }
        assert_eq!(texts[0], format!("upstream error -32000: {INSTEAD}"), "the code stays");
        assert_eq!(texts[3], format!("upstream error -32000: {WORDS}"));
    }
}
