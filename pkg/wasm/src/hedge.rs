//! Asks a second upstream, the spare, when the first is slower than usual, and takes the responses that come first.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;

use rootlight::light::{Hedges, UpstreamResponse};

use crate::host::{Responses, micros, sleep};

/// Sends the same requests to an upstream, and to its spare as well if the upstream is slow; to the spare first while the upstream is much
/// slower than the spare. `upstreams` are the numbers of the upstream and of its spare, `asked` their exchanges. Returns the responses, and
/// whether they are the spare's. Responses of the upstream that is asked second count only if they have a result for each request.
pub(crate) async fn race(
    hedges: &RefCell<Hedges>,
    mut upstreams: [usize; 2],
    mut asked: [Responses<'_>; 2],
) -> (Vec<UpstreamResponse>, bool) {
    let began = micros();
    // `patience` is the usual time, in microseconds, of the upstream that is asked first.
    let (is_swapped, patience) = hedges.borrow_mut().begin(upstreams[0], upstreams[1], began);
    if is_swapped {
        upstreams.reverse();
        asked.reverse();
    }
    let [first, second] = asked;
    // 0 while the second was not asked.
    let second_began = Cell::new(0);
    let second = async {
        loop {
            sleep(patience as f64 / 1_000.0).await;
            // The budget for second requests may be used up for now.
            if hedges.borrow_mut().take_second_round() {
                break;
            }
        }
        second_began.set(micros());
        second.await
    };
    // Each exchange with its responses, once they are there.
    let mut asked: [(Responses<'_>, _); 2] = [(first, None), (Box::pin(second), None)];
    // Whether each has a result for each request; `None` if its responses are not there.
    let (of_first, of_second) = poll_fn(|context| {
        for (asked, responses) in asked.iter_mut().filter(|(_, responses)| responses.is_none()) {
            if let Poll::Ready(answered) = asked.as_mut().poll(context) {
                *responses = Some(answered);
            }
        }
        let answers_all = |responses: &Vec<UpstreamResponse>| responses.iter().all(Result::is_ok);
        match asked.each_ref().map(|(_, responses)| responses.as_ref().map(answers_all)) {
            // The first has failed, and the second was asked: its responses may still be of use.
            [Some(false), None] if second_began.get() > 0 => Poll::Pending,
            [None, None | Some(false)] => Poll::Pending,
            [of_first, of_second] => Poll::Ready((of_first, of_second)),
        }
    })
    .await;
    let is_of_second = of_first != Some(true) && of_second == Some(true);
    let mut hedges = hedges.borrow_mut();
    let now = micros();
    // The time of a failure says nothing about the usual time of an upstream.
    if of_first != Some(false) {
        hedges.note(upstreams[0], now - began);
    }
    if is_of_second {
        hedges.note_second_won(upstreams[1], now - second_began.get());
    }
    let [first, second] = asked.map(|(_, responses)| responses);
    let responses = if is_of_second { second } else { first };
    (responses.unwrap_or_default(), is_of_second != is_swapped)
}
