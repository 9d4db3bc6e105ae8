//! The priority of threads that run handlers.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// Longest JSON text that is read on a thread that serves connections, in bytes; reading it takes well below
/// a millisecond.
pub(crate) const SHORT_JSON: usize = 64 * 1024;

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

/// The number of threads that do long work now.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LAST_PAUSE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs long work on a thread of lower priority than those that serve connections. The caller limits how
/// many run at the same time. The work calls [`pause`] often, if it can.
pub(crate) fn spawn_lowered<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(move || {
        lower();
        let _counted = RunningThread::begin();
        work()
    })
}

/// Runs work that takes long and cannot pause on a thread of its own, of even lower priority. Returns `None` if the work
/// panics or there is no thread for it.
pub(crate) async fn run_last<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, result) = oneshot::channel();
    let run = move || {
        lower_by(LAST);
        let _counted = RunningThread::begin();
        let _ = sender.send(work());
    };
    // A thread of the pool could not get its old priority back.
    std::thread::Builder::new().name("long-message".to_owned()).spawn(run).ok()?;
    result.await.ok()
}

/// Whether long work occupies all processors.
pub(crate) fn is_busy() -> bool {
    AT_WORK.load(Ordering::Relaxed) >= processors()
}

/// Lets other threads run, if long work occupies all processors and this thread has run for [`PAUSE`]. Otherwise
/// does nothing, because a pause gives processor time to other programs.
pub(crate) fn pause() {
    if !is_busy() {
        return;
    }
    let now = Instant::now();
    let due = |last: Instant| now.saturating_duration_since(last) >= PAUSE;
    LAST_PAUSE.with(|last| {
        if last.get().is_none_or(due) {
            std::thread::yield_now();
            last.set(Some(Instant::now()));
        }
    });
}

fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Counts a thread that does long work, until the value is dropped.
struct RunningThread;

impl RunningThread {
    fn begin() -> Self {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lowers the priority of the calling thread, once. Only threads for CPU work may call this, because the
/// priority cannot be raised again.
fn lower() {
    thread_local! {
        static LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    if !LOWERED.replace(true) {
        lower_by(NICER);
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
    use rustix::process::getpriority_process;

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
    async fn work_that_cannot_pause_runs_last() {
        let before = getpriority_process(None).unwrap();
        let lowered = super::run_last(|| getpriority_process(None).unwrap()).await;
        assert_eq!(lowered, Some((before + super::LAST).min(19)));
        assert_eq!(super::run_last(|| -> u8 { panic!("a defect") }).await, None);
    }
}
