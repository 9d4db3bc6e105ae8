//! Discovery of nodes of the peer-to-peer network, as the flags describe it: whether nodes are to be found, and the hosts and
//! nodes that are asked first.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight_p2p::network::PeerNetwork;
use rootlight_upstream::p2p::PeerAddress;
use rootlight_upstream::p2p::find::{BootHost, FILE, Finder, FinderOptions, NodeList};
use tracing::info;

use super::error::CommandError;
use super::find_args::FindArgs;
use super::source_args::SourceArgs;

/// Whether nodes are to be found: the user names no node to ask, or gives --discovery.
pub(super) fn is_wanted(args: &SourceArgs) -> bool {
    args.discovery || (args.upstream.is_empty() && args.peer.is_empty())
}

/// The peer-to-peer network of a chain; an error if it has none.
pub(super) fn peer_network(network: &Network) -> Result<PeerNetwork, CommandError> {
    PeerNetwork::of(network).ok_or_else(|| {
        CommandError::Usage(format!(
            "network {} has no known peer-to-peer network (only mainnet, testnet and regtest have one): name a JSON-RPC \
             node with --upstream URL",
            network.name
        ))
    })
}

/// The hosts to begin with: those of the flags, else those of the network. The list may be empty only if `folder` has nodes of an
/// earlier run.
pub(super) fn boot_hosts(
    args: &FindArgs,
    network: &Network,
    folder: Option<&Path>,
) -> Result<Vec<BootHost>, CommandError> {
    let peers = peer_network(network)?;
    if !args.bootnode.is_empty() {
        return Ok(args.bootnode.clone());
    }
    let built_in =
        peers.boot_hosts.iter().map(|host| BootHost { host: (*host).to_owned(), port: peers.port });
    let built_in: Vec<BootHost> = built_in.collect();
    let has_stored_nodes = folder.is_some_and(|folder| folder.join(FILE).exists());
    if built_in.is_empty() && !has_stored_nodes {
        return Err(CommandError::Usage(format!(
            "network {} has no boot hosts to find nodes with: name one with --bootnode HOST:PORT, a node with --peer \
             ID@HOST:PORT, or a JSON-RPC node with --upstream URL",
            network.name
        )));
    }
    Ok(built_in)
}

/// Starts to find nodes, beginning with those that `folder` stores; must be called inside a runtime.
pub(super) async fn start(
    args: &FindArgs,
    network: &Network,
    folder: Option<&Path>,
) -> Result<Finder, CommandError> {
    let peers = peer_network(network)?;
    let boot = boot_hosts(args, network, folder)?;
    let accepts_private = args.allow_private_peers || is_private(&peers);
    let list = NodeList::open(peers.id, accepts_private, folder);
    info!(
        "finding nodes of the peer-to-peer network: {} known, {} boot hosts",
        list.nodes().len(),
        boot.len()
    );
    let state_servers = state_servers(args, &peers);
    let options = FinderOptions { bind: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), boot, state_servers };
    Finder::roam(options, Arc::new(list))
        .await
        .map_err(|error| CommandError::failed(format!("discovery: no UDP socket: {error}")))
}

/// The state servers to try first: those of the network, unless the user names other hosts to begin with.
pub(super) fn state_servers(args: &FindArgs, peers: &PeerNetwork) -> Vec<PeerAddress> {
    if !args.bootnode.is_empty() {
        return Vec::new();
    }
    // A test checks that each built-in text is an address.
    peers.state_servers.iter().filter_map(|server| server.parse().ok()).collect()
}

/// Whether the nodes of a network are at private addresses: those of a network without boot hosts, regtest.
pub(super) fn is_private(peers: &PeerNetwork) -> bool {
    peers.boot_hosts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_hosts_replace_those_of_the_network() {
        let hosts = |network: &Network, named: &[&str]| {
            let bootnode = named.iter().map(|text| text.parse().unwrap()).collect();
            let args = FindArgs { bootnode, ..FindArgs::default() };
            let hosts = boot_hosts(&args, network, None).map_err(|error| error.to_string())?;
            Ok::<_, String>(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let (mainnet, testnet) =
            (hosts(&Network::mainnet(), &[]).unwrap(), hosts(&Network::testnet(), &[]).unwrap());
        assert_eq!((mainnet.len(), mainnet[0].as_str()), (16, "bootstrap01.rsk.co:5050"));
        assert_eq!((testnet.len(), testnet[7].as_str()), (8, "bootstrap08.testnet.rsk.co:50505"));
        assert_eq!(hosts(&Network::mainnet(), &["one:1", "[::2]:2"]).unwrap(), ["one:1", "[::2]:2"]);
        assert_eq!(hosts(&Network::regtest(), &["127.0.0.1:7"]).unwrap(), ["127.0.0.1:7"]);
        assert!(hosts(&Network::regtest(), &[]).unwrap_err().contains("--bootnode"));
        assert!(hosts(&Network::devnet(), &["one:1"]).unwrap_err().contains("--upstream"));
    }

    #[test]
    fn the_state_servers_of_a_network_are_asked_unless_other_hosts_are_named() {
        let none = FindArgs::default();
        for network in [Network::mainnet(), Network::testnet()] {
            let peers = PeerNetwork::of(&network).unwrap();
            let servers = state_servers(&none, &peers);
            let written: Vec<String> = servers.iter().map(ToString::to_string).collect();
            assert_eq!(written, peers.state_servers);
            let domain = format!(".{}.rskcomputing.net", network.name);
            assert!(servers.iter().all(|server| server.host.ends_with(&domain) && server.port == peers.port));
            let named = FindArgs { bootnode: vec!["one:1".parse().unwrap()], ..FindArgs::default() };
            assert!(state_servers(&named, &peers).is_empty());
        }
    }
}
