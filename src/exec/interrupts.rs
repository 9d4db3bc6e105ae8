//! When a host ends the execution of blocks: a time limit, or a program that is about to exit.

use alloc::sync::Arc;
use core::fmt;

/// What a host decides while blocks are mined or imported. The core knows no clock, so the host measures time.
pub trait Watchdog: Send + Sync {
    /// The execution of another block begins; `false` when the time for blocks of this message is used up.
    fn next_block(&self) -> bool;

    /// Whether the block that is being executed has used up its time, or the program is about to exit.
    fn is_due(&self) -> bool;

    /// Whether the program is about to exit: nothing more is to be changed.
    fn is_stopping(&self) -> bool;
}

/// A shared [`Watchdog`]; the default one never interrupts.
#[derive(Clone, Default)]
pub struct Interrupts(Option<Arc<dyn Watchdog>>);

impl Interrupts {
    /// Interrupts when the watchdog says so.
    #[must_use]
    pub fn by(watchdog: Arc<dyn Watchdog>) -> Self {
        Self(Some(watchdog))
    }

    /// See [`Watchdog::next_block`].
    #[must_use]
    pub fn next_block(&self) -> bool {
        self.0.as_ref().is_none_or(|watchdog| watchdog.next_block())
    }

    /// See [`Watchdog::is_due`].
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.0.as_ref().is_some_and(|watchdog| watchdog.is_due())
    }

    /// See [`Watchdog::is_stopping`].
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.as_ref().is_some_and(|watchdog| watchdog.is_stopping())
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("watched", &self.0.is_some()).finish()
    }
}
