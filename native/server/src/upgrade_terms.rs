//! The terms on which a WebSocket was admitted. When the operator changes the rules for pages, hosts or proxies, each open
//! WebSocket is checked again, and ends if the new rules would not admit it in the same way.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use rootlight::rpc::envelope::{Id, write_error};

use super::admission::OF_PROXIES;
use super::connection_slots::ClientConnection;
use super::presented_key::PresentedKey;
use super::refusal::INVALID_REQUEST;
use super::request_source::RequestSource;
use super::server_state::{ReloadableSettings, ServerState};

/// The headers of a WebSocket's upgrade request that rules look at, and the source and rights that the rules of that time
/// derived from them.
pub(crate) struct UpgradeTerms {
    headers: HeaderMap,
    /// The host in the target of the request, which most requests leave out.
    authority: Option<String>,
    source: RequestSource,
    /// Whether the client has the rights of the operator.
    operator: bool,
}

impl UpgradeTerms {
    /// The terms of an upgrade request that was admitted as one of `source`, with the operator's rights or without.
    pub(super) fn new(request: &axum::extract::Request, source: RequestSource, operator: bool) -> Self {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let names = [header::HOST, header::ORIGIN];
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers() {
            if names.iter().chain(&OF_PROXIES).any(|known| name == known) {
                headers.append(name, value.clone());
            }
        }
        Self { headers, authority, source, operator }
    }

    /// Why the rules would not admit the WebSocket in the same way; `None` if they would.
    fn fault(
        &self,
        rules: &ReloadableSettings,
        shared: &ServerState,
        connection: &ClientConnection,
        key: Option<&PresentedKey>,
    ) -> Option<String> {
        let mut source = rules.proxies.source(connection, &self.headers);
        if let Err(refusal) = rules.access.check(&self.headers, self.authority.as_deref(), &mut source) {
            return Some(refusal.to_string());
        }
        let operator = shared.admission.is_operator(key, &self.headers, &source);
        let terms = |source: &RequestSource, operator: bool| {
            (source.id, source.address, source.foreign_page.clone(), source.admits_all_pages, operator)
        };
        let is_same = terms(&self.source, self.operator) == terms(&source, operator);
        (!is_same).then(|| "the rules of this server have changed, connect again".to_owned())
    }

    /// Completes when the rules no longer admit the WebSocket on these terms. Returns the last message for the client.
    pub(crate) async fn revoked(
        &self,
        shared: &ServerState,
        connection: &Arc<ClientConnection>,
        key: Option<&PresentedKey>,
    ) -> String {
        let mut changes = shared.live.subscribe();
        loop {
            let rules = changes.borrow_and_update().clone();
            if let Some(fault) = self.fault(&rules, shared, connection, key) {
                return write_error(&Id::Unknown, INVALID_REQUEST, &fault);
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
