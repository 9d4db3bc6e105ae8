//! What is tried.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight_limits::Limits;
use rootlight_node::light::LightStart;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::p2p::PeerAddress;
use rootlight_upstream::p2p::find::BootHost;

/// What is tried.
pub struct DoctorPlan {
    /// The chain.
    pub network: Network,
    /// Where headers begin.
    pub start: LightStart,
    /// Hosts to ask for nodes.
    pub boot: Vec<BootHost>,
    /// Nodes with snapshot service that are tried beside those that are found.
    pub state_servers: Vec<PeerAddress>,
    /// Whether nodes at private addresses are taken.
    pub allow_private: bool,
    /// Nodes that are named.
    pub peers: Vec<PeerAddress>,
    /// Other sources of the chain; each is tried by itself.
    pub upstreams: Vec<SharedUpstream>,
    /// The limits in which all that peers and upstreams send counts.
    pub limits: Arc<Limits>,
    /// Whether blocks come only now and then, so that an old head says nothing.
    pub is_idle: bool,
    /// Longest time.
    pub limit: Duration,
    /// Folder for recordings of what peers and upstreams responded; `None` for none.
    pub recordings: Option<PathBuf>,
}
