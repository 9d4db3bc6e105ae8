//! Upstreams whose words are for the operator only: neither other callers nor pages of other origins learn them.

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Held;
use tracing::info;

use super::{SharedUpstream, Upstream, UpstreamResult, asker};

/// What callers read in place of an upstream's words, which may name machines and accounts of the operator.
const INSTEAD: &str = "the server's log has the reason";

/// An upstream whose words go to the log. Only the refusal of a transaction reaches its sender.
struct Discreet {
    upstream: SharedUpstream,
    /// Whether all callers and probes are others than the operator.
    is_for_others: bool,
}

/// Wraps an upstream so that pages of other origins do not read the upstream's words. In a service `for_others`, no caller and
/// no probe reads the words.
pub fn discreet(upstream: SharedUpstream, for_others: bool) -> SharedUpstream {
    Arc::new(Discreet { upstream, is_for_others: for_others })
}

impl Discreet {
    /// Whether the present caller may read the upstream's words.
    fn is_open(&self) -> bool {
        !self.is_for_others && asker().is_none_or(|asker| asker.page == 0)
    }

    /// Conceals the words of all errors but those of `refusals`: the refusal of a transaction is its answer.
    fn conceal(&self, results: &mut [UpstreamResult], refusals: &[bool]) {
        for (result, is_refusal) in results.iter_mut().zip(refusals) {
            let Err(error) = result else { continue };
            if *is_refusal {
                continue;
            }
            let told = error.to_string();
            if let Some(words) = error.words() {
                INSTEAD.clone_into(words);
                info!(upstream = self.upstream.name(), error = %told, "a request to an upstream failed");
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
            if self.is_open() {
                return self.upstream.request_held(requests).await;
            }
            let refusals: Vec<bool> = requests.iter().map(UpstreamRequest::sends).collect();
            let (mut results, held) = self.upstream.request_held(requests).await;
            self.conceal(&mut results, &refusals);
            (results, held)
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
    use rootlight::types::Asker;

    use super::super::{UpstreamError, asked_by};
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
        let methods = ["eth_getProof", "eth_getBlockByNumber", "eth_getLogs", "eth_sendRawTransaction"];
        let results = discreet(Arc::new(Talkative), true).request(methods.map(request).into()).await;
        let texts: Vec<String> = results.into_iter().map(|result| result.unwrap_err().to_string()).collect();
        assert_eq!(texts.len(), methods.len());
        for text in &texts[..3] {
            assert!(text.ends_with(INSTEAD), "{text}");
        }
        assert_eq!(texts[0], format!("upstream error -32000: {INSTEAD}"), "the code stays");
        assert_eq!(texts[3], format!("upstream error -32000: {WORDS}"));
    }

    #[tokio::test]
    async fn the_words_of_a_users_own_upstream_are_for_programs_and_not_for_pages_of_other_origins() {
        let upstream = discreet(Arc::new(Talkative), false);
        let asked_for = async |page| {
            let request = vec![UpstreamRequest::new("eth_getProof", "[]".into())];
            let asker = Asker { number: 7, page };
            asked_by(asker, upstream.request(request)).await.remove(0).unwrap_err().to_string()
        };
        assert!(asked_for(0).await.ends_with(WORDS));
        assert!(asked_for(1).await.ends_with(INSTEAD));
    }
}
