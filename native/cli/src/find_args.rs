//! Flags of discovery, and of the commands that use it first of all: `peers`, `crawl` and `doctor`.

use std::path::PathBuf;

use clap::Args;
use rootlight_upstream::p2p::PeerAddress;
use rootlight_upstream::p2p::find::BootHost;

/// Flags of discovery.
#[derive(Debug, Clone, Default, Args)]
pub struct FindArgs {
    /// Ask this host for nodes, instead of the network's boot hosts; repeat the flag for several
    #[arg(long, value_name = "HOST:PORT")]
    pub bootnode: Vec<BootHost>,
    /// Take nodes at private, loopback and other special addresses too: for networks of your own. Always so on regtest
    #[arg(long)]
    pub allow_private_peers: bool,
}

/// Flags of `peers`.
#[derive(Debug, Args)]
#[command(after_help = PEERS_HELP)]
pub struct PeersArgs {
    /// mainnet, testnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// The --data-dir of the light client
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Print a JSON object for each node
    #[arg(long)]
    pub json: bool,
}

const PEERS_HELP: &str = "\
The list is as of the last minute, while a light client runs in the folder.

Example:
  rootlight peers --data-dir ~/rootlight";

/// Flags of `crawl`.
#[derive(Debug, Args)]
#[command(after_help = CRAWL_HELP)]
pub struct CrawlArgs {
    /// mainnet, testnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Flags of discovery.
    #[command(flatten)]
    pub finding: FindArgs,
    /// End after this many seconds
    #[arg(long = "for", value_name = "S", default_value_t = 60)]
    pub seconds: u64,
    /// Print a JSON object for each node
    #[arg(long)]
    pub json: bool,
    /// Begin with the nodes that are kept in this folder, and keep there what is found: a light client with this
    /// --data-dir uses it
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

const CRAWL_HELP: &str = "\
Each node is dialled once, eight at a time, and asked for its snapshot service if it offers one. What
nodes say of themselves is proven by nothing.

Examples:
  rootlight crawl --network testnet --for 300 --json > nodes.jsonl
  rootlight crawl --network regtest --bootnode 127.0.0.1:50501 --for 10";

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub struct DoctorArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Try this JSON-RPC node too: an http(s) or ws(s) URL, or replay:PATH for a recording; repeat the flag for several,
    /// each of which is tried by itself
    #[arg(long, value_name = "URL|replay:PATH")]
    pub upstream: Vec<String>,
    /// Try this node of the peer-to-peer network, beside those that are found; repeat the flag for several
    #[arg(long, value_name = "ID@HOST:PORT")]
    pub peer: Vec<PeerAddress>,
    /// Flags of discovery.
    #[command(flatten)]
    pub finding: FindArgs,
    /// Where to start, as of rootlight light [default: its default, and at the newest built-in checkpoint too]
    #[arg(long, value_name = "window|work|built-in|NUMBER:HASH[:TD]|none")]
    pub checkpoint: Option<String>,
    /// Try this source of Bitcoin's chain, as of rootlight light; repeat the flag for several. "off" tries none [default:
    /// public sources of the network]
    #[arg(long, value_name = "URL|off")]
    pub bitcoin: Vec<String>,
    /// Watch Bitcoin's tags for this many seconds after everything else; a day, 86400, is worth most
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub watch: u64,
    /// End after this many seconds, --watch apart; finding nodes takes a third of them at most
    #[arg(long = "for", value_name = "S", default_value_t = 180)]
    pub seconds: u64,
    /// Print the report as JSON, instead of a line for each step
    #[arg(long)]
    pub json: bool,
    /// Write the report as JSON to this file, and recordings of what peers, upstreams and Bitcoin sources responded into the
    /// folder FILE.recording
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Try a report again, from the recordings beside it and at its time; nothing else is asked
    #[arg(long, value_name = "FILE", conflicts_with_all = ["peer", "bootnode", "bitcoin", "report", "watch"])]
    pub replay: Option<PathBuf>,
}

const DOCTOR_HELP: &str = "\
Steps: names of the boot hosts, discovery, handshakes with nodes; then by peers and by each --upstream: headers with
their proofs of work, the verified head, a balance that is proven from its state root, headers of other starts, what
Bitcoin's blocks say of the chain; each state server and each --peer by itself; each source of Bitcoin's chain.

Examples:
  rootlight doctor                            each step by peers of mainnet
  rootlight doctor --network testnet --upstream https://node.example/KEY --report report.json
  rootlight doctor --watch 86400 --report day.json
  rootlight doctor --replay day.json

Exit codes: 0 a verified head and a proof of state were had from one of the sources, 1 not, 2 wrong usage.";
