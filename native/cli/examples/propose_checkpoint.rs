//! `cargo xtask checkpoint`: proposes a checkpoint that several sources confirm, to paste into
//! `src/consensus/checkpoint.rs`.

use std::process::ExitCode;

use clap::Parser;
use rootlight::consensus::Network;
use rootlight_node::light::propose::{DEPTH, ProposeOptions, propose};
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};

/// Proposes a checkpoint that all sources confirm.
#[derive(Parser)]
#[command(name = "cargo xtask checkpoint")]
struct Args {
    /// A source: an http(s) or ws(s) URL, or replay:PATH; give at least two, run by different owners
    #[arg(long, value_name = "URL|replay:PATH", required = true)]
    url: Vec<String>,
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    network: String,
    /// The block to propose [default: the highest multiple of 1,000 that is deep enough]
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// Least number of blocks on top of it at every source
    #[arg(long, value_name = "N", default_value_t = DEPTH)]
    depth: u64,
}

fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let network = match Network::by_name(&args.network) {
        Some(network) => network,
        None => Network::from_json(&std::fs::read_to_string(&args.network)?)?,
    };
    let open = |url: &String| upstream::open_with(url, HttpConfig::default());
    let sources: Vec<SharedUpstream> = args.url.iter().map(open).collect::<Result<_, _>>()?;
    let options = ProposeOptions { number: args.number, depth: args.depth };
    let runtime = tokio::runtime::Runtime::new()?;
    println!("{}", runtime.block_on(propose(&network, &sources, options))?);
    Ok(())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
