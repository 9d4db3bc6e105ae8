//! `rootlight dev`, which is also what runs without a command.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::U256;
use rootlight::consensus::{Fork, Network};
use rootlight::dev::{DevAccounts, DevConfig, Mining, Mnemonic};
use rootlight::engine::DevNode;
use rootlight::exec::GenesisBlock;
use tracing::{error, info};

use super::args::DevArgs;
use super::{banner, runtime, serving, verify, CommandError};
use crate::local::{moment, Entropy, LocalOptions, LocalService};
use crate::store::{Persist, Store};

/// Time between two looks at the clock; blocks come in whole seconds.
const TICK: Duration = Duration::from_millis(200);

/// Longest genesis file, bytes.
const GENESIS_BYTES: u64 = 64 * 1024 * 1024;

/// Runs the development chain.
pub(super) fn run(args: &DevArgs, silent: bool) -> Result<(), CommandError> {
    let accounts = accounts(args)?;
    let config = config(args, &accounts)?;
    let entropy = Entropy::from_system().map_err(CommandError::failed)?;
    let history = config.history;
    let keys = config.keys.clone();
    let mut node = DevNode::new(config, moment(&entropy)).map_err(CommandError::failed)?;
    let persist = match &args.data_dir {
        None => None,
        Some(folder) => {
            let genesis = node.chain_mut().view().head().hash();
            let store = Store::open(folder, genesis).map_err(CommandError::failed)?;
            let chain = node.chain_mut().local_mut();
            Some(Persist::restore(store, chain, history).map_err(CommandError::failed)?)
        }
    };
    let network = node.chain_mut().view().network().clone();
    let service = Arc::new(LocalService::new(Box::new(node), LocalOptions::default(), entropy, persist));
    runtime()?.block_on(async {
        let announce = {
            let accounts = accounts.clone();
            move |endpoints: &serving::Endpoints| {
                if !silent {
                    banner::print(&network, &accounts, &keys, endpoints);
                }
            }
        };
        let ticking = tokio::spawn(tick(service.clone()));
        let served = serving::serve(service.clone(), &args.server, announce).await;
        ticking.abort();
        served
    })
}

/// Mines by the clock, and tells what has happened.
async fn tick(service: Arc<LocalService>) {
    loop {
        tokio::time::sleep(TICK).await;
        let shared = service.clone();
        let ticked = tokio::task::spawn_blocking(move || {
            shared.with_node(|node| {
                let now = node.now();
                node.dev().map(|chain| chain.tick(now))
            })
        });
        match ticked.await {
            Ok(Ok(Some(Err(failure)))) => error!("no block: {failure}"),
            Ok(Err(failure)) => error!("{failure}"),
            _ => {}
        }
    }
}

fn accounts(args: &DevArgs) -> Result<DevAccounts, CommandError> {
    let mut accounts = DevAccounts { count: args.accounts, ..DevAccounts::default() };
    if let Some(words) = &args.mnemonic {
        if Mnemonic::new(words).is_none() {
            return Err(CommandError::Usage("--mnemonic: its keys are out of range, use other words".into()));
        }
        accounts.mnemonic = words.clone();
    }
    if let Some(balance) = &args.balance {
        accounts.balance = wei(balance)
            .ok_or_else(|| CommandError::Usage(format!("--balance {balance:?}: not a number of RBTC")))?;
    }
    Ok(accounts)
}

/// RBTC with up to 18 decimals, in wei.
fn wei(text: &str) -> Option<U256> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 18 || !digits(whole) || !digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<18}").parse().ok()
}

fn config(args: &DevArgs, accounts: &DevAccounts) -> Result<DevConfig, CommandError> {
    let network = match &args.hardfork {
        None => Network::regtest(),
        Some(name) => network_of(name)?,
    };
    let mut config = match args.genesis.as_deref() {
        None => DevConfig::on(network, accounts),
        Some("regtest") if args.hardfork.is_none() => DevConfig::reference(),
        Some("regtest") => DevConfig::from_genesis(network, GenesisBlock::regtest(), accounts.keys()),
        Some(file) => from_file(file, network, accounts)?,
    };
    config.policy = args.calls.policy();
    config.mining = mining(args)?;
    config.history = Some(args.history);
    config.version = format!("Rootlight/{}/{}/Rust/dev", env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    Ok(config)
}

fn mining(args: &DevArgs) -> Result<Mining, CommandError> {
    if args.merge_mining {
        info!("blocks come from an outside miner: mnr_getWork and mnr_submitBitcoinBlock");
        return Ok(Mining::Manual);
    }
    match args.block_time.as_str() {
        "0" => Ok(Mining::Instant),
        "manual" => Ok(Mining::Manual),
        text => match text.parse() {
            Ok(seconds) => Ok(Mining::Interval(seconds)),
            Err(_) => Err(CommandError::Usage(format!(
                "--block-time {text:?}: give seconds, 0 for a block per transaction, or manual"
            ))),
        },
    }
}

/// Regtest's rules up to and including a network upgrade.
fn network_of(name: &str) -> Result<Network, CommandError> {
    let position = |name: &str| Fork::ALL.iter().position(|fork| fork.name() == name);
    let first = position("wasabi100").unwrap_or(0);
    let Some(last) = position(name).filter(|at| *at >= first) else {
        let names: Vec<&str> = Fork::ALL.iter().skip(first).map(|fork| fork.name()).collect();
        let names = names.join(", ");
        return Err(CommandError::Usage(format!("--hardfork {name:?}: not one of {names}")));
    };
    let later: serde_json::Map<_, _> =
        Fork::ALL.iter().skip(last + 1).map(|fork| (fork.name().to_owned(), (-1).into())).collect();
    let file = serde_json::json!({ "name": "regtest", "hardforks": later }).to_string();
    Network::from_json(&file).map_err(CommandError::failed)
}

/// An allocation in the reference's format.
fn from_file(file: &str, mut network: Network, accounts: &DevAccounts) -> Result<DevConfig, CommandError> {
    let failed = |reason: String| CommandError::Usage(format!("--genesis {file:?}: {reason}"));
    let bytes = verify::read_file(std::path::Path::new(file), GENESIS_BYTES)
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| failed(error.to_string()))?;
    let genesis = GenesisBlock::from_json(&text, &network).map_err(|error| failed(error.to_string()))?;
    network.genesis_hash = genesis.header.hash();
    Ok(DevConfig::from_genesis(network, genesis, accounts.keys()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_are_decimal() {
        assert_eq!(wei("1"), Some(U256::from(10).pow(U256::from(18))));
        assert_eq!(wei("0.5"), Some(U256::from(5) * U256::from(10).pow(U256::from(17))));
        assert_eq!(wei("0.000000000000000001"), Some(U256::from(1)));
        for wrong in ["", ".5", "1e3", "-1", "1.0000000000000000001", "x"] {
            assert_eq!(wei(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn older_rules_end_where_they_should() {
        use rootlight::consensus::Rule;
        let network = network_of("iris300").unwrap();
        assert!(network.active(Rule::Rskip153, 1) && !network.active(Rule::Rskip398, 1));
        assert!(network_of("vetiver900").unwrap().active(Rule::Rskip544, 1));
        assert!(network_of("orchid").is_err() && network_of("london").is_err());
    }
}
