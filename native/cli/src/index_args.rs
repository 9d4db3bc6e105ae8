//! Flags of `rootlight index`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Flags of `index`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct IndexArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Source of blocks: an http(s) or ws(s) URL, or replay:PATH for a recording; repeat the flag for several, which
    /// check and replace each other
    #[arg(long, value_name = "URL|replay:PATH", required = true)]
    pub from: Vec<String>,
    /// The database: postgres://USER:PASSWORD@HOST:PORT/NAME. Connections to other machines are encrypted
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub index: String,
    /// Trusted block from which the chain's headers are proven; "built-in" is the newest built-in checkpoint, if it is less
    /// than a year old; "none" starts from genesis; "work" and "window" trust no block, and prove the newest blocks alone
    /// [default: built-in; on regtest the block 0 that --from shows]
    #[arg(long, value_name = "built-in|NUMBER:HASH[:TD]|none|work|window")]
    pub checkpoint: Option<String>,
    /// Work floor in percent, as of `rootlight light`
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=100))]
    pub min_work: u64,
    /// Store verified headers in this folder, and continue from them
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The first block of a new index [default: 0, or with --retain the first block that is kept]
    #[arg(long, value_name = "N")]
    pub first_block: Option<u64>,
    /// Number of blocks of a partition, for a new index [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub partition_blocks: Option<u64>,
    /// Drop partitions whose blocks are all more than so many blocks below the head [default: keep all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub retain: Option<u64>,
    /// Number of partitions that are filled at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// Store traces too, which --from serves by trace_block and nothing proves; blocks that are there already get theirs
    #[arg(long)]
    pub traces: bool,
    /// End once all blocks up to the head are loaded, instead of following the chain
    #[arg(long)]
    pub once: bool,
    /// Wait for the end of another indexer of the same index, and take over
    #[arg(long)]
    pub wait: bool,
    /// Serve /metrics for Prometheus on this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
}

const HELP: &str = "\
Examples:
  rootlight index --from https://node.example/KEY --index postgres://me:word@db.example/rootstock --data-dir headers
  rootlight index --network regtest --from replay:recording --index postgres://me@localhost/test --once

docs/cluster.md describes the tables.";
