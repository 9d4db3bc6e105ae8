//! Waits for the responses to transactions that were sent to several upstreams. An upstream that never responds delays the response to the
//! caller only for a short time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

use rootlight::light::{RequestFailure, SEND_GRACE, UpstreamRequest, UpstreamResponse};

use crate::host::sleep;

/// Waits for the responses to requests that send transactions. Each entry of `sent` has the requests to one upstream, and the future with
/// its responses. Once each transaction has been taken by some upstream, the remaining upstreams have [`SEND_GRACE`] milliseconds left to
/// respond.
pub(crate) async fn responses<F>(sent: Vec<(&[UpstreamRequest], F)>) -> Vec<Vec<UpstreamResponse>>
where
    F: Future<Output = Vec<UpstreamResponse>>,
{
    // The transactions that no upstream has taken yet.
    let mut untaken: Vec<&UpstreamRequest> = sent.iter().flat_map(|(requests, _)| *requests).collect();
    let mut all: Vec<_> = sent
        .into_iter()
        .map(|(requests, pending)| (requests, Box::pin(pending), None::<Vec<UpstreamResponse>>))
        .collect();
    let mut grace: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
    poll_fn(|context| {
        for (requests, pending, responses) in all.iter_mut().filter(|(.., responses)| responses.is_none()) {
            let Poll::Ready(received) = pending.as_mut().poll(context) else { continue };
            for (taken, _) in
                requests.iter().zip(&received).filter(|(sent, response)| sent.is_taken(response))
            {
                untaken.retain(|sent| *sent != taken);
            }
            *responses = Some(received);
        }
        if all.iter().all(|(.., responses)| responses.is_some()) {
            return Poll::Ready(());
        }
        if !untaken.is_empty() {
            return Poll::Pending;
        }
        grace.get_or_insert_with(|| Box::pin(sleep(SEND_GRACE as f64))).as_mut().poll(context)
    })
    .await;
    // `NotAvailable` blames no upstream for its silence: another one that claimed at once to have the transaction may have lied.
    let late = "not soon after another upstream had the transaction";
    let silent = |_: &UpstreamRequest| Err(RequestFailure::NotAvailable(late.into()));
    let responses = all
        .into_iter()
        .map(|(requests, _, responses)| responses.unwrap_or_else(|| requests.iter().map(silent).collect()));
    responses.collect()
}
