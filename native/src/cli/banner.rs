//! What a development chain prints when it starts.

use alloy_primitives::utils::format_ether;
use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, PrivateKey};

use super::serving::Endpoints;

/// Prints accounts, keys and endpoints.
pub(super) fn print(network: &Network, accounts: &DevAccounts, keys: &[PrivateKey], endpoints: &Endpoints) {
    println!("Rootlight {}: a Rootstock development chain", env!("CARGO_PKG_VERSION"));
    println!("\nAccounts (keys are public knowledge: never send anything of value to them)");
    let count = accounts.count as usize;
    for (index, key) in keys.iter().enumerate().take(count) {
        println!(
            "  ({index}) {:#x}  {}",
            key.address(),
            alloy_primitives::hex::encode_prefixed(key.to_bytes())
        );
    }
    println!("  {} RBTC each, m/44'/60'/0'/0/n of: {}", format_ether(accounts.balance), accounts.mnemonic);
    if keys.len() > count {
        println!("  and {} accounts of the reference node, see eth_accounts", keys.len() - count);
    }
    println!("\nChain id {} ({}), genesis {}", network.chain_id, network.name, network.genesis_hash);
    println!("HTTP       {}", endpoints.http);
    println!("WebSocket  {}", endpoints.websockets.join(", "));
    println!();
}
