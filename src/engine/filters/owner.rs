//! The owners of filters and subscriptions.

use core::ops::Range;

use super::Open;

/// The numbers of askers that are API keys. Addresses have other numbers.
pub const KEY_ASKERS: Range<u64> = 1 << 32..2 << 32;

/// The owner of filters and subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// Identifies the asker, for example its address: filters are shared out between askers. The filters of an API key
    /// ([`KEY_ASKERS`]) do not exist for other askers, and those of other askers do not exist for it.
    pub asker: u64,
    /// Number of the connection that owns the subscriptions.
    pub connection: u64,
    /// Most subscriptions that the connection may have.
    pub subscriptions: usize,
    /// Stands for what the asker may ask about. Filters that an API key made with other rights do not exist for it.
    pub rights: u64,
}

impl Owner {
    /// Whether a filter exists for this owner.
    pub(super) fn knows(&self, open: &Open) -> bool {
        // Only servers have API keys.
        let is_key = |asker: &u64| cfg!(feature = "hosted") && KEY_ASKERS.contains(asker);
        let same = open.asker == self.asker && open.rights == self.rights;
        same || !(is_key(&open.asker) || is_key(&self.asker))
    }
}
