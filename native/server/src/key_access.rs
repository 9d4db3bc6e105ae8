//! Where a server finds its API keys.

use std::fmt;
use std::sync::Arc;

use crate::keys::{ChangeNotifier, FilterOwners, KeyLookup, Quotas, Registry};

/// Where the server finds keys and everything that belongs to them.
#[derive(Clone)]
pub struct KeyAccess {
    /// The keys.
    pub keys: Arc<dyn KeyLookup>,
    /// The counters of the keys.
    pub quotas: Arc<dyn Quotas>,
    /// The owners of their filters.
    pub filters: Arc<dyn FilterOwners>,
    /// Announcements of changes.
    pub notifier: Arc<dyn ChangeNotifier>,
    /// Whether clients of this machine are served without a key.
    pub anonymous: bool,
}

impl KeyAccess {
    /// Keys of this process alone.
    #[must_use]
    pub fn embedded(registry: &Arc<Registry>) -> Self {
        let (keys, quotas) = (registry.clone(), registry.clone());
        Self { keys, quotas, filters: registry.clone(), notifier: registry.clone(), anonymous: false }
    }
}

impl fmt::Debug for KeyAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyAccess").field("anonymous", &self.anonymous).finish_non_exhaustive()
    }
}
