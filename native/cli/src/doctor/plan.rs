//! The plan of a check: sources, starts and limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight_limits::Limits;
use rootlight_node::light::LightStart;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::bitcoin::BitcoinSource;
use rootlight_upstream::p2p::PeerAddress;
use rootlight_upstream::p2p::find::BootHost;

/// The plan of a check.
pub struct DoctorPlan {
    /// The chain.
    pub network: Network,
    /// The value of `--checkpoint`, for the report.
    pub checkpoint: Option<String>,
    /// Where headers begin. The head and a proof of state are asked for after the first start; of further ones the
    /// headers alone are measured.
    pub starts: Vec<LightStart>,
    /// Hosts to ask for nodes.
    pub boot: Vec<BootHost>,
    /// Nodes with snapshot service that are tried beside those that are found, and each by itself.
    pub state_servers: Vec<PeerAddress>,
    /// Whether nodes at private addresses are taken.
    pub allow_private: bool,
    /// Nodes that are named; each is tried by itself too.
    pub peers: Vec<PeerAddress>,
    /// Other sources of the chain; each is tried by itself.
    pub upstreams: Vec<SharedUpstream>,
    /// Recordings of nodes that were tried by themselves, from a verified block on.
    pub recorded: Vec<(SharedUpstream, LightStart)>,
    /// Sources of Bitcoin's chain; each is tried by itself, and all judge the chain together.
    pub bitcoin: Vec<Arc<BitcoinSource>>,
    /// For how long Bitcoin's tags are watched after everything else.
    pub watch: Duration,
    /// Seconds by which the clock of the run that is replayed is behind this machine's.
    pub behind: u64,
    /// The limits in which all that peers and upstreams send counts.
    pub limits: Arc<Limits>,
    /// Whether blocks come only now and then, so that an old head says nothing.
    pub is_idle: bool,
    /// Longest time.
    pub limit: Duration,
    /// Folder for recordings of what peers, upstreams and Bitcoin sources responded; `None` for none.
    pub recordings: Option<PathBuf>,
}
