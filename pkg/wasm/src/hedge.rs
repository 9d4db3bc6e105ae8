//! Asks the spare of an upstream that is slower than usual, and takes the response that comes first.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;

use rootlight::light::{Hedges, UpstreamResponse};

use crate::host::{Responses, micros, sleep};

/// Sends the same requests to an upstream, and to its spare as well if the upstream is slow; in the other order while the upstream is
/// much slower. Returns the responses, and whether they are the spare's. Those of the one that is asked later count only if it has a
/// result for each request.
pub(crate) async fn race(
    hedges: &RefCell<Hedges>,
    mut upstreams: [usize; 2],
    mut asked: [Responses<'_>; 2],
) -> (Vec<UpstreamResponse>, bool) {
    let began = micros();
    let (is_swapped, patience) = hedges.borrow_mut().begin(upstreams[0], upstreams[1], began);
    if is_swapped {
        upstreams.reverse();
        asked.reverse();
    }
    let [first, second] = asked;
    let second_began = Cell::new(0);
    let second = async {
        loop {
            sleep(patience as f64 / 1_000.0).await;
            if hedges.borrow_mut().take() {
                break;
            }
        }
        second_began.set(micros());
        second.await
    };
    let mut asked: [(Responses<'_>, _); 2] = [(first, None), (Box::pin(second), None)];
    let (of_first, of_second) = poll_fn(|context| {
        for (asked, responses) in asked.iter_mut().filter(|(_, responses)| responses.is_none()) {
            if let Poll::Ready(answered) = asked.as_mut().poll(context) {
                *responses = Some(answered);
            }
        }
        let answers_all = |responses: &Vec<UpstreamResponse>| responses.iter().all(Result::is_ok);
        match asked.each_ref().map(|(_, responses)| responses.as_ref().map(answers_all)) {
            // The first one's failure is reported if the second is of no more use.
            [Some(false), None] if second_began.get() > 0 => Poll::Pending,
            [None, None | Some(false)] => Poll::Pending,
            [of_first, of_second] => Poll::Ready((of_first, of_second)),
        }
    })
    .await;
    let is_of_second = of_first != Some(true) && of_second == Some(true);
    let mut hedges = hedges.borrow_mut();
    let now = micros();
    // A quick failure does not make an upstream quick.
    if of_first != Some(false) {
        hedges.note(upstreams[0], now - began);
    }
    if is_of_second {
        hedges.won(upstreams[1], now - second_began.get());
    }
    let [first, second] = asked.map(|(_, responses)| responses);
    let responses = if is_of_second { second } else { first };
    (responses.unwrap_or_default(), is_of_second != is_swapped)
}
