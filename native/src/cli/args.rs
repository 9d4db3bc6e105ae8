//! Flags and help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::server::{Origins, ServerConfig};

/// Port of the reference node's HTTP server.
const HTTP_PORT: u16 = 4444;
/// Port of the reference node's WebSocket server.
const WS_PORT: u16 = 4445;

/// Rootstock light client: proven answers over JSON-RPC.
#[derive(Debug, Parser)]
#[command(name = "rootlight", version, about, after_help = EXAMPLES, subcommand_precedence_over_arg = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of all commands.
    #[command(flatten)]
    pub common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  rootlight record --upstream http://127.0.0.1:4444 --out recording --from 0 --to 100
                                      write a recording that --upstream replay:recording reads

Exit codes: 0 ok, 1 failed, 2 wrong usage.
Every flag can also be given as environment variable ROOTLIGHT_<FLAG> (dashes as underscores) or
as key of a TOML file (--config): keys at the top level, or under [light], [record] ... for one command.";

/// Flags of all commands.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Read flags from a TOML file; flags and environment variables win over it
    #[arg(long, global = true, value_name = "FILE", env = "ROOTLIGHT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print nothing but results and errors
    #[arg(long, global = true, env = "ROOTLIGHT_SILENT")]
    pub silent: bool,
    /// Write log lines as JSON
    #[arg(long, global = true, env = "ROOTLIGHT_JSON_LOG")]
    pub json_log: bool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Write a recording of an upstream
    Record(RecordArgs),
}

/// Flags of the server.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Port for HTTP and WebSocket; 0 picks a free one
    #[arg(long, value_name = "N", env = "ROOTLIGHT_HTTP_PORT")]
    pub http_port: Option<u16>,
    /// Another port for WebSocket [default: 4445; none where --http-port is given]
    #[arg(long, value_name = "N", env = "ROOTLIGHT_WS_PORT")]
    pub ws_port: Option<u16>,
    /// Address to listen on; on loopback, requests for foreign host names are refused
    #[arg(long, value_name = "H", default_value = "127.0.0.1", env = "ROOTLIGHT_HOST")]
    pub host: String,
    /// Web page origins that may call, separated by commas; * for all
    #[arg(long, value_name = "LIST", default_value = "*", env = "ROOTLIGHT_CORS")]
    pub cors: String,
}

impl ServerArgs {
    /// The server these flags ask for.
    #[must_use]
    pub fn config(&self) -> ServerConfig {
        ServerConfig {
            host: self.host.clone(),
            http_port: self.http_port.unwrap_or(HTTP_PORT),
            // Somebody who moves the main port (or lets the system pick one) wants no fixed second one.
            ws_port: self.ws_port.or(self.http_port.is_none().then_some(WS_PORT)),
            origins: Origins::parse(&self.cors),
            limits: crate::server::Limits::default(),
        }
    }
}

/// Flags of `record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub struct RecordArgs {
    /// Node to record: an http(s) URL, or replay:PATH to cut a piece out of a recording
    #[arg(long, value_name = "URL", env = "ROOTLIGHT_UPSTREAM")]
    pub upstream: String,
    /// Folder for the recording; created if needed, files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// First block [default: 0]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub from: u64,
    /// Last block [default: the upstream's head]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Also record eth_getProof of this account at every block (repeat)
    #[arg(long, value_name = "ADDRESS")]
    pub account: Vec<String>,
    /// Storage slots to prove with every --account (repeat)
    #[arg(long, value_name = "SLOT", requires = "account")]
    pub slot: Vec<String>,
    /// Compress the files (.jsonl.gz)
    #[arg(long)]
    pub gzip: bool,
}

const RECORD_HELP: &str = "\
Writes JSON lines of {\"request\", \"response\"} in files by kind: info, blocks, headers, uncles,
receipts, proofs. Each file appears under its name only when it is complete.

Example:
  rootlight record --upstream https://node.example/KEY --out recording --from 1000 --to 1100 \\
                   --account 0x0000000000000000000000000000000001000006";
