//! What distinguishes Rootstock's networks between peers.

use alloy_primitives::U256;
use rootlight::consensus::Network;

/// What peers of a network say, and where the first ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerNetwork {
    /// The number of the network in STATUS and in discovery datagrams. It is not the chain id.
    pub id: u64,
    /// The port of nodes, for TCP and UDP.
    pub port: u16,
    /// Hosts that answer discovery. Their node ids are not known: they are learnt from signatures.
    pub boot_hosts: &'static [&'static str],
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
    genesis_difficulty: 0x0010_0000,
};

const REGTEST: PeerNetwork = PeerNetwork { id: 7771, port: 50501, boot_hosts: &[], genesis_difficulty: 1 };

impl PeerNetwork {
    /// The network of peers that have this chain; `None` for a chain whose peers are not known.
    #[must_use]
    pub fn of(network: &Network) -> Option<Self> {
        let known = [("mainnet", MAINNET), ("testnet", TESTNET), ("regtest", REGTEST)];
        let (name, peers) = known.into_iter().find(|(name, _)| network.name == *name)?;
        // A file may give a name of these networks to another chain. Chains of tests have any block 0.
        let own = Network::by_name(name)?;
        (own.genesis_hash == network.genesis_hash || peers.id == REGTEST.id).then_some(peers)
    }

    /// Difficulty of block 0, the total difficulty that a node without a chain announces.
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
        let mut renamed = Network::regtest();
        renamed.name = "mainnet".into();
        assert_eq!(id(&renamed), None);
    }
}
