//! The number of exchanges with one upstream that run at the same time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

/// Most exchanges of one line that run at the same time. An exchange counts until the module has read its response: responses
/// of up to 32 MiB that wait outside the module take memory there.
pub(crate) const PARALLEL: usize = 4;

/// The places of [`PARALLEL`] exchanges.
#[derive(Debug, Default)]
pub(crate) struct Line {
    taken: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

/// One of the places. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Line);

impl Line {
    /// Waits for a place.
    pub(crate) async fn enter(&self) -> Place<'_> {
        poll_fn(|context| {
            if self.taken.get() < PARALLEL {
                self.taken.set(self.taken.get() + 1);
                return Poll::Ready(Place(self));
            }
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        // Whoever came first runs first; the others wait again in the same order.
        self.0.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// Runs futures at the same time until all have ended.
pub(crate) async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut all: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, ended) in all.iter_mut().filter(|(_, ended)| ended.is_none()) {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *ended = Some(output);
            }
        }
        if all.iter().all(|(_, ended)| ended.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, ended)| ended).collect()
}
