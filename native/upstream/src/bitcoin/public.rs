//! The public sources of Bitcoin's chain that a light client uses by default.

use rootlight::consensus::Network;
use rootlight::consensus::bitcoin::BitcoinNetwork;

/// Public servers of several operators, as wallets list them. Two offer headers alone, the others coinbases too.
///
/// A source learns the address of the light client and the times of its requests, but not the requests of the light client's
/// callers.
const MAINNET: [&str; 6] = [
    "https://blockstream.info/api",
    "https://mempool.space/api",
    "ssl://electrum.blockstream.info:50002",
    "ssl://electrum.emzy.de:50002",
    "ssl://bitcoin.lu.ke:50002",
    "ssl://fulcrum.sethforprivacy.com:50002",
];

/// The sources that are asked if the user names none: those of the Bitcoin network whose miners also mine this Rootstock network.
#[must_use]
pub fn public_sources(network: &Network) -> &'static [&'static str] {
    if network.bitcoin == Some(BitcoinNetwork::MAINNET) { &MAINNET } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitcoin::BitcoinSource;

    #[test]
    fn mainnet_has_sources_of_headers_and_of_coinbases_and_other_networks_none() {
        let sources: Vec<_> =
            public_sources(&Network::mainnet()).iter().map(|url| BitcoinSource::open(url).unwrap()).collect();
        let coinbases = sources.iter().filter(|source| source.offers_coinbases()).count();
        assert_eq!((sources.len(), coinbases), (6, 4));
        for network in [Network::testnet(), Network::regtest(), Network::devnet()] {
            assert!(public_sources(&network).is_empty(), "{}", network.name);
        }
    }
}
