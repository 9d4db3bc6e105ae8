//! The state behind the admin page.

use std::fmt;
use std::sync::Arc;

use rootlight_server::service::SharedService;

use super::token::AdminToken;
use super::token_check::TokenCheck;
use crate::keys::{ClusterAccess, ClusterKeys};
use crate::store::HotStore;

/// The state behind an admin page.
pub struct AdminParts {
    /// The front end, whose backends are shown.
    pub service: SharedService,
    /// The keys in the database.
    pub keys: ClusterKeys,
    /// The store that front ends share.
    pub store: Arc<HotStore>,
    /// The keys and limits of this front end.
    pub access: Arc<ClusterAccess>,
    /// A notice for the operator.
    pub token: AdminToken,
}

impl fmt::Debug for AdminParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminParts").finish_non_exhaustive()
    }
}

/// The same for the handlers of requests.
pub(super) struct AdminState {
    pub(super) service: SharedService,
    pub(super) keys: ClusterKeys,
    pub(super) store: Arc<HotStore>,
    pub(super) access: Arc<ClusterAccess>,
    pub(super) attempts: TokenCheck,
}

impl From<AdminParts> for AdminState {
    fn from(parts: AdminParts) -> Self {
        let AdminParts { service, keys, store, access, token } = parts;
        Self { service, keys, store, access, attempts: TokenCheck::new(token) }
    }
}
