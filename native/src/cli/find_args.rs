//! Flags about nodes of the peer-to-peer network that nobody named.

use std::path::PathBuf;

use clap::Args;

use crate::p2p::find::BootHost;

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
