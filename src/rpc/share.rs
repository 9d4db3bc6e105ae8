//! How the parts of a light client are held: by one owner, or by the threads of a server.

use core::{
    cell::RefCell,
    ops::{Deref, DerefMut},
};

/// A lock of one part of a client.
pub trait Lock<T> {
    /// Puts a part under a lock.
    fn new(part: T) -> Self;

    /// The part, for reading; others may read it at the same time.
    fn read(&self) -> impl Deref<Target = T>;

    /// The part, for changing it.
    fn write(&self) -> impl DerefMut<Target = T>;

    /// As [`Self::write`], if nobody holds the part now.
    fn try_write(&self) -> Option<impl DerefMut<Target = T>>;
}

/// Which locks a host uses.
pub trait Share {
    /// The lock.
    type Lock<T>: Lock<T>;
}

/// The client has one owner, who holds no part while it calls: a browser page, or a test.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Share for Alone {
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
