//! Pauses of the loop that follows one upstream ([`crate::driver`]), which a hint of a new block or a wake-up ends early.

use alloc::boxed::Box;
use core::cell::{Cell, RefCell};
use core::future::{Future as _, poll_fn};
use core::task::{Poll, Waker};

use crate::host::sleep;

/// Ends the pauses of one loop early.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Whether the alarm has rung since the last pause ended.
    rung: Cell<bool>,
    /// Wakes the loop while it pauses.
    waker: RefCell<Option<Waker>>,
}

impl Alarm {
    /// Ends the pause of the loop; if the loop is busy, its next pause ends at once.
    pub(crate) fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Waits `millis` milliseconds, or until the alarm rings. Returns whether the alarm rang.
    pub(crate) async fn pause(&self, millis: f64) -> bool {
        let mut slept = Box::pin(sleep(millis));
        poll_fn(|context| {
            if self.rung.take() {
                return Poll::Ready(true);
            }
            self.waker.replace(Some(context.waker().clone()));
            slept.as_mut().poll(context).map(|()| false)
        })
        .await
    }
}
