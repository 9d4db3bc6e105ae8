//! The timer for the heads of a connection's requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::rt::{Sleep, Timer};

/// The timer of one connection. Hyper makes a sleep for each request and drops it when the head has come. All of them wait
/// by one entry of the runtime's timers, which is moved when it fires: making and removing an entry takes the lock of all
/// timers.
#[derive(Clone, Default)]
pub(super) struct HeadTimer(Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>);

struct HeadSleep {
    end: Instant,
    timer: HeadTimer,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: std::time::Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, end: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadSleep { end, timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let end = self.end.into();
        let mut entry = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if entry.deadline() > end {
            entry.as_mut().reset(end);
        }
        while entry.as_mut().poll(context).is_ready() {
            // It may be that of an earlier head.
            if entry.deadline() >= end {
                return Poll::Ready(());
            }
            entry.as_mut().reset(end);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_sleep_ends_at_its_own_time() {
        let timer = HeadTimer::default();
        let start = timer.now();
        let elapsed = || timer.now() - start;
        let second = Duration::from_secs(1);
        let first = timer.sleep(20 * second);
        assert!(tokio::time::timeout(15 * second, first).await.is_err());
        timer.sleep(20 * second).await;
        assert_eq!(elapsed(), 35 * second, "it does not end with the first");
        timer.sleep_until(start + 36 * second).await;
        let longer = timer.sleep(20 * second);
        assert!(tokio::time::timeout(second, longer).await.is_err());
        timer.sleep(2 * second).await;
        assert_eq!(elapsed(), 39 * second, "an earlier end than the one before");
    }
}
