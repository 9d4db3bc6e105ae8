//! The priority of threads that run handlers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::types::Asker;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::processors::{self, Apart};

/// Longest JSON text that is read on a thread that serves connections, in bytes; reading it takes well below
/// a millisecond.
pub const SHORT_JSON: usize = 64 * 1024;

/// How much nicer (nice(2)) the threads that run handlers are than the threads that serve connections.
/// Without the difference, a brief message would wait for the end of a run's time slice when all processors
/// are busy.
const NICER: i32 = 5;

/// As [`NICER`], for long work that cannot pause.
const LAST: i32 = 10;

/// The time after which long work lets other threads run while such work occupies all processors. Without it, a
/// thread that serves connections would wait for the end of a time slice, which takes several milliseconds
/// whatever the priorities are.
const PAUSE: Duration = Duration::from_micros(250);

/// The processor time between two calls of [`pause`] above which work counts as work that cannot pause: for instance
/// a contract that hashes 1 MiB with one instruction. The rest of this work then runs apart ([`Apart`]).
const COARSE: Duration = Duration::from_millis(1);

/// The time for which the long work of a client address runs apart from its beginning, after such work did not pause.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The largest number of remembered addresses. Beyond it all are forgotten.
const MAX_REMEMBERED: usize = 1_024;

/// The askers (`Peer::asker`) whose work did not pause, and the times at which they are forgotten.
static COARSE_UNTIL: Mutex<BTreeMap<Asker, Instant>> = Mutex::new(BTreeMap::new());

/// The threads that do long work, at lower priority. A thread cannot raise its priority again, and any thread of the server's
/// own pool may serve connections during [`in_place`]. So long work has a pool of its own.
static LOWERED: LazyLock<Runtime> = LazyLock::new(|| {
    let threads = Builder::new_current_thread().thread_name("long-work").on_thread_start(lower).build();
    threads.expect("a runtime without timers and sockets asks nothing of the system")
});

/// The number of threads that do long work now.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The last time at which this thread let others run, or began its work while all processors were busy.
    static LAST_PAUSE: Cell<Option<Moment>> = const { Cell::new(None) };
    /// Whether this thread does long work. Brief messages run on the threads that serve connections.
    static WORKS: Cell<bool> = const { Cell::new(false) };
    /// The address for which this thread does long work, if any.
    static ASKER: Cell<Option<Asker>> = const { Cell::new(None) };
    /// Held as long as the long work of this thread runs apart.
    static APART: RefCell<Option<Apart>> = const { RefCell::new(None) };
}

/// A moment by the clock, and the processor time that the thread had used then.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    used: Duration,
}

impl Moment {
    fn now() -> Self {
        Self { at: Instant::now(), used: processors::time_used() }
    }
}

/// Runs long work on a thread of lower priority than those that serve connections. The caller limits how
/// many run at the same time. The work calls [`pause`] often, if it can. `asker` is the client address that it is for.
pub fn spawn_lowered<T: Send + 'static>(
    asker: Option<Asker>,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    LOWERED.spawn_blocking(move || {
        let _counted = RunningThread::begin(asker);
        work()
    })
}

/// Runs work that takes long and cannot pause on a thread of its own, of even lower priority. Returns `None` if the work
/// panics or there is no thread for it.
pub async fn run_last<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, result) = oneshot::channel();
    let run = move || {
        lower_by(LAST);
        let counted = RunningThread::begin(None);
        cannot_pause();
        let result = work();
        drop(counted);
        let _ = sender.send(result);
    };
    // A thread of the pool could not get its old priority back.
    std::thread::Builder::new().name("long-message".to_owned()).spawn(run).ok()?;
    result.await.ok()
}

/// Does work that may be `long` on this thread. Meanwhile another thread does what else this one has to do, if the
/// runtime has several.
pub fn in_place<T>(long: bool, work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let several = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    match long && Handle::try_current().is_ok_and(several) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// Whether long work occupies all processors.
pub fn is_busy() -> bool {
    AT_WORK.load(Ordering::Relaxed) >= processors()
}

/// Notes that the long work of this thread cannot pause: until it ends, it keeps to processors on which no thread serves
/// connections. Does nothing on a thread that does other work.
pub fn cannot_pause() {
    if !WORKS.get() {
        return;
    }
    APART.with_borrow_mut(|apart| {
        apart.get_or_insert_with(Apart::begin);
    });
}

/// Lets other threads run, if long work occupies all processors and this thread has run for `PAUSE`. Otherwise
/// does nothing, because a pause gives processor time to other programs.
pub fn pause() {
    if !is_busy() {
        LAST_PAUSE.set(None);
        return;
    }
    let Some(last) = LAST_PAUSE.get() else { return LAST_PAUSE.set(Some(Moment::now())) };
    if last.at.elapsed() < PAUSE {
        return;
    }
    if is_coarse(processors::time_used().saturating_sub(last.used)) {
        cannot_pause();
        if let Some(asker) = ASKER.get() {
            remember(asker, Instant::now() + REMEMBERED);
        }
    }
    std::thread::yield_now();
    LAST_PAUSE.set(Some(Moment::now()));
}

/// Whether work that used this much processor time between two pauses counts as work that cannot pause.
fn is_coarse(used: Duration) -> bool {
    used >= COARSE
}

/// Notes that work for an address did not pause, until the given time.
fn remember(asker: Asker, end: Instant) {
    let mut until = COARSE_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    if until.len() >= MAX_REMEMBERED {
        until.clear();
    }
    until.insert(asker, end);
}

/// Whether work for an address recently did not pause.
fn is_remembered(asker: Asker, now: Instant) -> bool {
    let mut until = COARSE_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    let is_remembered = until.get(&asker).is_some_and(|until| *until > now);
    if !is_remembered {
        until.remove(&asker);
    }
    is_remembered
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Counts a thread that does long work, until the value is dropped.
struct RunningThread;

impl RunningThread {
    fn begin(asker: Option<Asker>) -> Self {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        WORKS.set(true);
        ASKER.set(asker);
        LAST_PAUSE.set(is_busy().then(Moment::now));
        if asker.is_some_and(|asker| is_remembered(asker, Instant::now())) {
            cannot_pause();
        }
        Self
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
        WORKS.set(false);
        APART.take();
    }
}

/// Lowers the priority of the calling thread, once. Only threads for CPU work may call this, because the
/// priority cannot be raised again.
pub fn lower() {
    thread_local! {
        static LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    if !LOWERED.replace(true) {
        lower_by(NICER);
        processors::join();
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use rootlight::types::Asker;
    use rustix::process::getpriority_process;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn only_the_calling_thread_is_lowered_and_only_once() {
        let before = getpriority_process(None).unwrap();
        let lowered = std::thread::spawn(|| {
            super::lower();
            super::lower();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), (before + super::NICER).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[tokio::test]
    async fn the_threads_of_long_work_do_nothing_else() {
        let priority = || getpriority_process(None).unwrap();
        let before = priority();
        assert_eq!(super::spawn_lowered(None, priority).await.unwrap(), (before + super::NICER).min(19));
        assert_eq!(tokio::task::spawn_blocking(priority).await.unwrap(), before);
    }

    #[tokio::test]
    async fn only_long_work_runs_apart_and_only_until_it_ends() {
        use super::{APART, cannot_pause, spawn_lowered};
        let is_apart = || APART.with_borrow(Option::is_some);
        cannot_pause();
        assert!(!is_apart(), "this thread serves connections");
        let apart = move || {
            let before = is_apart();
            cannot_pause();
            (before, is_apart())
        };
        // The pool reuses its thread.
        for _ in 0..2 {
            assert_eq!(spawn_lowered(None, apart).await.unwrap(), (false, true));
        }
        assert_eq!(super::run_last(is_apart).await, Some(true));
    }

    #[tokio::test]
    async fn work_of_an_address_whose_work_did_not_pause_runs_apart_from_its_beginning() {
        use super::{APART, remember, spawn_lowered};
        let is_apart = || APART.with_borrow(Option::is_some);
        let [coarse, other] = [21, 22].map(|last| Asker::from(u64::MAX - last));
        remember(coarse, Instant::now() + HOUR);
        assert!(spawn_lowered(Some(coarse), is_apart).await.unwrap());
        assert!(!spawn_lowered(Some(other), is_apart).await.unwrap());
    }

    #[test]
    fn an_address_is_forgotten_when_its_time_is_over() {
        use super::{is_remembered, remember};
        let (asker, now) = (Asker::from(u64::MAX - 24), Instant::now());
        remember(asker, now + HOUR);
        assert!(is_remembered(asker, now) && is_remembered(asker, now + HOUR / 2));
        assert!(!is_remembered(asker, now + HOUR));
        assert!(!is_remembered(asker, now), "it was forgotten");
    }

    #[test]
    fn a_little_processor_time_between_pauses_is_no_work_that_cannot_pause() {
        use super::{COARSE, is_coarse};
        assert!(is_coarse(COARSE) && !is_coarse(COARSE / 2));
    }

    /// The test makes all processors busy and then computes without a pause.
    #[tokio::test]
    async fn work_that_does_not_pause_while_all_processors_are_busy_is_found() {
        use super::{APART, COARSE, COARSE_UNTIL, RunningThread, pause, processors, spawn_lowered};
        let asker = Asker::from(u64::MAX - 23);
        let run = move || {
            let _busy: Vec<RunningThread> =
                (0..super::processors()).map(|_| RunningThread::begin(Some(asker))).collect();
            pause();
            let before = processors::time_used();
            while processors::time_used() - before < 2 * COARSE {}
            pause();
            APART.with_borrow(Option::is_some)
        };
        assert!(spawn_lowered(Some(asker), run).await.unwrap());
        assert!(COARSE_UNTIL.lock().unwrap().contains_key(&asker));
    }

    #[tokio::test]
    async fn work_that_cannot_pause_runs_last() {
        let before = getpriority_process(None).unwrap();
        let lowered = super::run_last(|| getpriority_process(None).unwrap()).await;
        assert_eq!(lowered, Some((before + super::LAST).min(19)));
        assert_eq!(super::run_last(|| -> u8 { panic!("a defect") }).await, None);
    }
}
