//! A peer as an upstream of the light client: the trait `Upstream` over the answers of `answer.rs`.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use tokio::sync::Notify;

use super::address::PeerAddress;
use super::answer::PeerAnswers;
use super::error::PeerError;
use super::node::{Identity, PeerNode, Reach};
use super::state::StateNodes;
use crate::{ReservedResults, Upstream, UpstreamError, quota_owner};

/// A peer that answers the core's requests.
pub struct PeerUpstream {
    name: String,
    node: Arc<PeerNode>,
    answers: PeerAnswers,
}

impl PeerUpstream {
    /// Starts to dial a node; must be called inside a runtime. Peers of one light client share `nodes`.
    #[must_use]
    pub fn new(
        identity: Arc<Identity>,
        address: PeerAddress,
        network: Arc<Network>,
        nodes: Arc<StateNodes>,
    ) -> Self {
        Self::within(identity, address, Reach::Any, network, nodes)
    }

    /// Does what [`Self::new`] does, but dials only addresses within reach.
    #[must_use]
    pub fn within(
        identity: Arc<Identity>,
        address: PeerAddress,
        reach: Reach,
        network: Arc<Network>,
        nodes: Arc<StateNodes>,
    ) -> Self {
        let name = address.to_string();
        let node = Arc::new(PeerNode::start(identity, address, reach));
        Self { name, answers: PeerAnswers::new(node.clone(), network, nodes), node }
    }

    pub(super) fn node(&self) -> &PeerNode {
        &self.node
    }
}

impl Upstream for PeerUpstream {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            let answers = join_all(requests.iter().map(|request| self.answers.answer(request))).await;
            let failure: fn(PeerError) -> UpstreamError =
                if quota_owner().is_some() { PeerError::of_caller } else { UpstreamError::from };
            let mut all_reserved = Reservation::default();
            let mut text_of = |(text, reserved)| {
                all_reserved.merge(reserved);
                text
            };
            let results =
                answers.into_iter().map(|answer| answer.map(&mut text_of).map_err(failure)).collect();
            (results, all_reserved)
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> Option<IpAddr> {
        self.node.address().host.trim_matches(['[', ']']).parse().ok()
    }

    fn head_signal(&self) -> Option<Arc<Notify>> {
        Some(self.node.head_signal())
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::super::node::random_key;
    use super::*;

    #[tokio::test]
    async fn the_address_of_a_peer_is_the_one_of_its_name() {
        let network = Network::regtest();
        let identity = Arc::new(Identity::open(&network, B256::ZERO, None).unwrap());
        let network = Arc::new(network);
        for (host, address) in
            [("127.0.0.9", Some("127.0.0.9")), ("[2001:db8::9]", Some("2001:db8::9")), ("localhost", None)]
        {
            let peer = PeerAddress { id: *random_key().unwrap().id(), host: host.into(), port: 1 };
            let peer = PeerUpstream::new(identity.clone(), peer, network.clone(), Arc::default());
            assert_eq!(peer.address(), address.map(|address| address.parse().unwrap()), "{host}");
        }
    }
}
