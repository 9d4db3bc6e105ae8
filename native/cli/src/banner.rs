//! The text that a development chain prints at its start.

use alloy_primitives::U256;
use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, DevConfig, PrivateKey};
use rootlight::state::World;
use rootlight_node::bitcoin_chain::BitcoinServers;

use super::print::say;
use super::rbtc::in_rbtc;
use super::run_server::Endpoints;

/// The accounts that the banner lists, with their keys.
#[derive(Debug, Clone)]
pub(super) struct ShownAccounts {
    /// The keys, with each account's balance in block 0, in wei.
    accounts: Vec<(PrivateKey, U256)>,
    /// How the keys are derived, as text.
    origin: String,
    /// Number of accounts that the chain has keys for but the banner does not list.
    more: usize,
}

impl ShownAccounts {
    /// Lists all accounts of the reference node's genesis if `reference` says that the chain has this genesis, else those of
    /// the mnemonic.
    pub(super) fn of(config: &DevConfig, accounts: &DevAccounts, reference: bool) -> Self {
        let count = if reference { config.keys.len() } else { accounts.count as usize };
        let mut state = World::new(config.genesis.state.clone());
        let shown = config.keys.iter().take(count).map(|key| {
            let account = state.account(&key.address()).unwrap_or_default();
            (key.clone(), account.balance)
        });
        let origin = match reference {
            true => r#"keys are keccak-256 of "cow", "cow1" .. "cow9""#.to_owned(),
            false => format!("m/44'/60'/0'/0/n of: {}", accounts.mnemonic),
        };
        let accounts: Vec<_> = shown.collect();
        Self { more: config.keys.len().saturating_sub(accounts.len()), accounts, origin }
    }

    /// Returns the balance that all listed accounts share, or `None` if they differ.
    fn common_balance(&self) -> Option<U256> {
        let (_, first) = self.accounts.first()?;
        self.accounts.iter().all(|(_, balance)| balance == first).then_some(*first)
    }

    fn print(&self) {
        say!("\nAccounts (keys are public knowledge: never send anything of value to them)");
        let common = self.common_balance();
        for (index, (key, balance)) in self.accounts.iter().enumerate() {
            let key_text = alloy_primitives::hex::encode_prefixed(key.to_bytes());
            let own = match common {
                Some(_) => String::new(),
                None => format!("  {} RBTC", in_rbtc(*balance)),
            };
            say!("  ({index}) {:#x}  {key_text}{own}", key.address());
        }
        match common {
            Some(balance) => say!("  {} RBTC each, {}", in_rbtc(balance), self.origin),
            None => say!("  {}", self.origin),
        }
        if self.more > 0 {
            say!("  and {} accounts of the reference node, see eth_accounts", self.more);
        }
    }
}

/// Prints the banner; `about` are lines about the block on which a fork begins.
pub(super) fn print(
    network: &Network,
    accounts: &ShownAccounts,
    (about, endpoints): (&[String], &Endpoints),
    bitcoin: Option<&BitcoinServers>,
) {
    say!("Rootlight {}: a Rootstock development chain", env!("CARGO_PKG_VERSION"));
    about.iter().for_each(|line| say!("{line}"));
    accounts.print();
    say!("\nChain id {} ({}), genesis {}", network.chain_id, network.name, network.genesis_hash);
    say!("HTTP       {}", endpoints.http);
    say!("WebSocket  {}", endpoints.websockets.join(", "));
    if let Some(bitcoin) = bitcoin {
        say!("Bitcoin    {} (Esplora), {} (Electrum)", bitcoin.esplora(), bitcoin.electrum().join(", "));
    }
    say!();
}
