//! The queue (line) in which exchanges with one upstream wait, because only a few run at the same time.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Poll, Waker};

/// Most exchanges of one queue that run at the same time. An exchange counts until the module has read its response, because responses
/// of up to 32 MiB that JavaScript holds meanwhile take memory too.
pub(crate) const PARALLEL: usize = 4;

/// Gives permits to at most [`PARALLEL`] exchanges at the same time, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct ExchangeQueue {
    /// Number of permits that are taken.
    taken: Cell<usize>,
    /// The number of the next ticket.
    next: Cell<u64>,
    /// The tickets of the exchanges that wait, oldest first, each with what wakes its exchange.
    waiting: RefCell<Vec<(u64, Waker)>>,
}

/// The position of an exchange in the queue: a number that grows with each exchange. Dropping the ticket leaves the queue.
struct Ticket<'a> {
    queue: &'a ExchangeQueue,
    number: u64,
}

/// The right of an exchange to run. Dropping the permit gives it to the next exchange in the queue.
#[derive(Debug)]
pub(crate) struct Permit(Rc<ExchangeQueue>);

impl ExchangeQueue {
    /// Waits for a permit.
    pub(crate) async fn enter(self: &Rc<Self>) -> Permit {
        let ticket = Ticket { queue: self, number: self.next.replace(self.next.get() + 1) };
        poll_fn(|context| {
            let mut waiting = self.waiting.borrow_mut();
            let is_first = waiting.first().is_none_or(|(number, _)| *number == ticket.number);
            if is_first && self.taken.get() < PARALLEL {
                self.taken.set(self.taken.get() + 1);
                return Poll::Ready(());
            }
            match waiting.iter_mut().find(|(number, _)| *number == ticket.number) {
                Some((_, waker)) => waker.clone_from(context.waker()),
                None => waiting.push((ticket.number, context.waker().clone())),
            }
            Poll::Pending
        })
        .await;
        Permit(self.clone())
    }

    /// Lets the first exchange in the queue try again to take a permit.
    fn wake_first(&self) {
        if let Some((_, waker)) = self.waiting.borrow().first() {
            waker.wake_by_ref();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.queue.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
        self.queue.wake_first();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        self.0.wake_first();
    }
}

/// A piece of the work of a round, on this thread.
pub(crate) type LocalBoxed<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs futures at the same time until all have ended.
pub(crate) async fn all(mut running: Vec<LocalBoxed<'_>>) {
    poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
