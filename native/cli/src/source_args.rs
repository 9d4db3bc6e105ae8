//! Flags that every command with a light client has.

use std::path::PathBuf;

use clap::Args;
use rootlight::consensus::Network;
use rootlight::light::bitcoin::COUNTED_BLOCKS;
use rootlight_upstream::p2p::PeerAddress;

use super::find_args::FindArgs;

/// Discovered nodes that are asked at a time.
const DEFAULT_PEERS: u8 = 4;

/// The work floor: least share of the expected work, in percent.
const DEFAULT_MIN_WORK: u64 = 50;

/// Flags of a light client: the chain, its upstreams, where it starts, and which answers it refuses.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Upstream: an http(s) or ws(s) URL, or replay:PATH for a recording; repeat the flag for several
    /// upstreams, which check and replace each other. Without --upstream and --peer, nodes of Rootstock's
    /// peer-to-peer network are found and asked
    #[arg(long, value_name = "URL|replay:PATH")]
    pub upstream: Vec<String>,
    /// Upstream: a node of Rootstock's peer-to-peer network, by its public key and address; repeat the flag for several.
    /// State needs a node with snapshot service; receipts and logs need an --upstream
    #[arg(long, value_name = "ID@HOST:PORT")]
    pub peer: Vec<PeerAddress>,
    /// Find nodes of the peer-to-peer network and ask them too, beside --upstream or --peer
    #[arg(long)]
    pub discovery: bool,
    /// Number of nodes that are found and asked at a time
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PEERS, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub peers: u8,
    /// Flags of discovery.
    #[command(flatten)]
    pub finding: FindArgs,
    /// Where to start: "window" trusts no block, starts from the heaviest chain of recent headers that the upstreams prove,
    /// stores its headers and continues from them; "work" does so too and stores none; "built-in" trusts the newest
    /// built-in checkpoint, if it is less than a year old, and waits for all headers since; a block trusts that block;
    /// "none" starts from genesis [default: window, or built-in where work proves nothing: testnets, --min-work 0; on
    /// regtest the block 0 that the upstreams show]
    #[arg(long, value_name = "window|work|built-in|NUMBER:HASH[:TD]|none")]
    pub checkpoint: Option<String>,
    /// With a start by window: fetch all headers since the newest built-in checkpoint as well, behind answers. Once it
    /// leads to the window, answers rest on it and are not marked
    #[arg(long)]
    pub backfill: bool,
    /// Refuse answers about blocks that have fewer than this many blocks on top
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_depth: u64,
    /// Refuse answers while the newest verified block is older than this many seconds by the local clock; 0
    /// accepts any age [default: 3600; 0 where the upstreams show block 0]
    #[arg(long, value_name = "S")]
    pub max_age: Option<u64>,
    /// Work floor in percent: every 2, 6 and 24 hours of the chain must show at least this share of the work
    /// that the checkpoint promises, or without one of the network's least difficulty; 0 turns the check off
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MIN_WORK, value_parser = clap::value_parser!(u64).range(..=100))]
    pub min_work: u64,
    /// Judge the chain by Bitcoin's, which this source shows: http(s) for Esplora, ssl, tcp, wss or ws for an Electrum server,
    /// rootlight+https and so on for another Rootlight; repeat the flag for several. "off" asks none [default: public sources of the network, docs/light.md names them]
    #[arg(long, value_name = "URL|off")]
    pub bitcoin: Vec<String>,
    /// Refuse answers unless Bitcoin's blocks support the chain (the verdict is "held"), and answers about blocks that fewer than
    /// this many Bitcoin blocks commit to, directly or by a block above; 0 asks for the verdict alone [default: nothing is
    /// refused, answers are marked]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(COUNTED_BLOCKS)))]
    pub min_bitcoin: Option<u32>,
    /// Store verified headers in this folder, and continue from them; a file that is damaged or has another
    /// checkpoint is set aside, and stored headers are proven again; "none" stores nothing [default: for a start
    /// by window a folder below the user's caches, else none]
    #[arg(long, value_name = "DIR|none")]
    pub data_dir: Option<PathBuf>,
}

impl SourceArgs {
    /// Arguments with these upstreams of a network, and with the defaults of all other flags.
    pub(super) fn of(network: &Network, upstream: Vec<String>) -> Self {
        Self {
            network: network.name.clone(),
            upstream,
            peer: Vec::new(),
            discovery: false,
            peers: DEFAULT_PEERS,
            finding: FindArgs::default(),
            checkpoint: None,
            backfill: false,
            min_depth: 0,
            max_age: None,
            min_work: DEFAULT_MIN_WORK,
            bitcoin: Vec::new(),
            min_bitcoin: None,
            data_dir: None,
        }
    }

    /// Whether the client starts at the block 0 that its upstreams show: every development chain has its own.
    pub(super) fn starts_at_shown_block(&self) -> bool {
        !self.upstream.is_empty() && starts_at_shown_block(&self.network, self.checkpoint.as_deref())
    }
}

/// Whether a client of this network, with this `--checkpoint`, starts at the block 0 that its upstreams show.
pub(super) fn starts_at_shown_block(network: &str, checkpoint: Option<&str>) -> bool {
    network == "regtest" && checkpoint.is_none()
}
