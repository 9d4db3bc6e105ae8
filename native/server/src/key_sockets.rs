//! Counts the WebSockets that the clients of an API key have open, against the limit of a key
//! (`ServerLimits::websockets_per_key`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::refusal::RequestRefusal;

/// The number of open WebSockets of each key, by the number that owns the key's filters (`FilterOwners::owner`).
#[derive(Debug, Clone, Default)]
pub(crate) struct KeySockets(Arc<Mutex<BTreeMap<u32, usize>>>);

/// A counted WebSocket of a key, until it is dropped.
#[derive(Debug)]
pub(crate) struct KeySocket {
    all: KeySockets,
    key: u32,
}

impl KeySockets {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts another WebSocket of a key, unless it has `most` already.
    pub(crate) fn enter(&self, key: u32, most: usize) -> Result<KeySocket, RequestRefusal> {
        let mut open = self.open();
        let count = open.entry(key).or_default();
        if *count >= most {
            return Err(RequestRefusal::Sockets(most));
        }
        *count = count.saturating_add(1);
        Ok(KeySocket { all: self.clone(), key })
    }
}

impl Drop for KeySocket {
    fn drop(&mut self) {
        let mut open = self.all.open();
        match open.get_mut(&self.key) {
            Some(count) if *count > 1 => *count = count.saturating_sub(1),
            _ => _ = open.remove(&self.key),
        }
    }
}
