//! A crawl of the peer-to-peer network, for `rootlight crawl` and `rootlight doctor`: every node that discovery finds is dialled
//! once and asked what it offers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use rootlight_p2p::discovery::{NodeRecord, is_public};
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::{BlockParts, Message, Push, Request, Response};
use rootlight_p2p::session::Hello;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::finder::Finder;
use super::known::peer_address;
use crate::p2p::connection::PeerHandler;
use crate::p2p::link::PeerLink;
use crate::p2p::{Identity, PeerAddress, PeerError, Reach, node};
use crate::source_quota::SourceQuota;

/// Most nodes that are dialled at the same time.
const MAX_DIALS: usize = 8;

/// Least time between two dials.
const DIAL_INTERVAL: Duration = Duration::from_millis(250);

/// Longest visit of one node.
const VISIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a crawl.
#[derive(Debug, Clone)]
pub struct CrawlOptions {
    /// Our identity to the nodes.
    pub identity: Arc<Identity>,
    /// How long the crawl lasts.
    pub duration: Duration,
}

/// A node's unproven statements about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitReport {
    /// The node's HELLO: its client, protocols and id.
    pub hello: Hello,
    /// Hash of the node's best block.
    pub best_hash: B256,
    /// Total difficulty of the node's best block.
    pub total_difficulty: U256,
    /// The node's snapshot service, if it has one that answers.
    pub snap: Option<SnapOffer>,
}

/// The offer of a snapshot server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapOffer {
    /// Number of the block whose state the server offers.
    pub block: u64,
    /// Bytes of the state after this block.
    pub trie_size: u64,
}

/// A node that was dialled.
#[derive(Debug)]
pub struct NodeVisit {
    /// Id and address.
    pub node: NodeRecord,
    /// Its statements, or why there are none.
    pub outcome: Result<VisitReport, PeerError>,
}

/// Dials every node that the finder finds once, 8 at a time and one at each public address, and calls `visited` with each result.
/// Returns the number of nodes that were found.
pub async fn crawl(finder: &Finder, options: CrawlOptions, mut visited: impl FnMut(NodeVisit)) -> usize {
    let list = finder.list().clone();
    let reach = Reach::Found { private: list.allows_private() };
    let end = Instant::now().checked_add(options.duration).unwrap_or_else(Instant::now);
    let (mut dialled, mut dials) = (Dialled::default(), JoinSet::new());
    let mut turns = interval(DIAL_INTERVAL);
    loop {
        tokio::select! {
            _ = turns.tick(), if dials.len() < MAX_DIALS => {
                let next = list.nodes().into_iter().find(|known| dialled.is_new(&known.node));
                if let Some(known) = next {
                    dialled.note(&known.node);
                    let identity = options.identity.clone();
                    dials.spawn(async move {
                        let outcome = visit(&identity, &peer_address(&known.node), reach).await;
                        NodeVisit { node: known.node, outcome }
                    });
                }
            }
            Some(Ok(visit)) = dials.join_next() => {
                match &visit.outcome {
                    Ok(said) => list.connected(&visit.node.id, &said.hello),
                    Err(_) => list.failed(&visit.node.id),
                }
                visited(visit);
            }
            () = sleep_until(end) => return list.nodes().len(),
        }
    }
}

/// Which nodes and hosts were dialled.
#[derive(Default)]
struct Dialled {
    nodes: BTreeSet<SocketAddr>,
    hosts: BTreeSet<IpAddr>,
}

impl Dialled {
    fn is_new(&self, node: &NodeRecord) -> bool {
        !self.nodes.contains(&node.address) && !self.hosts.contains(&node.address.ip())
    }

    fn note(&mut self, node: &NodeRecord) {
        self.nodes.insert(node.address);
        if is_public(node.address.ip()) {
            self.hosts.insert(node.address.ip());
        }
    }
}

/// The handler of a visit: it ignores all that the node sends unasked.
struct Visitor(SourceQuota);

impl PeerHandler for Visitor {
    fn quota(&self) -> SourceQuota {
        self.0.clone()
    }

    fn handle_push(&self, _: Push<'_>) {}
}

/// Dials a node once, asks what it offers, and disconnects. Takes 30 s at most.
///
/// # Errors
/// The node cannot be dialled, speaks another protocol, or follows another chain.
pub async fn visit(
    identity: &Identity,
    address: &PeerAddress,
    reach: Reach,
) -> Result<VisitReport, PeerError> {
    let visit = timeout(VISIT_TIMEOUT, visit_once(identity, address, reach)).await;
    visit.unwrap_or(Err(PeerError::NoResponse(VISIT_TIMEOUT)))
}

/// Does what [`visit`] does, without a time limit.
async fn visit_once(
    identity: &Identity,
    address: &PeerAddress,
    reach: Reach,
) -> Result<VisitReport, PeerError> {
    let visitor = Visitor(SourceQuota::of_peer(identity.limits()));
    let link = node::dial(identity, address, reach, Arc::new(visitor)).await?;
    let said = &link.peer;
    let snap = if said.hello.serves_snap() { snap_offer(&link).await } else { None };
    Ok(VisitReport {
        hello: said.hello.clone(),
        best_hash: said.status.best_hash,
        total_difficulty: said.status.total_difficulty,
        snap,
    })
}

/// Asks a snapshot server for its offer.
async fn snap_offer(link: &Arc<PeerLink>) -> Option<SnapOffer> {
    let message = link.ask(Request::SnapStatus).await.ok()?;
    message.read(read_offer).await.ok()?
}

/// Reads the offer from the response, whose last block is the one whose state is offered.
fn read_offer(payload: &[u8]) -> Option<SnapOffer> {
    let Message::Response { response: Response::SnapStatus(status), .. } = Message::decode(payload).ok()?
    else {
        return None;
    };
    let offered = BlockParts::split(status.blocks.blocks.iter().last()?).ok()?;
    let header = RawHeader::split(offered.header).ok()?;
    Some(SnapOffer { block: header.number(), trie_size: status.trie_size })
}
