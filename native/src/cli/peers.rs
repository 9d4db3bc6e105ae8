//! Flags of the peer-to-peer network: nodes as upstreams of a light client, and a local chain served to nodes.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use tracing::info;

use super::CommandError;
use super::args::{LightArgs, PeerArgs};
use crate::light::Start;
use crate::local::LocalService;
use crate::p2p::{Identity, LocalChain, PeerAddress, PeerServer, PeerUpstream, StateNodes};
use crate::upstream::SharedUpstream;

/// Starts to dial the nodes that `--peer` names; must be called inside a runtime.
pub(super) fn upstreams(
    args: &LightArgs,
    network: &Network,
    start: &Start,
) -> Result<Vec<SharedUpstream>, CommandError> {
    if args.peer.is_empty() {
        return Ok(Vec::new());
    }
    // A chain of tests may have another block 0 than its network's.
    let genesis = match start {
        Start::At(checkpoint) if checkpoint.number == 0 => checkpoint.hash,
        _ => network.genesis_hash,
    };
    let identity =
        Identity::open(network, genesis, args.data_dir.as_deref()).map_err(CommandError::failed)?;
    let (identity, network) = (Arc::new(identity), Arc::new(network.clone()));
    let nodes = Arc::new(StateNodes::default());
    let dial = |address: &PeerAddress| -> SharedUpstream {
        let (identity, network, nodes) = (identity.clone(), network.clone(), nodes.clone());
        Arc::new(PeerUpstream::new(identity, address.clone(), network, nodes))
    };
    Ok(args.peer.iter().map(dial).collect())
}

/// Serves a local chain to nodes if `--p2p-port` is given, until the value is dropped.
pub(super) async fn serve(
    service: &Arc<LocalService>,
    args: &PeerArgs,
    host: &str,
    folder: Option<&Path>,
) -> Result<Option<PeerServer>, CommandError> {
    let Some(port) = args.p2p_port else { return Ok(None) };
    let host: IpAddr = match host {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        host => host.parse().map_err(|_| {
            CommandError::Usage(format!("--host {host}: with --p2p-port it must be an IP address"))
        })?,
    };
    let read = service.read(|view| {
        let genesis: Option<B256> = view.header_by_number(0).ok().flatten().map(|header| header.hash());
        (view.network().clone(), genesis)
    });
    let (network, Some(genesis)) = read else {
        return Err(CommandError::failed("--p2p-port: the chain has no block 0"));
    };
    let identity = Arc::new(Identity::open(&network, genesis, folder).map_err(CommandError::failed)?);
    let id = *identity.id();
    let chain = Arc::new(LocalChain::new(service.clone()));
    let place = SocketAddr::new(host, port);
    let server = PeerServer::bind(identity, chain, place)
        .await
        .map_err(|error| CommandError::failed(format!("--p2p-port: {place}: {error}")))?;
    info!("peers find this chain at {id}@{}", server.address());
    Ok(Some(server))
}
