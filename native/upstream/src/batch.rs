//! Sends any number of requests in batches of the size that the upstream accepts, over HTTP (`http.rs`) or WebSocket (`ws.rs`).
//! The core encodes and decodes the batches.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use rootlight::light::{NO_RESPONSE, RawResponse, RequestFailure, UpstreamRequest, read_batch};
use rootlight_limits::budget::Reservation;
use tokio::time::Instant;
use tracing::debug;

use super::error::{Secrets, redact};
use super::source_quota::{ReceivedBytes, bytes_of};
use super::{UpstreamError, UpstreamResult};

/// Longest `data` of an error that is kept, in bytes of JSON text; longer data is left out, because parsed values take many times
/// as much memory.
const DATA_BYTES: usize = 64 * 1024;

/// The decoded response to a batch.
pub(crate) enum Decoded {
    /// Results in the order of the requests.
    Results(Vec<UpstreamResult>),
    /// One error for the whole batch, for instance because the batch is too long. Smaller batches may be accepted.
    Refused(UpstreamError),
}

/// Decodes the response to `count` requests, whose ids start at `first`. Of several responses with one id the first counts.
fn decode(text: &[u8], first: u64, count: usize) -> Result<Decoded, UpstreamError> {
    let mut results: Vec<Option<UpstreamResult>> = Vec::new();
    results.resize_with(count, || None);
    let refusal = read_batch(text, first, count, &mut |index, response| {
        if let Some(slot @ None) = results.get_mut(index) {
            *slot = Some(result_of(response));
        }
    })?;
    if let Some(refusal) = refusal {
        let not_an_error = || UpstreamError::Malformed("one response object for a whole batch".into());
        return Ok(Decoded::Refused(result_of(refusal).err().unwrap_or_else(not_an_error)));
    }
    let missing = || Err(NO_RESPONSE.into());
    Ok(Decoded::Results(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()))
}

/// Converts a response to a result. An error keeps its data, because recordings contain it.
pub(crate) fn result_of(response: RawResponse<'_>) -> UpstreamResult {
    let data = response.error_data().filter(|data| data.get().len() <= DATA_BYTES);
    let data = data.and_then(|data| serde_json::from_str(data.get()).ok());
    response.into_result().map_err(|failure| match failure {
        RequestFailure::Rpc { code, message } => UpstreamError::Rpc { code, message, data },
        other => other.into(),
    })
}

/// Decodes the response to `count` requests, whose ids start at `first`. Returns also the reservation of the results.
pub(crate) async fn decode_incoming<B: AsRef<[u8]> + Send + Sync + 'static>(
    response: ReceivedBytes<B>,
    first: u64,
    count: usize,
) -> Result<(Decoded, Reservation), UpstreamError> {
    let decoded = response.read(move |text| decode(text, first, count)).await??;
    let mut reserved = response.into_held();
    if let Decoded::Results(results) = &decoded {
        reserved.shrink_to(bytes_of(results));
    }
    Ok((decoded, reserved))
}

/// A transport that sends a batch and returns its response.
pub(crate) trait BatchTransport: Sync {
    /// Sends one batch, and tries again until a response arrives or the tries are used up.
    fn send<'a>(
        &'a self,
        requests: &'a [UpstreamRequest],
    ) -> BoxFuture<'a, Result<(Decoded, Reservation), UpstreamError>>;

    /// How the upstream takes batches.
    fn batching(&self) -> &Batching;
}

/// How an upstream takes batches.
pub(crate) struct Batching {
    /// Requests per batch that the upstream accepts, as far as is known; shrinks when the upstream refuses a
    /// batch.
    size: AtomicUsize,
    /// Number of batches that are sent before the first response.
    parallel: usize,
    /// The upstream's URL without credentials and path, for logs.
    pub(crate) name: String,
    /// Parts of the upstream's URL that no error may contain.
    secrets: Secrets,
}

impl Batching {
    /// Begins with batches of `size` requests. Both numbers are at least 1.
    pub(crate) fn new(url: &str, size: usize, parallel: usize) -> Self {
        Self {
            size: AtomicUsize::new(size.max(1)),
            parallel: parallel.max(1),
            name: redact(url),
            secrets: Secrets::of(url),
        }
    }
}

/// Sends any number of requests, in batches of the size that the upstream accepts. With `counted`, the returned
/// [`Reservation`] covers the bytes of the results, and the caller must keep it as long as the results. Without it, only
/// batches that are being read count against the budget.
pub(crate) async fn ask_all(
    transport: &dyn BatchTransport,
    requests: Vec<UpstreamRequest>,
    counted: bool,
) -> (Vec<UpstreamResult>, Reservation) {
    let started = Instant::now();
    let count = requests.len();
    let Batching { size, parallel, name, secrets } = transport.batching();
    let size = size.load(Ordering::Relaxed).max(1);
    let asked = stream::iter(split(requests, size)).map(|part| ask_batch(transport, part));
    let mut answered = asked.buffered(*parallel);
    let (mut results, mut reserved) = (Vec::with_capacity(count), Reservation::default());
    while let Some((part, bytes)) = answered.next().await {
        results.extend(part.into_iter().map(|result| result.map_err(|error| error.without(secrets))));
        if counted {
            reserved.merge(bytes);
        }
    }
    drop(answered);
    debug!(upstream = %name, calls = count, elapsed = ?started.elapsed(), "upstream answered");
    (results, reserved)
}

/// Splits requests into batches of `size`, the last of which may be shorter.
fn split(requests: Vec<UpstreamRequest>, size: usize) -> impl Iterator<Item = Vec<UpstreamRequest>> {
    let mut requests = requests.into_iter();
    // Not `Vec::split_off`, which leaves the first part with the allocated memory of all requests.
    std::iter::from_fn(move || {
        let part: Vec<UpstreamRequest> = requests.by_ref().take(size).collect();
        Some(part).filter(|part| !part.is_empty())
    })
}

/// Sends requests as one batch; if the upstream refuses the batch, sends it in halves, and remembers the smaller size for later
/// batches.
fn ask_batch(
    transport: &dyn BatchTransport,
    requests: Vec<UpstreamRequest>,
) -> BoxFuture<'_, (Vec<UpstreamResult>, Reservation)> {
    Box::pin(async move {
        let (count, batching) = (requests.len(), transport.batching());
        let refusal = match transport.send(&requests).await {
            Ok((Decoded::Results(results), reserved)) => return (results, reserved),
            Ok((Decoded::Refused(refusal), _)) => refusal.without(&batching.secrets),
            Err(error) => {
                return (requests.iter().map(|_| Err(error.clone())).collect(), Reservation::default());
            }
        };
        if count == 1 {
            return (vec![Err(refusal)], Reservation::default());
        }
        let half = count.div_ceil(2);
        debug!(upstream = %batching.name, %refusal, "batch of {count} refused, asking {half} at a time");
        batching.size.fetch_min(half, Ordering::Relaxed);
        let mut first = requests;
        let second = first.split_off(half);
        let (mut results, mut reserved) = ask_batch(transport, first).await;
        let (others, more) = ask_batch(transport, second).await;
        results.extend(others);
        reserved.merge(more);
        (results, reserved)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batches of many requests, together, take no more memory than the requests.
    #[test]
    fn a_batch_allocates_memory_for_its_own_requests_only() {
        let requests = |count| vec![UpstreamRequest::new("eth_chainId", "[]".into()); count];
        let parts: Vec<_> = split(requests(1_000), 20).collect();
        assert!(parts.len() == 50 && parts.iter().all(|part| part.len() == 20 && part.capacity() < 40));
        let sizes = |count| split(requests(count), 20).map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!([sizes(0), sizes(7), sizes(20), sizes(41)], [vec![], vec![7], vec![20], vec![20, 20, 1]]);
    }

    #[test]
    fn an_error_for_a_whole_batch_differs_from_the_error_of_a_single_call() {
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long"}}"#;
        assert!(matches!(
            decode(text.as_bytes(), 1, 2),
            Ok(Decoded::Refused(UpstreamError::Rpc { code: -32600, .. }))
        ));
        assert!(
            matches!(decode(text.as_bytes(), 1, 1), Ok(Decoded::Results(_))),
            "the answer to a single call"
        );
        let text = r#"{"id":1,"result":1}"#;
        assert!(matches!(decode(text.as_bytes(), 1, 2), Ok(Decoded::Refused(UpstreamError::Malformed(_)))));
        assert!(decode(b"nonsense", 1, 2).is_err());
    }

    #[test]
    fn error_data_up_to_the_limit_is_kept() {
        for (length, kept) in [(DATA_BYTES - 2, true), (DATA_BYTES - 1, false)] {
            let data = "x".repeat(length);
            let text = format!(r#"{{"id":1,"error":{{"code":3,"message":"m","data":"{data}"}}}}"#);
            let Ok(Decoded::Results(results)) = decode(text.as_bytes(), 1, 1) else { panic!("an answer") };
            assert!(
                matches!(&results[0], Err(UpstreamError::Rpc { code: 3, data, .. }) if data.is_some() == kept)
            );
        }
    }
}
