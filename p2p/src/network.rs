//! Rootstock's networks as peers know them: the number of each, its port, and the first nodes to connect to. The nodes are those of
//! November 2026.

use alloy_primitives::U256;
use rootlight::consensus::Network;

/// A network of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerNetwork {
    /// The number of the network in STATUS and in discovery datagrams. It is not the chain id.
    pub id: u64,
    /// The default port of nodes, for TCP and UDP.
    pub port: u16,
    /// Hosts that answer discovery. Their node ids are not listed here: the signatures of their answers show them.
    pub boot_hosts: &'static [&'static str],
    /// Nodes that Rootstock runs with snapshot service, each as `ID@HOST:PORT`. Few other nodes serve state.
    pub state_servers: &'static [&'static str],
    /// Difficulty of block 0.
    genesis_difficulty: u64,
}

const MAINNET: PeerNetwork = PeerNetwork {
    id: 775,
    port: 5050,
    boot_hosts: &[
        "bootstrap01.rsk.co",
        "bootstrap02.rsk.co",
        "bootstrap03.rsk.co",
        "bootstrap04.rsk.co",
        "bootstrap05.rsk.co",
        "bootstrap06.rsk.co",
        "bootstrap07.rsk.co",
        "bootstrap08.rsk.co",
        "bootstrap09.rsk.co",
        "bootstrap10.rsk.co",
        "bootstrap11.rsk.co",
        "bootstrap12.rsk.co",
        "bootstrap13.rsk.co",
        "bootstrap14.rsk.co",
        "bootstrap15.rsk.co",
        "bootstrap16.rsk.co",
    ],
    state_servers: &[
        "e3a25521354aa99424f5de89cdd2e36aa9b9a96d965d1f7f47d876be0cdbd29c\
         7df327a74170f6a9ea44f54f6ab8ae0dae28e40bb89dbd572a617e2008cfc215\
         @snapshot-sync-use1-1.mainnet.rskcomputing.net:5050",
        "f0093935353f94c723a9b67d143ad62464aaf3c959dc05a87f00b637f9c73451\
         3493d53f7223633514ea33f2a685878620f0d002cabc05d7f37e6c152774d5da\
         @snapshot-sync-euw2-1.mainnet.rskcomputing.net:5050",
    ],
    genesis_difficulty: 0x0010_0000,
};

const TESTNET: PeerNetwork = PeerNetwork {
    id: 8100,
    port: 50505,
    boot_hosts: &[
        "bootstrap01.testnet.rsk.co",
        "bootstrap02.testnet.rsk.co",
        "bootstrap03.testnet.rsk.co",
        "bootstrap04.testnet.rsk.co",
        "bootstrap05.testnet.rsk.co",
        "bootstrap06.testnet.rsk.co",
        "bootstrap07.testnet.rsk.co",
        "bootstrap08.testnet.rsk.co",
    ],
    state_servers: &[
        "137eb4328a7c2298e26dd15bba4796a7cc30b5097f8a14b384c8dc78caab49fa\
         c7a897c39a5a7e87838ac6dc1a80b94891d274a85ac76e7342d66e8a9ed26bf5\
         @snapshot-sync-euw1-1.testnet.rskcomputing.net:50505",
        "fcbfbfce93671320d32ab36ab04ae1564a31892cba219f0a489337aad105dcfc\
         0ebe7d7c2b109d1f4462e8e80588d8ef639b6f321cc1a3f51ec072bed3438105\
         @snapshot-sync-usw2-1.testnet.rskcomputing.net:50505",
    ],
    genesis_difficulty: 0x0010_0000,
};

const REGTEST: PeerNetwork =
    PeerNetwork { id: 7771, port: 50501, boot_hosts: &[], state_servers: &[], genesis_difficulty: 1 };

impl PeerNetwork {
    /// The network of peers that have this chain; `None` for another chain than mainnet, testnet and regtest.
    #[must_use]
    pub fn of(network: &Network) -> Option<Self> {
        let known = [("mainnet", MAINNET), ("testnet", TESTNET), ("regtest", REGTEST)];
        let (name, peers) = known.into_iter().find(|(name, _)| network.name == *name)?;
        // A network file may give one of these names to another chain, so block 0 must be the same. A regtest chain may have any
        // block 0.
        let builtin = Network::by_name(name)?;
        (builtin.genesis_hash == network.genesis_hash || peers.id == REGTEST.id).then_some(peers)
    }

    /// Difficulty of block 0, which a node that has only block 0 states as its total difficulty.
    pub fn genesis_difficulty(&self) -> U256 {
        U256::from(self.genesis_difficulty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_ids_of_the_reference() {
        let id = |network: &Network| PeerNetwork::of(network).map(|peers| (peers.id, peers.port));
        assert_eq!(id(&Network::mainnet()), Some((775, 5050)));
        assert_eq!(id(&Network::testnet()), Some((8100, 50505)));
        assert_eq!(id(&Network::regtest()), Some((7771, 50501)));
        let servers =
            |network: &Network| PeerNetwork::of(network).map_or(0, |peers| peers.state_servers.len());
        let networks = [Network::mainnet(), Network::testnet(), Network::regtest()];
        assert_eq!(networks.each_ref().map(servers), [2, 2, 0]);
        let mut renamed = Network::regtest();
        renamed.name = "mainnet".into();
        assert_eq!(id(&renamed), None);
    }
}
