//! Waits for the responses to transactions that were sent to several upstreams. An upstream that never responds
//! does not delay the others.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

use rootlight::light::{RequestFailure, SEND_GRACE, UpstreamRequest, UpstreamResponse};

use crate::host::sleep;

/// Waits for the responses to these transactions, sent to one upstream each. When each transaction has been taken by an
/// upstream, the others have [`SEND_GRACE`] left to answer.
pub(crate) async fn responses<F>(sent: Vec<(&[UpstreamRequest], F)>) -> Vec<Vec<UpstreamResponse>>
where
    F: Future<Output = Vec<UpstreamResponse>>,
{
    let mut untaken: Vec<&UpstreamRequest> = sent.iter().flat_map(|(requests, _)| *requests).collect();
    let mut all: Vec<_> = sent
        .into_iter()
        .map(|(requests, asked)| (requests, Box::pin(asked), None::<Vec<UpstreamResponse>>))
        .collect();
    let mut grace: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
    poll_fn(|context| {
        for (requests, asked, responses) in all.iter_mut().filter(|(.., responses)| responses.is_none()) {
            let Poll::Ready(answered) = asked.as_mut().poll(context) else { continue };
            for (taken, _) in requests.iter().zip(&answered).filter(|(sent, answer)| sent.is_taken(answer)) {
                untaken.retain(|sent| *sent != taken);
            }
            *responses = Some(answered);
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
    // No upstream is blamed: an upstream can say at once that it has a transaction, whether it has or not.
    let late = "not soon after another upstream had the transaction";
    let silent = |_: &UpstreamRequest| Err(RequestFailure::NotHeld(late.into()));
    let responses = all
        .into_iter()
        .map(|(requests, _, responses)| responses.unwrap_or_else(|| requests.iter().map(silent).collect()));
    responses.collect()
}
