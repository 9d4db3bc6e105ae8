//! The command line as clap reads it: the commands, their flags and their help texts. A doc comment of a flag or command is
//! its help text. Flags that several commands share are in other files, such as `server_args.rs` and `source_args.rs`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use rootlight::dev::LAST_TIME;
use rootlight::light::{MAX_AGE, UnprovenPolicy};
use rootlight::verify::DocumentSubject;
use rootlight_node::fork::ForkBlock;

use super::balance::BalanceArgs;
use super::calls::CallArgs;
use super::find_args::{CrawlArgs, DoctorArgs, PeersArgs};
#[cfg(feature = "cluster")]
use super::index_args::IndexArgs;
use super::keys::KeysArgs;
#[cfg(feature = "cluster")]
use super::serve_args::ServeArgs;
use super::server_args::ServerArgs;
use super::source_args::SourceArgs;

/// Rootstock light client: proven answers over JSON-RPC.
#[derive(Debug, Parser)]
#[command(name = "rootlight", version, about, after_help = ROOTLIGHT_HELP)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the development chain, which is the default command.
    #[command(flatten)]
    pub dev: DevArgs,
    /// Flags of all commands.
    #[command(flatten)]
    pub common: CommonArgs,
}

const ROOTLIGHT_HELP: &str = "\
Without a command, a development chain runs.

Examples:
  rootlight                           a Rootstock development chain on 127.0.0.1:4444, accounts funded
  rootlight dev --block-time 5 --data-dir chain
                                      one block every five seconds, kept on disk
  rootlight balance 0xADDRESS         a proven balance on mainnet, without any set-up
  rootlight light                     follow mainnet from its newest headers on, by nodes of its own
                                      peer-to-peer network
  rootlight light --upstream https://node.example/KEY
                                      the same by a JSON-RPC node
  rootlight follow --upstream http://127.0.0.1:4444
                                      execute every block of a regtest node and check every root
  rootlight verify header block.json  check a header offline
  rootlight record --upstream http://127.0.0.1:4444 --out recording --from 0 --to 100
                                      write a recording that --upstream replay:recording reads

Exit codes: 0 ok, 1 failed, 2 wrong usage.
Every flag can also be given as environment variable ROOTLIGHT_<FLAG> (dashes as underscores) or
as key of a TOML file (--config): keys at the top level, or under [light], [record] ... for one command.";

/// Flags of all commands.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Read flags from a TOML file; flags on the command line and environment variables take precedence
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print nothing but results and errors
    #[arg(long, global = true)]
    pub silent: bool,
    /// Write log lines as JSON
    #[arg(long, global = true)]
    pub json_log: bool,
    /// Levels of log lines, such as debug or warn,rootlight=debug, instead of those of RUST_LOG
    #[arg(long, global = true, value_name = "FILTER", value_parser = log_level)]
    pub log_level: Option<String>,
}

/// Checks the form of a filter of log lines. `EnvFilter` reads a lone word that is no level as the name of a module, and
/// would log nothing.
fn log_level(text: &str) -> Result<String, String> {
    let has_level = |part: &str| {
        let level = part.rsplit('=').next().unwrap_or_default();
        !level.trim().is_empty() && level.trim().parse::<tracing_subscriber::filter::LevelFilter>().is_ok()
    };
    match text.split(',').all(has_level) && tracing_subscriber::EnvFilter::try_new(text).is_ok() {
        true => Ok(text.to_owned()),
        false => Err("give off, error, warn, info, debug or trace, or MODULE=LEVEL; commas separate several"
            .to_owned()),
    }
}

/// Subcommands.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Run a development chain (the default command)
    Dev(DevArgs),
    /// Execute every block of a regtest or custom network, check all roots, and serve the chain
    Follow(FollowArgs),
    /// Follow the chain of untrusted upstreams, and serve proven answers
    Light(LightArgs),
    /// Prove the balance of an account, print it with what it rests on, and end
    Balance(BalanceArgs),
    /// List the nodes of the peer-to-peer network that a light client knows
    Peers(PeersArgs),
    /// Find nodes of the peer-to-peer network, and ask each what it offers
    Crawl(CrawlArgs),
    /// Try each step of reading the chain, and say which work, which fail, and what to do
    Doctor(DoctorArgs),
    /// Serve state proofs and witnesses beside a stock node, from the files in which it keeps its states
    Sidecar(SidecarArgs),
    /// Check headers, blocks, receipts or account proofs offline; report what they prove or which check fails
    Verify(VerifyArgs),
    /// Write a recording of an upstream
    Record(RecordArgs),
    /// Serve as one of several front ends of one service: proven answers from backends, over a store that all share
    #[cfg(feature = "cluster")]
    Serve(ServeArgs),
    /// Load blocks, transactions, receipts and logs into PostgreSQL, and keep them at the chain's head
    #[cfg(feature = "cluster")]
    Index(IndexArgs),
    /// Make, list, revoke and limit the API keys of a server
    Keys(KeysArgs),
    /// List the JSON-RPC methods
    Methods {
        /// Print the table as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell that reads the script
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands into a folder
    #[command(after_help = MAN_HELP)]
    Man {
        /// Write rootlight.1, rootlight-light.1 and the others into this folder
        #[arg(long, value_name = "DIR")]
        out_dir: Option<PathBuf>,
    },
}

const COMPLETIONS_HELP: &str = "\
Examples:
  rootlight completions bash > ~/.local/share/bash-completion/completions/rootlight
  rootlight completions zsh > ~/.zfunc/_rootlight
  rootlight completions fish > ~/.config/fish/completions/rootlight.fish";

const MAN_HELP: &str = "\
Examples:
  rootlight man | man -l -
  rootlight man --out-dir ~/.local/share/man/man1";

/// Flags of `dev`.
#[derive(Debug, Clone, Args)]
pub struct DevArgs {
    /// When to mine: 0 mines a block for each transaction, S one block every S seconds, manual only on
    /// request
    #[arg(long, value_name = "S|0|manual", default_value = "0")]
    pub block_time: String,
    /// Number of funded accounts
    #[arg(long, value_name = "N", default_value_t = rootlight::dev::DEFAULT_ACCOUNTS)]
    pub accounts: u32,
    /// Balance of each account, in RBTC [default: 10000]
    #[arg(long, value_name = "RBTC")]
    pub balance: Option<String>,
    /// Mnemonic that the account keys are derived from [default: the one of anvil and hardhat]
    #[arg(long, value_name = "WORDS")]
    pub mnemonic: Option<String>,
    /// Apply only the rules up to this network upgrade, wasabi100 or later [default: all rules]
    #[arg(long, value_name = "NAME")]
    pub hardfork: Option<String>,
    /// Another genesis block: regtest is exactly the reference node's, a file gives the allocation
    #[arg(long, value_name = "regtest|FILE")]
    pub genesis: Option<String>,
    /// Timestamp of block 0, for chains that shall be the same each time [default: the present, or that of the
    /// stored chain]
    #[arg(long, value_name = "SECONDS", conflicts_with = "genesis", value_parser = clap::value_parser!(u64).range(..=LAST_TIME))]
    pub genesis_time: Option<u64>,
    /// Answer with an error when a transaction that is mined at once reverts or halts, as rskj does, instead of
    /// its hash
    #[arg(long)]
    pub reject_failing: bool,
    /// What web3_clientVersion answers; the network helpers of hardhat work only if it begins with "anvil" [default:
    /// anvil/Rootlight/VERSION]
    #[arg(long, value_name = "TEXT")]
    pub client_version: Option<String>,
    /// Begin on a block of another network, whose state and blocks are fetched as they are read: of mainnet or testnet, by
    /// nodes of its peer-to-peer network; or of the network of a URL. Repeat the flag to name a network and its URLs or
    /// nodes, or several URLs
    #[arg(
        long,
        value_name = "mainnet|testnet|URL|ID@HOST:PORT",
        conflicts_with_all = ["genesis", "genesis_time", "hardfork", "bitcoin_chain", "p2p_port"]
    )]
    pub fork: Vec<String>,
    /// The block to begin on: a number, whose hash is linked to the verified head once and kept, or a number with its hash,
    /// which is trusted [default: the newest verified block]
    #[arg(long, value_name = "N|N:HASH", requires = "fork", value_parser = super::fork_block::block)]
    pub fork_block: Option<ForkBlock>,
    /// Accept state that no upstream proves: what the first upstream says, or what N upstreams agree on; the client version
    /// says so then
    #[arg(long, value_name = "refuse|quorum:N|trust", default_value = "refuse", requires = "fork")]
    pub unproven: UnprovenPolicy,
    /// Chain id, at most 109, because Rootstock's transactions have one byte for it and for the parity of the signature; the
    /// Bridge's constants follow it [default: that of the network that --fork names; 33 without --fork]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "genesis",
        value_parser = clap::value_parser!(u64).range(1..=rootlight::dev::MAX_CHAIN_ID)
    )]
    pub chain_id: Option<u64>,
    /// Store the chain in this folder; it survives a crash. With --fork, what was read of the network is stored there, and
    /// nothing else [default with --fork: a folder below the user's caches; none stores nothing]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Number of blocks below the head whose states are kept
    #[arg(long, value_name = "N", default_value_t = rootlight::dev::DEFAULT_HISTORY)]
    pub history: u64,
    /// Leave mining to an external miner (mnr_getWork, mnr_submitBitcoinBlock)
    #[arg(long)]
    pub merge_mining: bool,
    /// Make a Bitcoin chain on whose blocks this chain is mined, and serve it by the protocols of Esplora and Electrum; the
    /// Bitcoin header of every N-th block becomes a Bitcoin block [default: 20]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["data_dir", "merge_mining"]
    )]
    pub bitcoin_chain: Option<u32>,
    /// Flags of calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Flags of the peer-to-peer network.
    #[command(flatten)]
    pub peers: PeerArgs,
    /// Flags of the server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `follow`.
#[derive(Debug, Clone, Args)]
pub struct FollowArgs {
    /// regtest, or a JSON file with network parameters and a genesis
    #[arg(long, value_name = "regtest|FILE", default_value = "regtest")]
    pub network: String,
    /// Source of blocks: an http(s) URL, or replay:PATH for a recording
    #[arg(long, value_name = "URL|replay:PATH")]
    pub upstream: String,
    /// Store the chain in this folder, and continue from it
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Number of blocks below the head whose states are kept [default: all]
    #[arg(long, value_name = "N")]
    pub history: Option<u64>,
    /// Flags of calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Flags of the peer-to-peer network.
    #[command(flatten)]
    pub peers: PeerArgs,
    /// Flags of the server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of `light`.
#[derive(Debug, Args)]
#[command(after_help = LIGHT_HELP)]
pub struct LightArgs {
    /// Flags of the light client.
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Answers that no upstream can prove: refuse them, accept what N upstreams under different domains agree
    /// on, or trust the best upstream; accepted answers are marked "level":"unproven"
    #[arg(long, value_name = "refuse|quorum:N|trust", default_value = "refuse")]
    pub unproven: UnprovenPolicy,
    /// Flags of calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Flags of the server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of a chain that nodes of the peer-to-peer network can read.
#[derive(Debug, Clone, Default, Args)]
pub struct PeerArgs {
    /// Serve the chain to nodes of the peer-to-peer network, at this port of --host; 0 picks a free one. Nodes and light
    /// clients (rootlight light --peer) synchronize from it
    #[arg(long, value_name = "N")]
    pub p2p_port: Option<u16>,
}

const LIGHT_HELP: &str = "\
Examples:
  rootlight light                     follow mainnet by nodes of its peer-to-peer network, which are found
  rootlight light --upstream https://node.example/KEY
  rootlight light --network regtest --upstream replay:recording --checkpoint 0:0x8ea7... --http-port 0
  rootlight light --peer e3a2...c215@node.example:5050 --upstream https://node.example/KEY";

/// Flags of `sidecar`.
#[derive(Debug, Args)]
#[command(after_help = SIDECAR_HELP)]
pub struct SidecarArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// The node: an http(s) or ws(s) URL, or replay:PATH for a recording
    #[arg(long, value_name = "URL|replay:PATH", default_value = "http://127.0.0.1:4444")]
    pub node: String,
    /// The node's database folder (its database.dir), which holds unitrie; nothing is written there
    #[arg(long, value_name = "DIR")]
    pub rskj_db: PathBuf,
    /// Run calls, estimates and traces here, on the node's states, instead of passing them to the node
    #[arg(long)]
    pub execute: bool,
    /// Ask the node to write its newest states to disk (rsk_flush), at most once in so many seconds; 0 for never
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub flush: u64,
    /// Memory for what was read last of the node's store, in MiB: trie nodes, blocks of its files and their indexes
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub node_cache: u64,
    /// Refuse answers while the node's newest block is older than this many seconds by the local clock; 0
    /// accepts any age
    #[arg(long, value_name = "S", default_value_t = MAX_AGE)]
    pub max_age: u64,
    /// Flags of the server for nodes.
    #[command(flatten)]
    pub peers: PeerArgs,
    /// Keep the key among peers (node.key) in this folder, so that --p2p-port has the same id at every start
    #[arg(long, value_name = "DIR", requires = "p2p_port")]
    pub data_dir: Option<PathBuf>,
    /// Flags of calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Flags of the server. Always --profile hosted.
    #[command(flatten)]
    pub server: ServerArgs,
}

const SIDECAR_HELP: &str = "\
Examples:
  rootlight sidecar --rskj-db /var/lib/rsk/database/mainnet --http-port 4450
  rootlight sidecar --network testnet --rskj-db ~/.rsk/testnet/database --execute --flush 30
  rootlight sidecar --rskj-db /var/lib/rsk/database/mainnet --p2p-port 5051 --data-dir sidecar

The methods are those of --profile hosted. docs/runbook.md describes the node's configuration.";

impl Cli {
    /// The flags of the server that the command runs, if it runs one.
    pub(super) fn server(&self) -> Option<&ServerArgs> {
        match &self.command {
            None => Some(&self.dev.server),
            Some(Command::Dev(args)) => Some(&args.server),
            Some(Command::Follow(args)) => Some(&args.server),
            Some(Command::Light(args)) => Some(&args.server),
            Some(Command::Sidecar(args)) => Some(&args.server),
            #[cfg(feature = "cluster")]
            Some(Command::Serve(args)) => Some(&args.server),
            Some(_) => None,
        }
    }
}

/// Flags of `verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub struct VerifyArgs {
    /// Kind of data in the file
    #[arg(value_parser = subject_parser())]
    pub subject: DocumentSubject,
    /// File to check; - for standard input
    pub file: PathBuf,
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file of parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

fn subject_parser() -> impl TypedValueParser<Value = DocumentSubject> {
    PossibleValuesParser::new(DocumentSubject::ALL.map(DocumentSubject::name))
        .try_map(|name| DocumentSubject::by_name(&name).ok_or("not a subject"))
}

const VERIFY_HELP: &str = "\
Formats (a node's JSON may be the bare result or the whole JSON-RPC response):
  header   block or uncle JSON, or header RLP in hex; an array must hold consecutive headers
  block    block JSON with full transactions, or block RLP in hex,
           or {\"block\": ..., \"uncles\": [headers], \"receipts\": [all receipts]}
  receipt  {\"receipt\": JSON | \"rawReceipt\": hex, \"nodes\": [hex],
            \"receiptsRoot\": hash | \"header\": header, \"transactionIndex\": number}
  account  eth_getProof JSON with an added \"stateRoot\": hash | \"header\": header,
           or {\"proof\": eth_getProof JSON, \"stateRoot\" | \"header\": ...}

Examples:
  rootlight verify header block.json --network testnet
  curl -s $NODE -H 'content-type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBlockByNumber\",\"params\":[\"0x7ea9df\",true]}' | rootlight verify block -

Exit codes: 0 verified, 1 not verified, 2 wrong usage.";

/// Flags of `record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub struct RecordArgs {
    /// Node to record: an http(s) URL, or replay:PATH to cut a piece out of a recording
    #[arg(long, value_name = "URL")]
    pub upstream: String,
    /// Folder for the recording; it is created if needed, and files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// First block [default: 0]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub from: u64,
    /// Last block [default: the upstream's head]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Also record eth_getProof of this account at every block (repeatable)
    #[arg(long, value_name = "ADDRESS", value_parser = account)]
    pub account: Vec<String>,
    /// Storage slots to prove for every --account (repeatable)
    #[arg(long, value_name = "SLOT", requires = "account", value_parser = slot)]
    pub slot: Vec<String>,
    /// Compress the files (.jsonl.gz)
    #[arg(long)]
    pub gzip: bool,
}

/// The hexadecimal digits behind `0x`.
fn digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Checks the form of an account.
fn account(text: &str) -> Result<String, &'static str> {
    let account = digits(text).filter(|digits| digits.len() == 40);
    account.map(|_| text.to_owned()).ok_or("an account is 0x and 40 hexadecimal digits")
}

/// Checks the form of a storage slot.
fn slot(text: &str) -> Result<String, &'static str> {
    let slot = digits(text).filter(|digits| (1..=64).contains(&digits.len()));
    slot.map(|_| text.to_owned()).ok_or("a slot is 0x and at most 64 hexadecimal digits")
}

const RECORD_HELP: &str = "\
Writes {\"request\", \"response\"} as JSON lines, in one file for each kind: info, blocks, headers, uncles,
receipts, proofs. A file gets its name only when it is complete.

Example:
  rootlight record --upstream https://node.example/KEY --out recording --from 1000 --to 1100 \\
                   --account 0x0000000000000000000000000000000001000006";
