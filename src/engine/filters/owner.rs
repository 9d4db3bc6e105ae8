//! The owners of filters and subscriptions.

use super::Open;
use crate::types::Asker;

/// The owner of filters and subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owner {
    /// The asker. Filters are shared out between callers ([`Asker::number`]) and their pages ([`Asker::sharer`]). The filters
    /// of an asker that is apart from others ([`Asker::is_apart`]) do not exist for other askers, and theirs do not exist
    /// for it.
    pub asker: Asker,
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
        // A page without an origin of its own may poll over several connections. Nobody else can guess the id.
        let nameless = [open.asker, self.asker].iter().all(Asker::is_nameless);
        let asker = open.asker == self.asker || nameless && open.asker.number == self.asker.number;
        let same = asker && open.rights == self.rights;
        same || !(open.asker.is_apart() || self.asker.is_apart())
    }
}
