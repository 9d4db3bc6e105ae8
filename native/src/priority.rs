//! The priority of threads that run handlers.

use tokio::task::{JoinHandle, spawn_blocking};

/// Longest JSON text that is read on a thread that serves connections, in bytes; reading it takes well below
/// a millisecond.
pub(crate) const SHORT_JSON: usize = 64 * 1024;

/// How much nicer (nice(2)) the threads that run handlers are than the threads that serve connections.
/// Without the difference, a brief message would wait for the end of a run's time slice when all processors
/// are busy.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// Runs long work on a thread of lower priority than those that serve connections. The caller limits how
/// many run at the same time.
pub(crate) fn spawn_lowered<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(move || {
        lower();
        work()
    })
}

/// Lowers the priority of the calling thread, once. Only threads for CPU work may call this, because the
/// priority cannot be raised again. On systems other than Linux this does nothing: they have priorities of
/// processes only.
fn lower() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        thread_local! {
            static LOWERED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !LOWERED.replace(true) {
            // On Linux this sets the priority of the calling thread. A failure only makes waiting times less
            // even.
            let _ = getpriority_process(None).and_then(|now| setpriority_process(None, now + NICER));
        }
    }
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
}
