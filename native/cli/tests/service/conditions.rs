//! Failures that the running fault permits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time for which the effects of a store that was away may still be seen after it is well again.
const AFTER: Duration = Duration::from_secs(5);

/// What the clients have to know about faults, as the users of a service do from its documentation.
#[derive(Default)]
pub(crate) struct Conditions {
    /// How often the store may have lost what it had.
    losses: AtomicU64,
    store_until: Mutex<Option<Instant>>,
    store_fails: AtomicBool,
    pub(crate) over: AtomicBool,
}

impl Conditions {
    /// From now on the store may forget, and front ends may act alone.
    pub(crate) fn store_fails(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
        self.store_fails.store(true, Ordering::SeqCst);
    }

    /// The store is well again.
    pub(crate) fn store_is_well(&self) {
        if self.store_fails.swap(false, Ordering::SeqCst) {
            *self.store_until.lock().unwrap() = Some(Instant::now() + AFTER);
        }
    }

    /// Whether what the store loses may be seen.
    pub(crate) fn store_is_unsure(&self) -> bool {
        let until = *self.store_until.lock().unwrap();
        self.store_fails.load(Ordering::SeqCst) || until.is_some_and(|until| Instant::now() < until)
    }

    /// How often the store may have lost what it had.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}
