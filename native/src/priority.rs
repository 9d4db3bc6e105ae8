//! The priority of threads that run handlers.

use tokio::task::{JoinHandle, spawn_blocking};

/// The longest JSON text that is read on a thread that serves connections, in bytes: that takes well below a
/// millisecond.
pub(crate) const SHORT_JSON: usize = 64 * 1024;

/// By how much the threads that run handlers are nicer than those that serve connections (nice(2)). With all processors
/// busy with runs, a brief message would else wait for the end of a run's time slice.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// Runs work that takes long on a thread of lower priority, so that those that serve connections go first. How many run
/// at the same time is for the caller to limit.
pub(crate) fn spawn_lowered<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(move || {
        lower();
        work()
    })
}

/// Lowers the priority of the calling thread, once. To be called on threads for CPU work alone, for it cannot be raised
/// again. Other systems than Linux know priorities of processes only.
fn lower() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        thread_local! {
            static LOWERED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !LOWERED.replace(true) {
            // On Linux the priority of the calling thread. Without it all works, only less evenly.
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
