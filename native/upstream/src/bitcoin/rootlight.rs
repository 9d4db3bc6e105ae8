//! Another Rootlight as a source of Bitcoin's chain, over HTTP or WebSocket, by its methods `rootlight_getBitcoinHeaders` and
//! `rootlight_getBitcoinTags`.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::bitcoin::HEADER_LEN;
use rootlight::light::bitcoin::{ServedHeaders, decode_bitcoin_headers, decode_coinbases};
use rootlight_limits::Limits;
use serde_json::json;

use super::coinbase::RawCoinbase;
use crate::{
    HttpConfig, HttpUpstream, SharedUpstream, UpstreamError, UpstreamResult, UrlError, WsUpstream, call,
    quantity,
};

/// Longest response, in bytes. The coinbases of 144 blocks without a tag, of pools that pay hundreds of miners in the coinbase,
/// have 6.5 MB.
const RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Another Rootlight. It may follow no Bitcoin chain, and says so then.
pub(super) struct Rootlight {
    upstream: SharedUpstream,
}

impl Rootlight {
    /// Prepares a source at an `http(s)` or `ws(s)` URL; nothing is sent yet.
    pub(super) fn new(
        url: &str,
        is_http: bool,
        limit: Duration,
        limits: Arc<Limits>,
    ) -> Result<Self, UrlError> {
        let config = HttpConfig {
            timeout: limit,
            answer_bytes: RESPONSE_BYTES,
            attempts: 1,
            limits,
            ..HttpConfig::default()
        };
        let upstream: SharedUpstream = match is_http {
            true => Arc::new(HttpUpstream::new(url, config)?),
            false => Arc::new(WsUpstream::new(url, config)?),
        };
        Ok(Self { upstream })
    }

    pub(super) async fn tip(&self) -> Result<u32, UpstreamError> {
        // A page of no headers states the tip too.
        Ok(self.page(0, 0).await?.tip)
    }

    /// Headers from a height on, or from the lowest that the server has.
    pub(super) async fn headers(
        &self,
        from: u32,
        count: u32,
    ) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        Ok(self.page(from, count).await?.headers)
    }

    /// Requests headers; `tip` of the response is the height of the newest block.
    async fn page(&self, from: u32, count: u32) -> Result<ServedHeaders, UpstreamError> {
        let request =
            call("rootlight_getBitcoinHeaders", json!([quantity(from.into()), quantity(count.into())]));
        let (results, _held) = self.upstream.request_reserved(vec![request]).await;
        let result = results.into_iter().next().unwrap_or_else(|| Err(malformed("no response")));
        decode_bitcoin_headers(&text(result)?, count).map_err(malformed)
    }

    /// The coinbases that the server has of these heights. Each request is for a run of consecutive heights.
    pub(super) async fn coinbases(&self, heights: &[u32]) -> Result<Vec<RawCoinbase>, UpstreamError> {
        let runs = runs(heights);
        let request = |(first, count): &(u32, u32)| {
            let params = json!([quantity((*first).into()), quantity((*count).into())]);
            call("rootlight_getBitcoinTags", params)
        };
        let (results, _held) = self.upstream.request_reserved(runs.iter().map(request).collect()).await;
        let (mut coinbases, mut failure) = (Vec::new(), None);
        for ((first, count), result) in runs.into_iter().zip(results) {
            let decode = |text: String| decode_coinbases(&text, count as usize).map_err(malformed);
            match text(result).and_then(decode) {
                Ok(proofs) => coinbases.extend(
                    (first..)
                        .zip(proofs)
                        .filter_map(|(height, proof)| Some(RawCoinbase { height, proof: proof? })),
                ),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if coinbases.is_empty() => Err(error),
            _ => Ok(coinbases),
        }
    }
}

/// The text of a result. A server that follows no Bitcoin chain gives `null`, which is an error here.
fn text(result: UpstreamResult) -> Result<String, UpstreamError> {
    let text: Option<String> = serde_json::from_str(result?.get()).map_err(|_| malformed("not a text"))?;
    text.ok_or_else(|| UpstreamError::Silent("the server follows no Bitcoin chain".into()))
}

fn malformed(reason: impl ToString) -> UpstreamError {
    UpstreamError::Malformed(reason.to_string())
}

/// The first height and the length of each run of consecutive heights, from the lowest on.
fn runs(heights: &[u32]) -> Vec<(u32, u32)> {
    let mut heights = heights.to_vec();
    heights.sort_unstable();
    heights.dedup();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for height in heights {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == height => *count += 1,
            _ => runs.push((height, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReservedResults, Upstream, unreserved};
    use futures::future::BoxFuture;
    use rootlight::light::UpstreamRequest;
    use serde_json::Value;
    use serde_json::value::RawValue;

    /// A server that answers each request by a function.
    struct Answering(fn(&str, Value) -> UpstreamResult);

    impl Upstream for Answering {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            Box::pin(unreserved(async move {
                let parameters = |text: &str| serde_json::from_str(text).unwrap();
                requests.iter().map(|asked| self.0(asked.method, parameters(&asked.params))).collect()
            }))
        }

        fn name(&self) -> &str {
            "answering"
        }
    }

    fn source(answer: fn(&str, Value) -> UpstreamResult) -> Rootlight {
        Rootlight { upstream: Arc::new(Answering(answer)) }
    }

    fn result(value: &Value) -> UpstreamResult {
        Ok(RawValue::from_string(value.to_string()).unwrap())
    }

    #[test]
    fn heights_are_asked_for_in_runs() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[9, 8, 7, 3, 5, 4, u32::MAX, 9]), [(3, 3), (7, 3), (u32::MAX, 1)]);
        assert_eq!(runs(&[u32::MAX, u32::MAX - 1]), [(u32::MAX - 1, 2)]);
    }

    #[tokio::test]
    async fn a_server_without_a_bitcoin_chain_is_no_source() {
        let none = source(|_, _| result(&Value::Null));
        let silent = |error: &UpstreamError| matches!(error, UpstreamError::Silent(_));
        assert!(none.tip().await.is_err_and(|error| silent(&error)));
        assert!(none.headers(1, 5).await.is_err_and(|error| silent(&error)));
        assert!(none.coinbases(&[1, 2]).await.is_err_and(|error| silent(&error)));
    }

    #[tokio::test]
    async fn results_of_another_form_are_refused() {
        for answer in [
            |_: &str, _: Value| result(&json!(5)),
            |_: &str, _: Value| result(&json!({"headers": []})),
            |_: &str, _: Value| result(&json!("nonsense")),
            |_: &str, _: Value| result(&json!("AAAA")),
            // Lists of coinbases with more entries than were requested.
            |_: &str, _: Value| result(&json!("AcPAwMA=")),
        ] {
            let source = source(answer);
            let malformed = |error: &UpstreamError| matches!(error, UpstreamError::Malformed(_));
            assert!(source.tip().await.is_err_and(|error| malformed(&error)));
            assert!(source.headers(1, 5).await.is_err_and(|error| malformed(&error)));
            assert!(source.coinbases(&[1, 2]).await.is_err_and(|error| malformed(&error)));
        }
    }

    #[tokio::test]
    async fn coinbases_have_the_heights_that_were_asked_for() {
        let source = source(|method, params| {
            assert_eq!(method, "rootlight_getBitcoinTags");
            match params[0].as_str() {
                // None, and one with the flag "cut", the coinbase 1 and the branch 2.
                Some("0x3") => result(&json!("AcXAwwEBAg==")),
                // A whole coinbase, without the flag.
                Some("0x7") => result(&json!("AcTDgAEC")),
                _ => Err(UpstreamError::Status(500)),
            }
        });
        let given = source.coinbases(&[9, 7, 4, 3]).await.unwrap();
        let read: Vec<_> = given
            .iter()
            .map(|RawCoinbase { height, proof }| {
                (*height, proof.is_cut, &proof.coinbase[..], &proof.branch[..])
            })
            .collect();
        assert_eq!(read, [(4, true, &[1][..], &[2][..]), (7, false, &[1], &[2])]);
        assert_eq!(source.coinbases(&[9]).await, Err(UpstreamError::Status(500)));
    }
}
