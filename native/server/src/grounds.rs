//! What a WebSocket was admitted on, and whether the present rules would admit it in the same way.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use rootlight::rpc::envelope::{Id, write_error};
use rootlight_limits::caller_id::Peer;

use super::access::Sender;
use super::entry::OF_PROXIES;
use super::live::Rules;
use super::places::ClientConnection;
use super::proxies::Client;
use super::refusal::INVALID_REQUEST;
use super::shared::Shared;
use super::tenant::Tenant;

/// The headers of an upgrade that rules look at, and what the rules of that time made of them.
pub(crate) struct Grounds {
    headers: HeaderMap,
    authority: Option<String>,
    began: Standing,
}

/// Whose messages they are, and what the sender may do.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    peer: Peer,
    address: IpAddr,
    sender: Sender,
    operator: bool,
}

impl Grounds {
    /// Keeps what an upgrade was admitted on: its client, its sender and the headers that rules look at.
    pub(super) fn new(
        request: &axum::extract::Request,
        client: &Client,
        sender: Sender,
        operator: bool,
    ) -> Self {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let names = [header::HOST, header::ORIGIN];
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers() {
            if names.iter().chain(&OF_PROXIES).any(|known| name == known) {
                headers.append(name, value.clone());
            }
        }
        Self {
            headers,
            authority,
            began: Standing { peer: client.peer, address: client.address, sender, operator },
        }
    }

    /// Why the rules would not admit the WebSocket in the same way; `None` if they would.
    fn fault(
        &self,
        rules: &Rules,
        shared: &Shared,
        connection: &ClientConnection,
        tenant: Option<&Tenant>,
    ) -> Option<String> {
        let sender = match rules.access.check(&self.headers, self.authority.as_deref()) {
            Ok(sender) => sender,
            Err(refusal) => return Some(refusal.to_string()),
        };
        let client = rules.proxies.client(connection, &self.headers);
        let operator = shared.entry.terms(tenant, &self.headers, &client).operator;
        let now = Standing { peer: client.peer, address: client.address, sender, operator };
        (now != self.began).then(|| "the rules of this server have changed, connect again".to_owned())
    }

    /// Completes when the rules have changed so that the WebSocket must be closed. Returns the last message for the
    /// client.
    pub(crate) async fn fall(
        &self,
        shared: &Shared,
        connection: &Arc<ClientConnection>,
        tenant: Option<&Tenant>,
    ) -> String {
        let mut changes = shared.live.changes();
        loop {
            let rules = changes.borrow_and_update().clone();
            if let Some(fault) = self.fault(&rules, shared, connection, tenant) {
                return write_error(&Id::Unknown, INVALID_REQUEST, &fault);
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
