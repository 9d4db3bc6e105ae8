//! The peer-to-peer network for the commands: nodes as upstreams of a light client (`--peer`, `--discovery`), and a chain that is
//! served to nodes (`--p2p-port`).

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight_limits::Limits;
use rootlight_node::light::LightStart;
use rootlight_node::local::LocalService;
use rootlight_node::peer_server::{LocalChain, PeerServer, SharedChain};
use rootlight_server::service::Service as _;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::p2p::find::{Finder, FinderOptions, NodeList, SlotOptions, start_slots};
use rootlight_upstream::p2p::{Identity, IdentityError, PeerAddress, PeerUpstream, StateNodes};
use tracing::{info, warn};

use super::args::PeerArgs;
use super::discovery;
use super::error::{CommandError, DATA_DIR};
use super::header_folder::{self, HeaderFolder};
use super::source_args::SourceArgs;

/// The upstreams for the nodes of `--peer`, and for discovered nodes if the flags ask for them; must be called inside a runtime.
pub(super) async fn upstreams(
    args: &SourceArgs,
    network: &Network,
    start: &LightStart,
    limits: &Arc<Limits>,
) -> Result<Vec<SharedUpstream>, CommandError> {
    let finds_nodes = discovery::is_wanted(args);
    if args.peer.is_empty() && !finds_nodes {
        return Ok(Vec::new());
    }
    // A test's chain may have another block 0 than its network.
    let genesis = match start {
        LightStart::At(checkpoint) if checkpoint.number == 0 => checkpoint.hash,
        _ => network.genesis_hash,
    };
    let identity = identity(network, genesis, header_folder::named(args))?;
    let (identity, network) = (Arc::new(identity.within(limits.clone())), Arc::new(network.clone()));
    let nodes = Arc::new(StateNodes::default());
    let dial = |address: &PeerAddress| -> SharedUpstream {
        let (identity, network, nodes) = (identity.clone(), network.clone(), nodes.clone());
        Arc::new(PeerUpstream::new(identity, address.clone(), network, nodes))
    };
    let mut upstreams: Vec<SharedUpstream> = args.peer.iter().map(dial).collect();
    if finds_nodes {
        // Programs that share a folder overwrite each other's list of nodes, which does no harm: each list is as good.
        let folder = HeaderFolder::of(args.data_dir.as_deref(), start, &network);
        let finder = discovery::start(&args.finding, &network, folder.path()).await?;
        let avoid = args.peer.iter().map(|peer| peer.id).collect();
        let options = SlotOptions { count: args.peers.into(), identity, avoid, network, nodes };
        upstreams.extend(start_slots(finder, options));
    }
    Ok(upstreams)
}

/// This program's identity towards nodes; its key is stored in the folder of `--data-dir`, if there is one.
pub(super) fn identity(
    network: &Network,
    genesis: B256,
    folder: Option<&Path>,
) -> Result<Identity, CommandError> {
    Identity::open(network, genesis, folder).map_err(|error| match error {
        IdentityError::File { .. } => CommandError::of_flag(DATA_DIR, error),
        other => CommandError::failed(other),
    })
}

/// The server of a chain for nodes, and the responses by which nodes find the server; both end when this is dropped.
pub(super) struct ServedChain {
    _server: PeerServer,
    _finder: Option<Finder>,
}

/// Serves a local chain to nodes if `--p2p-port` is given, until the value is dropped.
pub(super) async fn serve(
    service: &Arc<LocalService>,
    args: &PeerArgs,
    host: &str,
    folder: Option<&Path>,
) -> Result<Option<ServedChain>, CommandError> {
    let Some(port) = args.p2p_port else { return Ok(None) };
    let read = service.read(|view| {
        let genesis: Option<B256> = view.header_by_number(0).ok().flatten().map(|header| header.hash());
        (view.policy().network.clone(), genesis)
    });
    let (network, Some(genesis)) = read else {
        return Err(CommandError::failed("--p2p-port: the chain has no block 0"));
    };
    let identity = identity(&network, genesis, folder)?.within(service.counts().limits);
    let chain = Arc::new(LocalChain::new(service.clone()));
    serve_chain(chain, identity, &network, (host, port)).await.map(Some)
}

/// Serves a chain to nodes at this port of `--host`, until the value is dropped.
pub(super) async fn serve_chain(
    chain: SharedChain,
    identity: Identity,
    network: &Network,
    (host, port): (&str, u16),
) -> Result<ServedChain, CommandError> {
    let host: IpAddr = match host {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        host => host.parse().map_err(|_| {
            CommandError::Usage(format!("--host {host}: with --p2p-port it must be an IP address"))
        })?,
    };
    let (id, identity) = (*identity.id(), Arc::new(identity));
    let address = SocketAddr::new(host, port);
    let server = PeerServer::bind(identity.clone(), chain, address)
        .await
        .map_err(|error| CommandError::failed(format!("--p2p-port: {address}: {error}")))?;
    info!("peers find this chain at {id}@{}", server.address());
    // Nodes that look for others ask at the same port over UDP.
    let peers = discovery::peer_network(network)?;
    let list = Arc::new(NodeList::open(peers.id, discovery::is_private(&peers), None));
    let options = FinderOptions { bind: server.address(), boot: Vec::new(), state_servers: Vec::new() };
    let finder = Finder::serve(&identity, options, list).await;
    let finder = finder.inspect_err(|error| {
        warn!("--p2p-port: no discovery: UDP port {}: {error}", server.address().port());
    });
    Ok(ServedChain { _server: server, _finder: finder.ok() })
}
