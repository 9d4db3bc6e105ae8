//! Limits the questions that the index's database gets at a time, and stops them for a while after the database failed.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rootlight_limits::request_permits::{PermitLimits, RequestPermits};
use rootlight_upstream::quota_owner;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{info, warn};

use super::failure::NoAnswer;

/// How long a database that failed gets no questions.
const PAUSE: Duration = Duration::from_secs(2);

/// Limits the questions of one kind. Those beyond the limit are refused at once, so that no queue grows while the database
/// is slow.
pub(super) struct QueryLimiter {
    /// Questions that may be open, running or waiting.
    open: Semaphore,
    /// Half of `open` for each caller.
    callers: Arc<RequestPermits>,
    /// Questions that may run, as many as there are connections. A question that is dropped cancels its statement, so its
    /// connection is free soon after its permit.
    running: Semaphore,
    /// Longest time of a question, waiting included.
    time_limit: Duration,
    /// Whether a question that takes too long counts as a failure of the database.
    slow_is_failure: bool,
    /// When the database is tried again; `None` while it works.
    resumes: Mutex<Option<Instant>>,
}

impl QueryLimiter {
    /// At most `open` questions, `running` of which are answered at a time, each with this time limit. Set `slow_is_failure` for
    /// questions that a working database answers in far less time.
    pub(super) fn new(open: usize, running: usize, time_limit: Duration, slow_is_failure: bool) -> Self {
        // `doubtful` is as high as `all`: no question here makes its caller doubtful.
        let callers = RequestPermits::new(PermitLimits { all: open, each: open.div_ceil(2), doubtful: open });
        let (open, running) = (Semaphore::new(open), Semaphore::new(running));
        Self { open, callers, running, time_limit, slow_is_failure, resumes: Mutex::new(None) }
    }

    /// Asks a question, if one more may be asked now.
    ///
    /// # Errors
    /// [`NoAnswer`]; [`NoAnswer::Busy`] and [`NoAnswer::Paused`] at once.
    pub(super) async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, NoAnswer>>,
    ) -> Result<T, NoAnswer> {
        if self.is_paused() {
            return Err(NoAnswer::Paused);
        }
        // Questions of the program itself, which have no caller, are limited by `open` only.
        let _caller_permit = match quota_owner() {
            None => None,
            caller => Some(self.callers.try_acquire(caller).ok_or(NoAnswer::Busy)?),
        };
        let _open_permit = self.open.try_acquire().map_err(|_| NoAnswer::Busy)?;
        let slow = || NoAnswer::Slow(self.time_limit.as_millis());
        let run = async {
            // Acquiring fails only after the semaphore is closed, which never happens.
            let _run_permit = self.running.acquire().await;
            question.await
        };
        let answer = tokio::time::timeout(self.time_limit, run).await.unwrap_or_else(|_| Err(slow()));
        match &answer {
            // A wide question shows neither that the database fails nor that it works.
            Err(NoAnswer::Slow(_)) if !self.slow_is_failure => {}
            Err(slow @ NoAnswer::Slow(_)) => self.pause(slow),
            Err(failure) if failure.is_outage() => self.pause(failure),
            // Any other error too is an answer of a working database: it lacks the blocks, for instance.
            _ => self.resume(),
        }
        answer
    }

    fn is_paused(&self) -> bool {
        self.lock().is_some_and(|resumes| Instant::now() < resumes)
    }

    /// Stops questions for [`PAUSE`].
    fn pause(&self, failure: &NoAnswer) {
        let before = self.lock().replace(Instant::now().checked_add(PAUSE).unwrap_or_else(Instant::now));
        if before.is_none() {
            warn!(?failure, "the index gives no answers; backends answer what they can");
        }
    }

    /// Notes that the database has answered.
    fn resume(&self) {
        if self.lock().take().is_some() {
            info!("the index answers again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.resumes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rootlight_index::IndexError;

    use super::*;
    use rootlight_upstream::with_caller;

    const LIMIT: Duration = Duration::from_secs(1);

    async fn ok() -> Result<u8, NoAnswer> {
        Ok(1)
    }

    async fn hang() -> Result<u8, NoAnswer> {
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn questions_beyond_the_limit_are_refused_at_once() {
        let limiter = QueryLimiter::new(2, 1, LIMIT, true);
        let hanging = async { tokio::join!(limiter.ask(hang()), limiter.ask(hang())) };
        let third = async {
            tokio::task::yield_now().await;
            let started = Instant::now();
            (limiter.ask(ok()).await, started.elapsed())
        };
        let ((first, second), (third, waited)) = tokio::join!(hanging, third);
        assert!(matches!((first, second), (Err(NoAnswer::Slow(1_000)), Err(NoAnswer::Slow(1_000)))));
        assert!(matches!(third, Err(NoAnswer::Busy)) && waited.is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_leaves_half_of_the_questions_to_others() {
        let limiter = QueryLimiter::new(4, 1, LIMIT, false);
        let of = |caller: u64| with_caller(caller.into(), limiter.ask(ok()));
        let full = async { tokio::join!(limiter.ask(hang()), limiter.ask(hang())) };
        let others = async {
            tokio::task::yield_now().await;
            assert!(matches!(of(1).await, Err(NoAnswer::Busy)), "a third question of the same caller");
            // The question waits for the only turn, which is free when the first two end.
            assert!(matches!(of(2).await, Err(NoAnswer::Slow(_)) | Ok(1)), "a question of another");
        };
        let ((first, second), ()) = tokio::join!(with_caller(1.into(), full), others);
        assert!(first.is_err() && second.is_err());
        let again = [1, 1, 1].map(|caller: u64| limiter.callers.try_acquire(Some(caller.into())));
        assert_eq!(again.each_ref().map(Option::is_some), [true, true, false], "both places are free again");
        drop(again);
        assert!(matches!(of(1).await, Ok(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_is_too_slow_for_brief_questions_is_left_alone_for_a_while() {
        for (slow_is_failure, paused) in [(true, true), (false, false)] {
            let limiter = QueryLimiter::new(2, 2, LIMIT, slow_is_failure);
            assert!(limiter.ask(hang()).await.is_err());
            assert_eq!(matches!(limiter.ask(ok()).await, Err(NoAnswer::Paused)), paused);
            tokio::time::sleep(PAUSE).await;
            assert!(matches!(limiter.ask(ok()).await, Ok(1)));
        }
        assert!(!NoAnswer::Slow(1).is_outage(), "the limiter decides");
    }

    #[tokio::test]
    async fn an_index_that_lacks_blocks_or_is_busy_is_not_an_outage() {
        let limiter = QueryLimiter::new(1, 1, LIMIT, true);
        for error in [IndexError::NotCovered { from: 1, to: 2 }, IndexError::NoneFree] {
            let refused = async { Err::<u8, _>(error.into()) };
            assert!(matches!(limiter.ask(refused).await, Err(NoAnswer::Index(_))));
            assert!(limiter.ask(ok()).await.is_ok());
        }
    }
}
