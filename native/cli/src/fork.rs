//! `rootlight dev --fork`: reads the flags of a fork, opens its upstreams, and finds the block on which the chain begins. `dev.rs`
//! runs the chain.

use std::path::{Path, PathBuf};

use rootlight::consensus::Network;
use rootlight::light::UnprovenPolicy;
use rootlight_limits::Limits;
use rootlight_node::fork::{Fork, ForkBlock, ForkOptions, ForkSource, stored_chain_id};
use rootlight_upstream::p2p::PeerAddressError;
use rootlight_upstream::{self as upstream, call};
use serde_json::json;
use tracing::info;

use super::args::DevArgs;
use super::error::CommandError;
use super::header_folder;
use super::source_args::SourceArgs;
use super::{light, peers};

/// The flag that error texts name.
const FORK: &str = "--fork";

/// A fork, and the network that it is of.
pub(super) struct OpenedFork {
    pub(super) fork: Fork,
    pub(super) network: Network,
    /// Whether state is accepted that no upstream proves (`--unproven`).
    pub(super) is_unproven: bool,
}

/// Opens the upstreams and the block on which the chain begins; must be called inside a runtime.
pub(super) async fn open(args: &DevArgs) -> Result<OpenedFork, CommandError> {
    let (names, others): (Vec<String>, Vec<String>) =
        args.fork.iter().cloned().partition(|text| Network::by_name(text).is_some());
    let (peers, urls): (Vec<String>, Vec<String>) = others.into_iter().partition(|text| is_peer(text));
    light::check_quorum(args.unproven, urls.len(), FORK)?;
    let block = args.fork_block.unwrap_or(ForkBlock::Head);
    let folder = folder(args.data_dir.as_deref());
    let stored_chain_id = folder.as_deref().and_then(|folder| stored_chain_id(folder, block));
    let network = match names.as_slice() {
        [] => match stored_chain_id.and_then(Network::by_chain_id) {
            Some(network) => network,
            None => network_of(&urls).await?,
        },
        [name] => super::verify::network(name)?,
        _ => return Err(CommandError::Usage("--fork: give one network, and URLs and peers of it".into())),
    };
    let peer = peers.iter().map(|text| text.parse()).collect::<Result<_, PeerAddressError>>();
    let peer = peer.map_err(|error| CommandError::Usage(format!("--fork: {error}")))?;
    let sources = SourceArgs { peer, ..SourceArgs::of(&network, urls.clone()) };
    // A chain of regtest has a block 0 of its own, at which the fork starts instead.
    let is_development = network.name == "regtest";
    let start = light::start_of(&sources, &network)?;
    let limits = Limits::new();
    let mut upstreams = light::open_upstreams(&sources, &network, &limits, FORK)?;
    upstreams.extend(peers::upstreams(&sources, &network, &start, &limits).await?);
    let shown: Vec<&str> = upstreams.iter().map(|upstream| upstream.name()).collect();
    info!("fork of {} (chain id {}), upstream {}", network.name, network.chain_id, shown.join(", "));
    let options = ForkOptions {
        start: (!is_development).then_some(start),
        folder,
        has_fixed_urls: args.server.admission.is_for_others(),
        ..ForkOptions::new(network.clone())
    };
    let fork = Fork::open(ForkSource::new(upstreams, args.unproven), options, urls, block).await;
    Ok(OpenedFork {
        fork: fork.map_err(|error| CommandError::of_flag(FORK, error))?,
        network,
        is_unproven: args.unproven != UnprovenPolicy::Refuse,
    })
}

/// Whether an argument names a node of the peer-to-peer network. URLs with a name and a password have an `@`, too.
fn is_peer(text: &str) -> bool {
    text.contains('@') && !text.contains("://")
}

/// The network whose chain id the first upstream states.
async fn network_of(urls: &[String]) -> Result<Network, CommandError> {
    let none = || CommandError::Usage("--fork: give a URL, or the network that the peers are of".into());
    let url = urls.first().ok_or_else(none)?;
    let upstream = upstream::open(url).map_err(|error| CommandError::of_upstream(FORK, error))?;
    let response = upstream.request(vec![call("eth_chainId", json!([]))]).await.into_iter().next();
    let failed = |reason: String| CommandError::failed(format!("--fork: {}: {reason}", upstream.name()));
    let response = response.ok_or_else(|| failed("no response".to_owned()))?;
    let text = response.map_err(|error| failed(error.to_string()))?;
    let id = text
        .get()
        .trim_matches('"')
        .strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    id.and_then(Network::by_chain_id)
        .ok_or_else(|| failed(format!("chain id {} is of no network that is known here", text.get())))
}

/// The folder that stores what a fork reads of its network: that of `--data-dir`, or one below the user's folder for caches.
fn folder(argument: Option<&Path>) -> Option<PathBuf> {
    match argument {
        Some(folder) if folder == Path::new("none") => None,
        Some(folder) => Some(folder.to_owned()),
        None => header_folder::usual().map(|folder| folder.join("fork")),
    }
}

/// The lines about a fork that the program prints when it starts.
pub(super) fn describe(opened: &OpenedFork) -> Vec<String> {
    let base = opened.fork.base();
    let (block, name) = (base.block(), &opened.network.name);
    let mut lines = vec![format!("Fork of {name} at block {} {}", block.number, block.hash())];
    lines.push(match opened.is_unproven {
        true => "UNPROVEN: its state is what the upstreams say (--unproven)".to_owned(),
        false => "Its state is proven, by trie nodes from the block's state root on".to_owned(),
    });
    // REMASC is the native contract that pays fees to miners, many blocks after the block that earned them.
    let first = base.first_rewarded_block();
    lines.push(match first <= block.number {
        true => format!(
            "REMASC pays the fees of blocks from {first} on; the headers of those below the fork are known"
        ),
        false => format!("REMASC pays the fees of blocks from {first} on, as on a new chain"),
    });
    lines
}
