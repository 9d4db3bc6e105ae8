//! Opens the sources of Bitcoin's chain that `--bitcoin` names, for a light client or for `rootlight doctor`.

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight_upstream::UrlError;
use rootlight_upstream::bitcoin::{BitcoinSource, BitcoinSourceConfig, public_sources};

use super::error::CommandError;

/// The value of `--bitcoin` that turns all sources off.
const OFF: &str = "off";

/// Opens the sources that the user names, or else the public ones of the network. Opening a source sends nothing.
pub(super) fn sources(
    named: &[String],
    network: &Network,
    config: &BitcoinSourceConfig,
) -> Result<Vec<Arc<BitcoinSource>>, CommandError> {
    if named.iter().any(|url| url == OFF) {
        let alone = named.len() == 1;
        return if alone { Ok(Vec::new()) } else { Err(usage("--bitcoin off stands alone".into())) };
    }
    if !named.is_empty() && network.bitcoin.is_none() {
        return Err(usage(format!(
            "--bitcoin: which Bitcoin chain the miners of network {} follow is not known, so its chain cannot be judged by it; \
             leave the flag out",
            network.name
        )));
    }
    let open = |url: &str| {
        let source = BitcoinSource::open_with(url, config.clone());
        let wrong = |error: UrlError| {
            usage(format!(
                "--bitcoin: {}; docs/light.md names the forms, such as https://HOST or ssl://HOST:PORT",
                error.reason
            ))
        };
        source.map(Arc::new).map_err(wrong)
    };
    match named {
        [] => public_sources(network).iter().map(|url| open(url)).collect(),
        named => named.iter().map(|url| open(url)).collect(),
    }
}

fn usage(text: String) -> CommandError {
    CommandError::Usage(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_sources_are_asked_unless_others_are_named_or_none_is_wanted() {
        let count = |named: &[&str], network: &Network| {
            let named: Vec<String> = named.iter().map(|url| (*url).to_owned()).collect();
            sources(&named, network, &BitcoinSourceConfig::default())
                .map(|sources| sources.len())
                .map_err(|error| error.to_string())
        };
        let (mainnet, testnet) = (Network::mainnet(), Network::testnet());
        assert!(count(&[], &mainnet).unwrap() > 3);
        assert_eq!(count(&["off"], &mainnet), Ok(0));
        assert_eq!(count(&["tcp://127.0.0.1:1", "http://127.0.0.1:2"], &mainnet), Ok(2));
        assert_eq!(count(&["tcp://127.0.0.1:1"], &Network::regtest()), Ok(1));
        assert_eq!((count(&[], &testnet), count(&["off"], &testnet)), (Ok(0), Ok(0)));
        assert!(count(&["tcp://127.0.0.1:1"], &testnet).unwrap_err().contains("testnet"));
        assert!(count(&["off", "tcp://127.0.0.1:1"], &mainnet).unwrap_err().contains("alone"));
        assert!(count(&["ftp://user:secret@host"], &mainnet).is_err_and(|error| !error.contains("secret")));
    }
}
