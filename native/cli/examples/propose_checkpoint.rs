//! `cargo xtask checkpoint`: proposes checkpoints of Rootstock's and of Bitcoin's chain that several sources confirm, and
//! writes them into the files of `src/consensus` that have the built-in ones.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::BitcoinNetwork;
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::propose::{
    BitcoinProposal, CheckpointProposal, DEPTH, ProposeOptions, SourceTextError, propose, propose_bitcoin,
    with_bitcoin_checkpoint, with_checkpoint,
};
use rootlight_upstream::bitcoin::{BitcoinSource, public_sources};
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};

/// Proposes checkpoints that all sources confirm.
#[derive(Parser)]
#[command(name = "cargo xtask checkpoint")]
struct Args {
    /// A source: an http(s) or ws(s) URL, or replay:PATH; give at least two, run by different owners
    #[arg(long, value_name = "URL|replay:PATH", required = true)]
    url: Vec<String>,
    /// A source of Bitcoin's chain, as of rootlight light; "off" leaves Bitcoin's checkpoint as it is [default: public
    /// sources of the network]
    #[arg(long, value_name = "URL|off")]
    bitcoin: Vec<String>,
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    network: String,
    /// The block to propose [default: the highest multiple of 1,000 that is deep enough]
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// Least number of blocks on top of it at every source
    #[arg(long, value_name = "N", default_value_t = DEPTH)]
    depth: u64,
    /// Write the checkpoints into src/consensus/checkpoint.rs and src/consensus/bitcoin/network.rs
    #[arg(long)]
    write: bool,
}

type Failure = Box<dyn Error>;

fn run(args: &Args) -> Result<(), Failure> {
    let network = match Network::by_name(&args.network) {
        Some(network) => network,
        None => Network::from_json(&fs::read_to_string(&args.network)?)?,
    };
    let open = |url: &String| upstream::open_with(url, HttpConfig::default());
    let sources: Vec<SharedUpstream> = args.url.iter().map(open).collect::<Result<_, _>>()?;
    let bitcoin = bitcoin_sources(args, &network)?;
    let options = ProposeOptions { number: args.number, depth: args.depth };
    let runtime = tokio::runtime::Runtime::new()?;
    let proposal = runtime.block_on(propose(&network, &sources, options))?;
    println!("{proposal}");
    let bitcoin = match network.bitcoin.filter(|_| !bitcoin.is_empty()) {
        Some(chain) => Some(runtime.block_on(propose_bitcoin(chain, &bitcoin, unix_time()))?),
        None => None,
    };
    if let Some(bitcoin) = &bitcoin {
        bitcoin.failures.iter().for_each(|failure| eprintln!("left out: {failure}"));
        let (from, to) = bitcoin.verified;
        println!("// {} sources; Bitcoin's headers {from} to {to} verified\n{bitcoin}", bitcoin.sources);
    }
    if args.write {
        write(&network, &proposal, bitcoin.as_ref())?;
    }
    Ok(())
}

fn bitcoin_sources(args: &Args, network: &Network) -> Result<Vec<Arc<BitcoinSource>>, Failure> {
    let named: Vec<&str> = args.bitcoin.iter().map(String::as_str).collect();
    let urls = match named[..] {
        [] => public_sources(network),
        ["off"] => &[],
        _ => &named,
    };
    Ok(urls.iter().map(|url| BitcoinSource::open(url).map(Arc::new)).collect::<Result<_, _>>()?)
}

/// Writes what is new.
fn write(
    network: &Network,
    proposal: &CheckpointProposal,
    bitcoin: Option<&BitcoinProposal>,
) -> Result<(), Failure> {
    change("checkpoint.rs", |text| with_checkpoint(text, &network.name, proposal))?;
    match bitcoin.filter(|_| network.bitcoin == Some(BitcoinNetwork::MAINNET)) {
        Some(bitcoin) => change("bitcoin/network.rs", |text| with_bitcoin_checkpoint(text, bitcoin)),
        None => Ok(()),
    }
}

/// Changes a file of `src/consensus`.
fn change(name: &str, edit: impl Fn(&str) -> Result<String, SourceTextError>) -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/consensus").join(name);
    match edit(&fs::read_to_string(&path)?) {
        Ok(text) => fs::write(&path, text)?,
        Err(error) => eprintln!("src/consensus/{name} stays as it is: {error}"),
    }
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
