//! The state behind the admin page: what a host gives to it, and the same for its handlers.

use std::fmt;
use std::sync::Arc;

use rootlight_server::service::SharedService;

use super::token::AdminToken;
use super::token_check::TokenCheck;
use crate::keys::{ClusterAccess, ClusterKeys};
use crate::store::HotStore;

/// What an admin page needs.
pub struct AdminParts {
    /// The front end, whose backends are shown.
    pub service: SharedService,
    /// The keys in the database.
    pub keys: ClusterKeys,
    /// The store that front ends share.
    pub store: Arc<HotStore>,
    /// The keys and limits of this front end.
    pub access: Arc<ClusterAccess>,
    /// The token that requests must have.
    pub token: AdminToken,
}

impl fmt::Debug for AdminParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminParts").finish_non_exhaustive()
    }
}

/// [`AdminParts`] for the handlers of requests, with the limit of wrong tokens.
pub(super) struct AdminState {
    pub(super) service: SharedService,
    pub(super) keys: ClusterKeys,
    pub(super) store: Arc<HotStore>,
    pub(super) access: Arc<ClusterAccess>,
    pub(super) token_check: TokenCheck,
}

impl From<AdminParts> for AdminState {
    fn from(parts: AdminParts) -> Self {
        let AdminParts { service, keys, store, access, token } = parts;
        Self { service, keys, store, access, token_check: TokenCheck::new(token) }
    }
}
