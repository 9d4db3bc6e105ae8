//! Threads for long work, of lower priority than those that serve connections, and the pauses in which long work lets other
//! threads run. Which waiting run starts next is decided in `runs`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::processors::{self, Apart};
use crate::quota_owner::QuotaOwner;

/// Longest JSON text that is read on a thread that serves connections, in bytes; reading it takes well below
/// a millisecond.
pub const SHORT_JSON: usize = 64 * 1024;

/// How much higher the nice value (nice(2)) of the threads that run handlers is than that of the threads that serve
/// connections. Without the difference, a brief message would wait for the end of a run's time slice when all processors
/// are busy.
const RUN_NICENESS: i32 = 5;

/// The same for threads of long work that cannot pause: such work goes after the handlers too.
const UNPAUSED_NICENESS: i32 = 10;

/// The time after which long work lets other threads run while such work occupies all processors. Without it, a
/// thread that serves connections would wait for the end of a time slice, which takes several milliseconds
/// whatever the priorities are.
const PAUSE: Duration = Duration::from_micros(250);

/// The processor time between two pauses above which work counts as work that cannot pause: for instance
/// a contract that hashes 1 MiB with one instruction. The rest of this work then runs apart ([`Apart`]).
const COARSE: Duration = Duration::from_millis(1);

/// The time for which the long work of an asker runs apart from its beginning, after such work did not pause.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The largest number of quota owners whose work did not pause. Beyond it all are forgotten, which bounds memory.
const MAX_REMEMBERED: usize = 1_024;

/// The threads that do the long work of one server, how many do so now, and whose work does not pause.
#[derive(Debug, Default)]
pub struct LongWork {
    /// Threads of lower priority. A thread cannot raise its priority again, and any thread of the server's
    /// own pool may serve connections during [`run_in_place`]. So long work has a pool of its own.
    lowered: OnceLock<Runtime>,
    /// The number of threads that do long work now.
    at_work: AtomicUsize,
    /// The quota owners whose work did not pause, and the times at which they are forgotten.
    coarse_until: Mutex<BTreeMap<QuotaOwner, Instant>>,
}

impl LongWork {
    /// Runs long work on a thread of lower priority than those that serve connections. The caller of this function limits how
    /// many run at the same time. The work calls [`Pauses::pause`] often, if it can. `owner` is the one whose message needs
    /// the work.
    pub fn spawn_lowered<T: Send + 'static>(
        self: &Arc<Self>,
        owner: Option<QuotaOwner>,
        work: impl FnOnce(&Pauses<'_>) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let own = self.clone();
        self.lowered().spawn_blocking(move || work(&Pauses::of_long_work(&own, owner)))
    }

    /// Runs work that takes long and cannot pause on a thread of its own, of even lower priority. Returns `None` if the work
    /// panics or there is no thread for it.
    pub async fn run_last<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Pauses<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, result) = oneshot::channel();
        let own = self.clone();
        let run = move || {
            lower_by(UNPAUSED_NICENESS);
            let pauses = Pauses::of_long_work(&own, None);
            pauses.cannot_pause();
            let result = work(&pauses);
            drop(pauses);
            let _ = sender.send(result);
        };
        // Not a thread of the pool, which could not get its old priority back for other work.
        std::thread::Builder::new().name("long-message".to_owned()).spawn(run).ok()?;
        result.await.ok()
    }

    /// Whether long work occupies all processors.
    pub fn is_busy(&self) -> bool {
        self.at_work.load(Ordering::Relaxed) >= processors()
    }

    /// The pauses of brief work on a thread that serves connections.
    pub fn pauses(&self) -> Pauses<'_> {
        Pauses::new(self, None, false)
    }

    /// The pool of threads of lower priority. Only `spawn_blocking` uses the runtime, so that it needs no thread of its own.
    fn lowered(&self) -> &Runtime {
        self.lowered.get_or_init(|| {
            let threads = Builder::new_current_thread()
                .thread_name("long-work")
                .on_thread_start(lower_priority)
                .build();
            threads.expect("a runtime without timers and sockets asks nothing of the system")
        })
    }

    /// Notes until `end` that work for an owner did not pause.
    fn remember(&self, owner: QuotaOwner, end: Instant) {
        let mut until = self.coarse_until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= MAX_REMEMBERED {
            until.clear();
        }
        until.insert(owner, end);
    }

    /// Whether work for an owner recently did not pause.
    fn is_remembered(&self, owner: QuotaOwner, now: Instant) -> bool {
        let mut until = self.coarse_until.lock().unwrap_or_else(PoisonError::into_inner);
        let is_remembered = until.get(&owner).is_some_and(|until| *until > now);
        if !is_remembered {
            until.remove(&owner);
        }
        is_remembered
    }
}

impl Drop for LongWork {
    fn drop(&mut self) {
        // The last owner may be a task, in which a runtime must not wait for its threads.
        if let Some(threads) = self.lowered.take() {
            threads.shutdown_background();
        }
    }
}

/// A moment by the clock, and the processor time that the thread had used then.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Instant,
    used: Duration,
}

impl Moment {
    fn now() -> Self {
        Self { at: Instant::now(), used: processors::time_used() }
    }
}

/// The pauses of one piece of work, which is counted as long work until this is dropped if it is long.
#[derive(Debug)]
pub struct Pauses<'a> {
    work: &'a LongWork,
    /// The caller for whom long work is done; `None` for work of the program and for brief work.
    owner: Option<QuotaOwner>,
    /// Whether the work is counted as long work. Brief work runs on threads that serve connections.
    is_long: bool,
    /// The last pause, or the beginning; `None` while long work did not occupy all processors.
    last: Cell<Option<Moment>>,
    /// Held as long as the work runs apart.
    apart: RefCell<Option<Apart>>,
}

impl<'a> Pauses<'a> {
    fn new(work: &'a LongWork, owner: Option<QuotaOwner>, is_long: bool) -> Self {
        let last = Cell::new(work.is_busy().then(Moment::now));
        Self { work, owner, is_long, last, apart: RefCell::new(None) }
    }

    /// The pauses of long work, which counts as such until they are dropped.
    fn of_long_work(work: &'a LongWork, owner: Option<QuotaOwner>) -> Self {
        work.at_work.fetch_add(1, Ordering::Relaxed);
        let pauses = Self::new(work, owner, true);
        if owner.is_some_and(|owner| work.is_remembered(owner, Instant::now())) {
            pauses.cannot_pause();
        }
        pauses
    }

    /// Notes that this work cannot pause: until it ends, it keeps to processors on which no thread serves connections. Does
    /// nothing for brief work.
    pub fn cannot_pause(&self) {
        if self.is_long {
            self.apart.borrow_mut().get_or_insert_with(Apart::begin);
        }
    }

    /// Lets other threads run, if long work occupies all processors and this work has run for `PAUSE`. Otherwise
    /// does nothing, because a pause gives processor time to other programs.
    pub fn pause(&self) {
        if !self.work.is_busy() {
            return self.last.set(None);
        }
        let Some(last) = self.last.get() else { return self.last.set(Some(Moment::now())) };
        if last.at.elapsed() < PAUSE {
            return;
        }
        if is_coarse(processors::time_used().saturating_sub(last.used)) {
            self.cannot_pause();
            if let Some(owner) = self.owner {
                self.work.remember(owner, Instant::now() + REMEMBERED);
            }
        }
        std::thread::yield_now();
        self.last.set(Some(Moment::now()));
    }
}

impl Drop for Pauses<'_> {
    fn drop(&mut self) {
        if self.is_long {
            self.work.at_work.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether work that used this much processor time between two pauses counts as work that cannot pause.
fn is_coarse(used: Duration) -> bool {
    used >= COARSE
}

/// Does work that may be `long` on this thread. If it is long and the runtime has several threads, another thread takes over
/// the other tasks of this one meanwhile.
pub fn run_in_place<T>(long: bool, work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let several = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    match long && Handle::try_current().is_ok_and(several) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    // Static, because it is the same for every server.
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Lowers the priority of the calling thread. Only threads for CPU work may call this, and once, because the priority cannot
/// be raised again.
pub fn lower_priority() {
    lower_by(RUN_NICENESS);
    // From now on the thread leaves some processors to work that cannot pause, while there is any.
    processors::join_serving_threads();
}

/// Makes the calling thread this much nicer. On systems other than Linux this does nothing: they have priorities of
/// processes only.
fn lower_by(nicer: i32) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // On Linux this sets the priority of the calling thread. A failure only makes waiting times less
        // even.
        let _ = getpriority_process(None).and_then(|now| setpriority_process(None, now + nicer));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nicer;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn work() -> Arc<LongWork> {
        Arc::default()
    }

    fn is_apart(pauses: &Pauses<'_>) -> bool {
        pauses.apart.borrow().is_some()
    }

    #[cfg(target_os = "linux")]
    fn priority() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_calling_thread_is_lowered() {
        let before = priority();
        let lowered = std::thread::spawn(|| {
            lower_priority();
            priority()
        });
        assert_eq!(lowered.join().unwrap(), (before + RUN_NICENESS).min(19));
        assert_eq!(priority(), before);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_threads_of_long_work_do_nothing_else() {
        let (work, before) = (work(), priority());
        // The pool reuses its thread, whose priority is lowered once.
        for _ in 0..2 {
            let lowered = work.spawn_lowered(None, |_| priority()).await;
            assert_eq!(lowered.unwrap(), (before + RUN_NICENESS).min(19));
        }
        assert_eq!(tokio::task::spawn_blocking(priority).await.unwrap(), before);
    }

    #[tokio::test]
    async fn only_long_work_runs_apart_and_only_until_it_ends() {
        let work = work();
        let brief = work.pauses();
        brief.cannot_pause();
        assert!(!is_apart(&brief), "this thread serves connections");
        let apart = |pauses: &Pauses<'_>| {
            let before = is_apart(pauses);
            pauses.cannot_pause();
            (before, is_apart(pauses))
        };
        // The pool reuses its thread.
        for _ in 0..2 {
            assert_eq!(work.spawn_lowered(None, apart).await.unwrap(), (false, true));
        }
        assert_eq!(work.run_last(is_apart).await, Some(true));
    }

    #[tokio::test]
    async fn work_of_an_address_whose_work_did_not_pause_runs_apart_from_its_beginning() {
        let (work, [coarse, other]) = (work(), [1, 2].map(QuotaOwner::from));
        work.remember(coarse, Instant::now() + HOUR);
        assert!(work.spawn_lowered(Some(coarse), is_apart).await.unwrap());
        assert!(!work.spawn_lowered(Some(other), is_apart).await.unwrap());
        let elsewhere = self::work();
        assert!(!elsewhere.spawn_lowered(Some(coarse), is_apart).await.unwrap(), "another server");
    }

    #[test]
    fn an_address_is_forgotten_when_its_time_is_over() {
        let (work, owner, now) = (work(), QuotaOwner::from(1), Instant::now());
        work.remember(owner, now + HOUR);
        assert!(work.is_remembered(owner, now) && work.is_remembered(owner, now + HOUR / 2));
        assert!(!work.is_remembered(owner, now + HOUR));
        assert!(!work.is_remembered(owner, now), "it was forgotten");
    }

    #[test]
    fn work_that_uses_little_processor_time_between_pauses_does_not_run_apart() {
        assert!(is_coarse(COARSE) && !is_coarse(COARSE / 2));
    }

    /// The test makes all processors busy and then computes without a pause.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_that_does_not_pause_while_all_processors_are_busy_is_found() {
        let (work, owner) = (work(), QuotaOwner::from(1));
        let own = work.clone();
        let run = move |pauses: &Pauses<'_>| {
            let busy = (0..super::processors()).map(|_| Pauses::of_long_work(&own, Some(owner)));
            let _busy: Vec<Pauses<'_>> = busy.collect();
            pauses.pause();
            let before = processors::time_used();
            while processors::time_used() - before < 2 * COARSE {}
            pauses.pause();
            is_apart(pauses)
        };
        assert!(work.spawn_lowered(Some(owner), run).await.unwrap());
        assert!(work.is_remembered(owner, Instant::now()));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_that_cannot_pause_runs_last() {
        let (work, before) = (work(), priority());
        assert_eq!(work.run_last(|_| priority()).await, Some((before + UNPAUSED_NICENESS).min(19)));
        assert_eq!(work.run_last(|_| -> u8 { panic!("a defect") }).await, None);
        assert_eq!(work.at_work.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn long_work_of_one_server_occupies_only_its_own_threads() {
        let (work, other) = (work(), work());
        let running: Vec<_> = (0..processors()).map(|_| Pauses::of_long_work(&work, None)).collect();
        assert!(work.is_busy() && !other.is_busy());
        drop(running);
        assert!(!work.is_busy());
        // The last owner is the work itself, on a thread of the pool.
        let done = work.spawn_lowered(None, |_| std::thread::sleep(Duration::from_millis(20)));
        drop(work);
        done.await.unwrap();
    }
}
