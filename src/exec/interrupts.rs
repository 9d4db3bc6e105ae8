//! The interface by which a host interrupts the mining and import of blocks: because of a time limit, or because the program is about to
//! exit.

use alloc::sync::Arc;
use core::fmt;

/// Decides when the host interrupts the mining or import of blocks. The core has no clock, so the host
/// measures time.
pub trait Watchdog: Send + Sync {
    /// Called when the execution of another block begins, which starts the time limit of this block. Returns `false` if the time for
    /// all blocks of the JSON-RPC message is used up.
    fn next_block(&self) -> bool;

    /// Whether the block being executed has used up the time for one block, or the program is about to exit.
    fn is_due(&self) -> bool;

    /// Whether the program is about to exit, so that nothing may be changed any more.
    fn is_stopping(&self) -> bool;
}

/// A shared [`Watchdog`]; the default one never interrupts.
#[derive(Clone, Default)]
pub struct Interrupts(Option<Arc<dyn Watchdog>>);

impl Interrupts {
    /// Interrupts as the watchdog decides.
    #[must_use]
    pub fn by(watchdog: Arc<dyn Watchdog>) -> Self {
        Self(Some(watchdog))
    }

    /// See [`Watchdog::next_block`].
    pub fn next_block(&self) -> bool {
        self.0.as_ref().is_none_or(|watchdog| watchdog.next_block())
    }

    /// See [`Watchdog::is_due`].
    pub fn is_due(&self) -> bool {
        self.0.as_ref().is_some_and(|watchdog| watchdog.is_due())
    }

    /// See [`Watchdog::is_stopping`].
    pub fn is_stopping(&self) -> bool {
        self.0.as_ref().is_some_and(|watchdog| watchdog.is_stopping())
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("watched", &self.0.is_some()).finish()
    }
}
