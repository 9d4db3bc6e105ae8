//! Where a server finds its API keys: in this process, or in stores that several servers share (`native/cluster/src/keys`).

use std::fmt;
use std::sync::Arc;

use crate::keys::{ChangeNotifier, FilterOwners, KeyDatabase, KeyLookup, Quotas};

/// Where the server finds keys, and their counters, filters and changes. The traits are in `keys/traits.rs`.
#[derive(Clone)]
pub struct KeyAccess {
    /// The keys.
    pub keys: Arc<dyn KeyLookup>,
    /// The counters of the keys.
    pub quotas: Arc<dyn Quotas>,
    /// The numbers that own the filters of the keys.
    pub filters: Arc<dyn FilterOwners>,
    /// Announces changes of the keys.
    pub notifier: Arc<dyn ChangeNotifier>,
    /// Whether clients of this machine are served without a key.
    pub anonymous: bool,
}

impl KeyAccess {
    /// The keys of a database, which this process alone has open.
    #[must_use]
    pub fn embedded(database: &Arc<KeyDatabase>) -> Self {
        let (keys, quotas) = (database.clone(), database.clone());
        Self { keys, quotas, filters: database.clone(), notifier: database.clone(), anonymous: false }
    }
}

impl fmt::Debug for KeyAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyAccess").field("anonymous", &self.anonymous).finish_non_exhaustive()
    }
}
