//! Processors for work that cannot pause.
//!
//! The scheduler of Linux lets a thread that has just been given a processor keep it for a time slice, and looks at the
//! end of the slice only when the clock ticks, which is up to every 4 ms. A thread that wakes up on this processor waits
//! that long, whatever the priorities are, and the answer to one request takes several such wake-ups. Therefore work
//! that cannot pause keeps to some of the processors, and as long as it runs, all other threads that answer requests keep
//! to the others. With a single processor, and on other systems, nothing is divided.
//!
//! Measured on two processors beside other programs: under hashes of 1 MiB, MODEXP, parameters of 4 MiB and lists of a million
//! members, the 99th percentile of a brief message of another client is 0.6, 0.5, 3.6 and 1.1 ms, and 15, 18, 15 and 4.3 ms
//! where the system refuses `sched_setaffinity`.

pub use sets::{Apart, join_serving_threads, time_used};

#[cfg(target_os = "linux")]
mod sets {
    use std::cell::RefCell;
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
    use std::time::Duration;

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};

    /// The largest number of processors for work that cannot pause. `RunQueue::for_work_without_pauses` lets no more than four pieces of
    /// such work run at the same time.
    const MAX_APART: usize = 4;

    /// The processors of this process, divided by the work that they are for.
    struct Sets {
        all: CpuSet,
        /// For work that cannot pause.
        apart: CpuSet,
        /// For all other threads that answer requests, while such work runs.
        others: CpuSet,
    }

    impl Sets {
        /// The processors of a thread whose work can pause.
        fn usual(&self, state: &State) -> &CpuSet {
            if state.running > 0 { &self.others } else { &self.all }
        }
    }

    /// The threads that answer requests, and the number of pieces of work that cannot pause and run now.
    struct State {
        threads: Vec<Pid>,
        running: usize,
    }

    /// Static, because a thread has one set of processors, whichever servers it works for. Nothing here can be used up.
    static STATE: Mutex<State> = Mutex::new(State { threads: Vec::new(), running: 0 });

    fn state() -> MutexGuard<'static, State> {
        STATE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sets of this process, read before any thread is bound; `None` if there are fewer than two processors, or the system
    /// does not tell them.
    fn sets() -> Option<&'static Sets> {
        // Static, because the processors are those of the process.
        static SETS: OnceLock<Option<Sets>> = OnceLock::new();
        SETS.get_or_init(|| sched_getaffinity(None).ok().and_then(divide)).as_ref()
    }

    /// The last processors, at most [`MAX_APART`] and not all, are for work that cannot pause. `None` for a single processor.
    fn divide(all: CpuSet) -> Option<Sets> {
        let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|number| all.is_set(*number)).collect();
        let apart = numbers.len().saturating_sub(1).min(MAX_APART);
        let (others, apart) = numbers.split_at_checked(numbers.len().saturating_sub(apart))?;
        let of = |numbers: &[usize]| {
            let mut set = CpuSet::new();
            numbers.iter().for_each(|number| set.set(*number));
            set
        };
        (!apart.is_empty()).then(|| Sets { all, apart: of(apart), others: of(others) })
    }

    /// Binds a thread to processors. A failure only makes waiting times less even.
    fn bind(thread: Option<Pid>, set: &CpuSet) {
        let _ = sched_setaffinity(thread, set);
    }

    /// A thread in [`State::threads`]. The value is dropped when the thread ends, and removes it from the list, because another
    /// thread may then get the same number.
    struct Member(Pid);

    impl Drop for Member {
        fn drop(&mut self) {
            state().threads.retain(|thread| *thread != self.0);
        }
    }

    thread_local! {
        static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
    }

    /// Adds the calling thread to those that serve connections or run handlers, and binds it to their processors. Until then it
    /// has the processors of the thread that started it, which may be those for work that cannot pause.
    pub fn join_serving_threads() {
        MEMBER.with_borrow_mut(|member| {
            if member.is_some() {
                return;
            }
            let thread = gettid();
            *member = Some(Member(thread));
            if let Some(sets) = sets() {
                let mut state = state();
                state.threads.push(thread);
                bind(None, sets.usual(&state));
            }
        });
    }

    /// Returns the processor time that the calling thread has used.
    pub fn time_used() -> Duration {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(used).unwrap_or_default()
    }

    /// A piece of work that cannot pause. The thread that does the work makes this value and drops it.
    #[derive(Debug)]
    pub struct Apart(());

    impl Apart {
        /// Binds the calling thread to the processors for work that cannot pause, and the other threads that answer
        /// requests to the rest.
        pub fn begin() -> Self {
            if let Some(sets) = sets() {
                let mut state = state();
                state.running = state.running.saturating_add(1);
                if state.running == 1 {
                    state.threads.iter().for_each(|thread| bind(Some(*thread), &sets.others));
                }
                bind(None, &sets.apart);
            }
            Self(())
        }
    }

    impl Drop for Apart {
        fn drop(&mut self) {
            let Some(sets) = sets() else { return };
            let mut state = state();
            state.running = state.running.saturating_sub(1);
            bind(None, sets.usual(&state));
            if state.running == 0 {
                state.threads.iter().for_each(|thread| bind(Some(*thread), &sets.all));
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn numbers(set: &CpuSet) -> Vec<usize> {
            (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
        }

        fn divided(all: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
            let mut set = CpuSet::new();
            all.iter().for_each(|number| set.set(*number));
            divide(set).map(|sets| (numbers(&sets.others), numbers(&sets.apart)))
        }

        #[test]
        fn at_most_four_processors_and_not_all_are_for_work_that_cannot_pause() {
            assert_eq!(divided(&[]), None);
            assert_eq!(divided(&[3]), None);
            assert_eq!(divided(&[0, 1]), Some((vec![0], vec![1])));
            assert_eq!(divided(&[1, 4, 5]), Some((vec![1], vec![4, 5])));
            assert_eq!(divided(&[0, 1, 2, 3, 4, 5]), Some((vec![0, 1], vec![2, 3, 4, 5])));
        }

        #[test]
        fn work_that_cannot_pause_and_other_threads_use_different_processors() {
            let Some(sets) = sets() else { return };
            let processors_of = |thread| numbers(&sched_getaffinity(thread).unwrap());
            let (tell, serving_thread) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let serving = std::thread::spawn(move || {
                join_serving_threads();
                tell.send(gettid()).unwrap();
                ended.recv().unwrap();
            });
            let thread = serving_thread.recv().unwrap();
            let work = Apart::begin();
            assert_eq!(processors_of(None), numbers(&sets.apart));
            assert_eq!(processors_of(Some(thread)), numbers(&sets.others));
            let late = std::thread::spawn(move || {
                let inherited = processors_of(None);
                join_serving_threads();
                (inherited, processors_of(None))
            });
            assert_eq!(late.join().unwrap(), (numbers(&sets.apart), numbers(&sets.others)));
            drop(work);
            assert_ne!(processors_of(None), numbers(&sets.apart));
            end.send(()).unwrap();
            serving.join().unwrap();
            assert!(!state().threads.contains(&thread), "the number of an ended thread is not kept");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod sets {
    use std::time::Duration;

    /// Does nothing on this system.
    pub fn join_serving_threads() {}

    /// Returns zero on this system, where processors are not divided.
    pub fn time_used() -> Duration {
        Duration::ZERO
    }

    /// Work that cannot pause, which runs on any processor of this system.
    #[derive(Debug)]
    pub struct Apart(());

    impl Apart {
        /// Does nothing on this system.
        pub fn begin() -> Self {
            Self(())
        }
    }
}
