//! Pauses of a loop that something else can end.

use alloc::boxed::Box;
use core::cell::{Cell, RefCell};
use core::future::{Future as _, poll_fn};
use core::task::{Poll, Waker};

use crate::host::sleep;

/// Ends the pauses of one loop.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Alarm {
    /// Ends the pause, or the next one if the loop is busy.
    pub(crate) fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Waits so many milliseconds, or until the alarm rings; returns whether it did.
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
