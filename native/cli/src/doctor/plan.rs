//! The plan of a check: its sources, starts and limits. `command.rs` makes the plan from the flags, `examine.rs` runs it.

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

/// The sources, starts and limits of a check.
pub struct DoctorPlan {
    /// The chain.
    pub network: Network,
    /// The value of `--checkpoint`, for the report.
    pub checkpoint: Option<String>,
    /// The blocks at which headers begin. From the first one, the check also requests the head and a proof of state; from the
    /// others, the check measures the headers alone.
    pub starts: Vec<LightStart>,
    /// The hosts that name the first nodes of the network.
    pub boot: Vec<BootHost>,
    /// Nodes that serve snapshots; they are tried together with the nodes that are found, and each by itself.
    pub state_servers: Vec<PeerAddress>,
    /// Whether nodes at private addresses are accepted.
    pub allow_private: bool,
    /// The nodes of `--peer`; each is tried by itself too.
    pub peers: Vec<PeerAddress>,
    /// Other sources of the chain; each is tried by itself.
    pub upstreams: Vec<SharedUpstream>,
    /// Recordings of nodes that were tried by themselves, from a verified block on.
    pub recorded: Vec<(SharedUpstream, LightStart)>,
    /// Sources of Bitcoin's chain; each is tried by itself, and all judge the chain together.
    pub bitcoin: Vec<Arc<BitcoinSource>>,
    /// The time for which Bitcoin's tags are watched after all other checks.
    pub watch: Duration,
    /// Seconds by which the clock of the run that is replayed is behind this machine's.
    pub behind: u64,
    /// The limits of the bytes that peers and upstreams send.
    pub limits: Arc<Limits>,
    /// Whether the network makes few blocks, as private networks do, so that an old head is no fault.
    pub is_idle: bool,
    /// The time limit of the whole check.
    pub limit: Duration,
    /// Folder for recordings of what peers, upstreams and Bitcoin sources responded; `None` for none.
    pub recordings: Option<PathBuf>,
}
