//! How the parts of a light client are shared: one owner, or the threads of a server.

use core::{
    cell::RefCell,
    ops::{Deref, DerefMut},
};

/// A lock of one part of a client.
pub trait Lock<T> {
    /// Wraps a part in a lock.
    fn new(part: T) -> Self;

    /// Locks the part for reading; others may read it at the same time.
    fn read(&self) -> impl Deref<Target = T>;

    /// Locks the part for changing it.
    fn write(&self) -> impl DerefMut<Target = T>;

    /// As [`Self::write`]; returns `None` at once if the part is locked.
    fn try_write(&self) -> Option<impl DerefMut<Target = T>>;
}

/// The kind of lock that a host uses.
pub trait LockKind {
    /// The lock of a part.
    type Lock<T>: Lock<T>;
}

/// The client has one owner, such as a browser page or a test, which must not keep a part locked while it calls the client:
/// [`RefCell`] would panic.
#[derive(Debug, Clone, Copy)]
pub struct SingleOwner;

impl LockKind for SingleOwner {
    type Lock<T> = RefCell<T>;
}

impl<T> Lock<T> for RefCell<T> {
    fn new(part: T) -> Self {
        Self::new(part)
    }

    fn read(&self) -> impl Deref<Target = T> {
        self.borrow()
    }

    fn write(&self) -> impl DerefMut<Target = T> {
        self.borrow_mut()
    }

    fn try_write(&self) -> Option<impl DerefMut<Target = T>> {
        self.try_borrow_mut().ok()
    }
}
