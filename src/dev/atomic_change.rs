//! Changes of the development chain that are undone as a whole if they fail: handlers of methods and the miner make each change of
//! several steps inside [`DevChain::change_atomically`], or between [`DevChain::begin`] and [`DevChain::end`].

use alloc::boxed::Box;

use super::chain::DevChain;

impl DevChain {
    /// Begins a change that may fail half-way. Returns a copy of the chain, which the caller passes to [`Self::end`]. Returns
    /// `None` inside of another change: the end of the outer change then decides whether the inner one stays too.
    #[must_use]
    pub fn begin(&mut self) -> Option<Box<Self>> {
        if self.is_changing {
            return None;
        }
        if let Some(bitcoin) = &self.bitcoin {
            // `false`: readers do not see the Bitcoin blocks of the change before it ends.
            bitcoin.begin(false);
        }
        let before = Box::new(self.clone());
        self.is_changing = true;
        Some(before)
    }

    /// Ends the change that [`Self::begin`] has begun. Unless the change `stays`, the chain, its pool, its settings and its
    /// Bitcoin chain are again as before.
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

    /// Makes a change, and undoes it as a whole if it fails.
    ///
    /// # Errors
    /// The errors of the change.
    pub fn change_atomically<T, E>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.begin();
        let changed = change(self);
        self.end(before, changed.is_ok());
        changed
    }
}
