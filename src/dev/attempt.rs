//! Changes of which nothing stays if they fail.

use alloc::boxed::Box;

use super::chain::DevChain;

impl DevChain {
    /// Begins a change that may fail after it has changed something. The result goes to [`Self::end`]; it is `None` inside of
    /// another change, which decides what stays.
    #[must_use]
    pub fn begin(&mut self) -> Option<Box<Self>> {
        if self.is_changing {
            return None;
        }
        if let Some(bitcoin) = &self.bitcoin {
            bitcoin.begin(false);
        }
        let before = Box::new(self.clone());
        self.is_changing = true;
        Some(before)
    }

    /// Ends the change that [`Self::begin`] has begun. Unless it is to stay, the chain, its pool and settings and the Bitcoin chain
    /// beside it are as before.
    pub fn end(&mut self, before: Option<Box<Self>>, stays: bool) {
        let Some(before) = before else { return };
        if let Some(bitcoin) = &self.bitcoin {
            bitcoin.end(stays);
        }
        self.is_changing = false;
        if !stays {
            *self = *before;
        }
    }

    /// Makes a change of which nothing stays if it fails.
    ///
    /// # Errors
    /// Those of the change.
    pub fn attempt<T, E>(&mut self, change: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let before = self.begin();
        let changed = change(self);
        self.end(before, changed.is_ok());
        changed
    }
}
