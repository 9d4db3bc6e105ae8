//! The number of exchanges with one upstream that run at the same time.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Poll, Waker};

/// Most exchanges of one line that run at the same time. An exchange counts until the module has read its response: responses
/// of up to 32 MiB that wait outside the module take memory there.
pub(crate) const PARALLEL: usize = 4;

/// The permits of [`PARALLEL`] exchanges, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct Line {
    taken: Cell<usize>,
    next: Cell<u64>,
    /// The numbers of the exchanges that wait.
    waiting: RefCell<Vec<(u64, Waker)>>,
}

/// The number of an exchange that waits. Dropping the ticket leaves the line.
struct Ticket<'a>(&'a Line, u64);

/// The permit of an exchange. Dropping the permit gives it to the next one.
#[derive(Debug)]
pub(crate) struct Permit(Rc<Line>);

impl Line {
    /// Waits for a permit.
    pub(crate) async fn enter(self: &Rc<Self>) -> Permit {
        let ticket = Ticket(self, self.next.replace(self.next.get() + 1));
        poll_fn(|context| {
            let mut waiting = self.waiting.borrow_mut();
            let is_first = waiting.first().is_none_or(|(number, _)| *number == ticket.1);
            if is_first && self.taken.get() < PARALLEL {
                self.taken.set(self.taken.get() + 1);
                return Poll::Ready(());
            }
            match waiting.iter_mut().find(|(number, _)| *number == ticket.1) {
                Some((_, waker)) => waker.clone_from(context.waker()),
                None => waiting.push((ticket.1, context.waker().clone())),
            }
            Poll::Pending
        })
        .await;
        Permit(self.clone())
    }

    fn wake_first(&self) {
        if let Some((_, waker)) = self.waiting.borrow().first() {
            waker.wake_by_ref();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.0.waiting.borrow_mut().retain(|(number, _)| *number != self.1);
        self.0.wake_first();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        self.0.wake_first();
    }
}

/// A part of the work of a round.
pub(crate) type LocalBoxed<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs futures at the same time until all have ended.
pub(crate) async fn all(mut running: Vec<LocalBoxed<'_>>) {
    poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
