//! Upstreams whose error texts only the operator may read: such a text may name machines and accounts of the operator. Other callers
//! and pages of other origins get a fixed text instead, and the log has the error.

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use tracing::info;

use super::{ReservedResults, SharedUpstream, Upstream, UpstreamResult, quota_owner};

/// The text that callers get instead of the text of an upstream.
const REDACTED_TEXT: &str = "the server's log has the reason";

/// An upstream whose error texts go to the log. Only the refusal of a transaction is returned to its sender.
struct RedactedUpstream {
    upstream: SharedUpstream,
    /// Whether no caller and no probe is the operator's: the server is a service for others.
    is_public: bool,
}

/// Wraps an upstream so that pages of other origins do not get its error texts. In a service `for_others`, no caller and no probe
/// gets them.
pub fn redacted(upstream: SharedUpstream, for_others: bool) -> SharedUpstream {
    Arc::new(RedactedUpstream { upstream, is_public: for_others })
}

impl RedactedUpstream {
    /// Whether the present caller may read the upstream's error texts.
    fn may_read_errors(&self) -> bool {
        !self.is_public && quota_owner().is_none_or(|owner| !owner.is_page)
    }

    /// Replaces the texts of all errors, except where `refusals` is true: the error of a sent transaction is the answer that its
    /// sender needs.
    fn redact_results(&self, results: &mut [UpstreamResult], refusals: &[bool]) {
        for (result, is_refusal) in results.iter_mut().zip(refusals) {
            let Err(error) = result else { continue };
            if *is_refusal {
                continue;
            }
            let full = error.to_string();
            if let Some(text) = error.foreign_text() {
                REDACTED_TEXT.clone_into(text);
                info!(upstream = self.upstream.name(), error = %full, "a request to an upstream failed");
            }
        }
    }
}

impl Upstream for RedactedUpstream {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            if self.may_read_errors() {
                return self.upstream.request_reserved(requests).await;
            }
            let refusals: Vec<bool> = requests.iter().map(UpstreamRequest::sends).collect();
            let (mut results, reserved) = self.upstream.request_reserved(requests).await;
            self.redact_results(&mut results, &refusals);
            (results, reserved)
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
    use rootlight_limits::quota_owner::QuotaOwner;

    use super::super::{UpstreamError, unreserved, with_caller};
    use super::*;

    const WORDS: &str = "upstream connect error: db-7.corp.internal:5432, project 0123456789abcdef";

    /// An upstream that fails with each error whose text the upstream or a library writes.
    struct FailingUpstream;

    impl Upstream for FailingUpstream {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            let errors = [
                UpstreamError::Rpc { code: -32_000, message: WORDS.into(), data: None },
                UpstreamError::Transport(WORDS.into()),
                UpstreamError::Malformed(WORDS.into()),
            ];
            let results = requests.iter().zip(errors.into_iter().cycle()).map(|(_, error)| Err(error));
            Box::pin(unreserved(std::future::ready(results.collect())))
        }

        fn name(&self) -> &str {
            "talkative"
        }
    }

    #[tokio::test]
    async fn callers_get_texts_of_an_upstream_only_for_a_refused_transaction() {
        let request = |method| UpstreamRequest::new(method, "[]".into());
        let methods = ["eth_getProof", "eth_getBlockByNumber", "eth_getLogs", "eth_sendRawTransaction"];
        let results = redacted(Arc::new(FailingUpstream), true).request(methods.map(request).into()).await;
        let texts: Vec<String> = results.into_iter().map(|result| result.unwrap_err().to_string()).collect();
        assert_eq!(texts.len(), methods.len());
        for text in &texts[..3] {
            assert!(text.ends_with(REDACTED_TEXT), "{text}");
        }
        assert_eq!(texts[0], format!("upstream error -32000: {REDACTED_TEXT}"), "the code stays");
        assert_eq!(texts[3], format!("upstream error -32000: {WORDS}"));
    }

    #[tokio::test]
    async fn programs_get_texts_of_the_users_own_upstream_and_foreign_pages_do_not() {
        let upstream = redacted(Arc::new(FailingUpstream), false);
        let asked_for = async |is_page| {
            let request = vec![UpstreamRequest::new("eth_getProof", "[]".into())];
            let owner = QuotaOwner { number: 7, is_page };
            with_caller(owner, upstream.request(request)).await.remove(0).unwrap_err().to_string()
        };
        assert!(asked_for(false).await.ends_with(WORDS));
        assert!(asked_for(true).await.ends_with(REDACTED_TEXT));
    }
}
