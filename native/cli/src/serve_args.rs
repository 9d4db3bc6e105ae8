//! Flags of `rootlight serve`.

use std::path::PathBuf;

use clap::Args;
use rootlight::light::UnprovenPolicy;
use rootlight_cluster::serve::CacheSizes;

use super::calls::CallArgs;
use super::server_args::ServerArgs;
use super::source_args::starts_at_shown_block;

/// Flags of `serve`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ServeArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Backend: an http(s) or ws(s) URL of `rootlight follow`, `light` or `sidecar`, or of a stock node; repeat the flag for
    /// several, which check and replace each other
    #[arg(long, value_name = "URL", required = true)]
    pub backend: Vec<String>,
    /// Store that the front ends share: redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS; repeat the flag for several
    /// nodes of one cluster. Needs --index
    #[arg(long, value_name = "URL", hide_env_values = true, requires = "index")]
    pub cluster: Vec<String>,
    /// Database of keys, usage and the index: postgres://USER:PASSWORD@HOST:PORT/NAME
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub index: Option<String>,
    /// Require API keys of the database (`rootlight keys --index URL`). Clients put the key into the path: /KEY for HTTP and
    /// WebSocket
    #[arg(long, requires = "cluster", conflicts_with = "api_keys")]
    pub keys: bool,
    /// Serve a page for operators (keys, usage, health) on this port of 127.0.0.1; 0 picks a free one. Needs --cluster and
    /// --admin-token-file
    #[arg(long, value_name = "PORT", requires_all = ["cluster", "admin_token_file"])]
    pub admin_port: Option<u16>,
    /// File with the token of --admin-port, which only its owner may read. If there is none, it is made with a random token
    #[arg(long, value_name = "FILE", requires = "admin_port")]
    pub admin_token_file: Option<PathBuf>,
    /// Trusted block to start from; "built-in" is the newest built-in checkpoint, if it is less than a year old; "none"
    /// starts from genesis; "work" and "window" trust no block, and know no blocks but the newest ones [default: built-in; on
    /// regtest the block 0 that the backends show]
    #[arg(long, value_name = "built-in|NUMBER:HASH[:TD]|none|work|window")]
    pub checkpoint: Option<String>,
    /// Refuse answers about blocks that have fewer than this many blocks on top
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_depth: u64,
    /// Refuse answers while the newest verified block is older than this many seconds by the local clock; 0
    /// accepts any age [default: 3600; 0 where the backends show block 0]
    #[arg(long, value_name = "S")]
    pub max_age: Option<u64>,
    /// Answers that no backend can prove, such as state of stock nodes: refuse them, accept what N backends under different
    /// domains agree on, or trust the best backend; accepted answers are marked "level":"unproven"
    #[arg(long, value_name = "refuse|quorum:N|trust", default_value = "refuse")]
    pub unproven: UnprovenPolicy,
    /// Work floor in percent, as of `rootlight light`
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=100))]
    pub min_work: u64,
    /// Memory for what is kept for later messages, in MiB: half for proven blocks and state, a third for answers about final
    /// blocks, a sixth for blocks of the index
    #[arg(long, value_name = "MIB", default_value_t = CacheSizes::DEFAULT_MIB, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub cache: u64,
    /// Flags of calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Flags of the server.
    #[command(flatten)]
    pub server: ServerArgs,
}

impl ServeArgs {
    /// Whether the front end starts at the block 0 that its backends show.
    pub(super) fn starts_at_shown_block(&self) -> bool {
        starts_at_shown_block(&self.network, self.checkpoint.as_deref())
    }
}

const HELP: &str = "\
Examples:
  rootlight serve --backend http://10.0.0.5:4444 --backend http://10.0.0.6:4444
  rootlight serve --backend http://10.0.0.5:4444 --cluster redis://10.0.0.7:6379 --index postgres://me:word@10.0.0.8/rootstock

docs/cluster.md describes a service of several front ends.";
