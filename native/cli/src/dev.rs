//! `rootlight dev`, the default command: makes the configuration of a development chain from the flags, and runs the chain
//! with its servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rootlight::dev::{DevAccounts, DevConfig, DevOptionError, DevOptions, Mining, rbtc};
use rootlight::engine::DevNode;
use rootlight_limits::files;
use rootlight_limits::io_words::of_path;
use rootlight_node::bitcoin_chain::{BitcoinServers, RegtestChain};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::scripts::EngineProgram;
use rootlight_node::store::{ChainPersistence, ChainStore};
use tracing::{error, info};

use super::args::DevArgs;
use super::error::{CommandError, DATA_DIR};
use super::fork::{self, OpenedFork};
use super::runtime::runtime;
use super::stop_signal::StopSignal;
use super::{banner, peers, run_server, verify};

/// Interval between checks of the clock. Blocks are mined on whole seconds, so a block is late by this interval at most.
const TICK: Duration = Duration::from_millis(200);

/// Longest genesis file, in bytes; bounds the memory that reading it takes.
const GENESIS_BYTES: u64 = 64 * 1024 * 1024;

/// Runs the development chain.
pub(super) fn run(args: &DevArgs, silent: bool) -> Result<(), CommandError> {
    let accounts = accounts(args)?;
    let entropy = Entropy::from_system().map_err(CommandError::failed)?;
    let genesis_time = genesis_time(args, host_input(&entropy).now)?;
    let runtime = runtime()?;
    let fork = match args.fork.is_empty() {
        true => None,
        false => Some(runtime.block_on(fork::open(args))?),
    };
    let config = match &fork {
        None => config(args, &accounts, genesis_time)?,
        Some(opened) => fork_config(args, &accounts, opened)?,
    };
    let history = config.history;
    let reference = args.genesis.as_deref() == Some("regtest");
    let shown = banner::ShownAccounts::of(&config, &accounts, reference);
    let mut node = node(config, fork.as_ref(), &entropy)?;
    let folder = args.data_dir.as_deref().filter(|_| fork.is_none());
    let persist = folder.map(|folder| restore(folder, &mut node, genesis_time, history)).transpose()?;
    let network = node.chain_mut().view().network().clone();
    let bitcoin = args.bitcoin_chain.map(|every| Arc::new(RegtestChain::new(every)));
    if let Some(bitcoin) = &bitcoin {
        node.chain_mut().set_bitcoin(bitcoin.clone());
    }
    let about = fork.as_ref().map(fork::describe).unwrap_or_default();
    let options = LocalOptions {
        fork: fork.map(|opened| Arc::new(opened.fork)),
        scripts: EngineProgram::this().ok(),
        ..LocalOptions::default()
    };
    let service = Arc::new(LocalService::new(Box::new(node), options, entropy, persist));
    runtime.block_on(async {
        let stop = StopSignal::listen();
        let bitcoin = match bitcoin {
            Some(chain) => Some(BitcoinServers::start(chain).await.map_err(CommandError::failed)?),
            None => None,
        };
        let announce = |endpoints: &run_server::Endpoints| {
            if !silent {
                banner::print(&network, &shown, (&about, endpoints), bitcoin.as_ref());
            }
        };
        // Dropping the value ends the server for peers.
        let _peers = peers::serve(&service, &args.peers, &args.server.host, args.data_dir.as_deref()).await?;
        let ticking = tokio::spawn(tick(service.clone()));
        let served = run_server::serve(service.clone(), &args.server, stop, announce).await;
        ticking.abort();
        service.stop();
        served
    })
}

/// The node of a chain on a fork or on a genesis block.
fn node(config: DevConfig, fork: Option<&OpenedFork>, entropy: &Entropy) -> Result<DevNode, CommandError> {
    match fork {
        None => DevNode::new(config, host_input(entropy)).map_err(CommandError::failed),
        Some(opened) => {
            opened.fork.node(|| config.clone(), host_input(entropy)).map_err(CommandError::failed)
        }
    }
}

/// Restores the chain that a folder stores, and stores its changes from then on.
fn restore(
    folder: &Path,
    node: &mut DevNode,
    genesis_time: u64,
    history: Option<u64>,
) -> Result<ChainPersistence, CommandError> {
    let genesis = node.chain_mut().view().head().hash();
    let open = ChainStore::opener_at(folder, genesis, genesis_time);
    let chain = node.chain_mut().local_mut();
    // `true`: a development chain's states may have been edited by hand.
    ChainPersistence::restore(open, chain, history, true)
        .map_err(|error| CommandError::of_flag(DATA_DIR, error))
}

/// Mines when a block is due, and notifies subscribers of changes. Each tick runs on a blocking thread, because mining
/// may take long.
async fn tick(service: Arc<LocalService>) {
    loop {
        tokio::time::sleep(TICK).await;
        let shared = service.clone();
        match tokio::task::spawn_blocking(move || shared.tick()).await {
            Ok(Ok(Err(failure))) => error!("no block: {failure}"),
            Ok(Err(failure)) => error!("no block: {failure}"),
            // A block was mined, none was due, or mining panicked.
            _ => {}
        }
    }
}

/// The accounts that the flags describe.
fn accounts(args: &DevArgs) -> Result<DevAccounts, CommandError> {
    let mut accounts = DevAccounts { count: args.accounts, ..DevAccounts::default() };
    if let Some(words) = &args.mnemonic {
        check_mnemonic(words)?;
        accounts.mnemonic.clone_from(words);
    }
    if let Some(balance) = &args.balance {
        accounts.balance = rbtc(balance).map_err(wrong("--balance"))?;
    }
    Ok(accounts)
}

/// Refuses a mnemonic with a word outside BIP-39's English list or with a wrong checksum, because a mistyped
/// word would derive other accounts.
fn check_mnemonic(words: &str) -> Result<(), CommandError> {
    let reason = match bip39::Mnemonic::parse_in_normalized(bip39::Language::English, words) {
        Ok(_) => return Ok(()),
        Err(bip39::Error::UnknownWord(index)) => {
            format!("word {} is not in BIP-39's English list", index.saturating_add(1))
        }
        Err(bip39::Error::InvalidChecksum) => "the checksum is wrong; a word is missing or mistyped".into(),
        Err(error) => error.to_string(),
    };
    Err(CommandError::Usage(format!("--mnemonic: {reason}")))
}

/// Converts an error of an option to a usage error that names its flag.
fn wrong(flag: &'static str) -> impl Fn(DevOptionError) -> CommandError {
    move |error| CommandError::Usage(format!("{flag}: {error}"))
}

/// Timestamp of block 0: the given one, that of the stored chain, or the present.
fn genesis_time(args: &DevArgs, now: u64) -> Result<u64, CommandError> {
    let stored = match &args.data_dir {
        Some(folder) => {
            ChainStore::genesis_time(folder).map_err(|error| CommandError::of_flag(DATA_DIR, error))?
        }
        None => None,
    };
    Ok(args.genesis_time.or(stored).unwrap_or(now))
}

/// The configuration of a chain with a genesis block of its own.
fn config(args: &DevArgs, accounts: &DevAccounts, genesis_time: u64) -> Result<DevConfig, CommandError> {
    if args.bitcoin_chain.is_some() && matches!(args.chain_id, Some(30 | 31)) {
        let reason = "the Bridge of chain ids 30 and 31 has the constants of Bitcoin's public networks: give another --chain-id";
        return Err(CommandError::Usage(format!("--bitcoin-chain: {reason}")));
    }
    let genesis = match args.genesis.as_deref() {
        Some(file) if file != "regtest" => Some(allocation(file)?),
        named => named.map(Into::into),
    };
    let options = DevOptions {
        accounts: accounts.clone(),
        hardfork: args.hardfork.as_deref(),
        genesis: genesis.as_deref(),
        genesis_time: Some(genesis_time),
        chain_id: args.chain_id,
        mining: Some(mining(args)?),
    };
    let config = options.config().map_err(|error| wrong(flag_of(&error))(error))?;
    Ok(with_flags(config, args))
}

/// The configuration of a chain that begins on a block of another network.
fn fork_config(
    args: &DevArgs,
    accounts: &DevAccounts,
    opened: &OpenedFork,
) -> Result<DevConfig, CommandError> {
    let options = DevOptions { accounts: accounts.clone(), ..DevOptions::default() };
    // Only the check of the accounts counts here; the fork makes the configuration.
    options.config().map_err(|error| wrong(flag_of(&error))(error))?;
    let mut network = opened.network.clone();
    network.chain_id = args.chain_id.unwrap_or(network.chain_id);
    let base = opened.fork.base();
    let above = || DevConfig::above(network.clone(), base.clone(), accounts);
    let mut config = opened.fork.run(above).map_err(CommandError::failed)?;
    config.mining = mining(args)?;
    config.version.push_str(if opened.is_unproven { "+unproven-fork" } else { "+fork" });
    Ok(with_flags(config, args))
}

/// The configuration with the flags that every chain has.
fn with_flags(mut config: DevConfig, args: &DevArgs) -> DevConfig {
    config.policy = args.calls.policy();
    config.report_reverts = args.reject_failing;
    config.history = Some(args.history);
    if let Some(version) = &args.client_version {
        config.version.clone_from(version);
    }
    config
}

/// The flag whose value causes an error.
fn flag_of(error: &DevOptionError) -> &'static str {
    match error {
        DevOptionError::Mnemonic => "--mnemonic",
        DevOptionError::Accounts(_) => "--accounts",
        DevOptionError::Genesis(_) => "--genesis",
        DevOptionError::ChainId => "--chain-id",
        // `Hardfork`: the errors of --balance and --block-time are reported where these flags are read.
        _ => "--hardfork",
    }
}

/// When the chain mines.
fn mining(args: &DevArgs) -> Result<Mining, CommandError> {
    if args.merge_mining {
        info!("blocks come from an external miner: mnr_getWork and mnr_submitBitcoinBlock");
        return Ok(Mining::Manual);
    }
    Mining::from_block_time(&args.block_time).map_err(wrong("--block-time"))
}

/// Reads an allocation file in the reference node's format.
fn allocation(file: &str) -> Result<String, CommandError> {
    let failed = |reason: String| CommandError::Usage(format!("--genesis {file:?}: {reason}"));
    let bytes = files::read(Path::new(file), GENESIS_BYTES).map_err(|error| failed(of_path(&error)))?;
    verify::json_text(bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mnemonic_with_a_wrong_word_or_checksum_is_refused() {
        assert!(check_mnemonic(rootlight::dev::DEFAULT_MNEMONIC).is_ok());
        let abandon = "abandon ".repeat(11);
        assert!(check_mnemonic(&format!("  {abandon}about\n")).is_ok());
        for (words, reason) in [
            (format!("{abandon}abandon"), "checksum"),
            (format!("abandon abandn {}", "abandon ".repeat(10)), "word 2 is not in"),
            ("abandon about".into(), "word count"),
            (String::new(), "word count"),
        ] {
            let error = check_mnemonic(&words).unwrap_err();
            let CommandError::Usage(text) = &error else { panic!("{error:?}") };
            assert!(text.starts_with("--mnemonic: ") && text.contains(reason), "{text}");
        }
    }
}
