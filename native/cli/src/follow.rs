//! `rootlight follow`: opens or restores a chain, imports the blocks of an upstream into it in the background, and serves it.

use std::sync::Arc;

use rootlight::consensus::{Genesis, Network};
use rootlight::engine::{FollowNode, LocalNode as _};
use rootlight::exec::GenesisBlock;
use rootlight::local::{ImportError, Imported, LocalChain};
use rootlight::types::B256;
use rootlight_limits::Limits;
use rootlight_node::ban_guard::protect;
use rootlight_node::follow::{Fetched, FollowError, FollowOptions, FollowTarget, follow};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::scripts::EngineProgram;
use rootlight_node::store::{ChainPersistence, ChainStore};
use rootlight_server::service::Service as _;
use rootlight_upstream::{self as upstream, HttpConfig};
use tracing::{debug, error, info, warn};

use super::args::FollowArgs;
use super::error::{CommandError, DATA_DIR};
use super::runtime::runtime;
use super::stop_signal::StopSignal;
use super::{peers, run_server, verify};

/// Runs the command until a signal ends it, or until following fails.
pub(super) fn run(args: &FollowArgs) -> Result<(), CommandError> {
    let (network, genesis) = network(&args.network)?;
    let limits = Limits::new();
    let config = HttpConfig { limits: limits.clone(), ..HttpConfig::default() };
    let upstream = upstream::open_with(&args.upstream, config)
        .map_err(|error| CommandError::of_upstream("--upstream", error))?;
    let network = Arc::new(network);
    let mut chain = LocalChain::new(network.clone(), genesis.header, genesis.state, args.history)
        .map_err(CommandError::failed)?;
    let persist = match &args.data_dir {
        None => None,
        Some(folder) => {
            let open = ChainStore::opener(folder, network.genesis_hash);
            Some(
                // `false`: nothing but blocks changes a followed chain, so states that were edited by hand are refused.
                ChainPersistence::restore(open, &mut chain, args.history, false)
                    .map_err(|error| CommandError::of_flag(DATA_DIR, error))?,
            )
        }
    };
    let entropy = Entropy::from_system().map_err(CommandError::failed)?;
    let version = format!("Rootlight/{}/{}/Rust/follow", env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let node = FollowNode::new(chain, &version, upstream.name(), args.calls.policy(), host_input(&entropy));
    info!("following {} from block {}", upstream.name(), node.local().head().number);
    let scripts = EngineProgram::this().ok();
    let options = LocalOptions { limits, scripts, ..LocalOptions::follower() };
    let service = Arc::new(LocalService::new(Box::new(node), options, entropy, persist));
    if let Some(bans) = service.bans() {
        protect(&bans, std::slice::from_ref(&upstream));
    }
    runtime()?.block_on(async {
        let stop = StopSignal::listen();
        // Dropping the value ends the server for peers.
        let _peers = peers::serve(&service, &args.peers, &args.server.host, args.data_dir.as_deref()).await?;
        let target = Arc::new(Following(service.clone()));
        // Following is a task of its own, so that a long step of it does not delay new connections.
        let mut following =
            tokio::spawn(follow(target, upstream, network, FollowOptions::default(), |_| {}));
        let ended = tokio::select! {
            served = run_server::serve(service.clone(), &args.server, stop, |_| {}) => served,
            failure = &mut following => {
                let failure = failure.map_or_else(|panicked| panicked.to_string(), |failure| failure.to_string());
                error!("following ended: {failure}");
                Err(CommandError::failed(failure))
            }
        };
        following.abort();
        service.stop();
        ended
    })
}

/// Returns regtest, or the network and genesis of a file. The public networks are refused, because their
/// blocks need the whole Bridge.
fn network(name: &str) -> Result<(Network, GenesisBlock), CommandError> {
    if name == "regtest" {
        return Ok((Network::regtest(), GenesisBlock::regtest()));
    }
    if Network::by_name(name).is_some() {
        return Err(CommandError::Usage(format!(
            "--network {name}: following executes every block, and blocks of the public networks need parts of the Bridge \
             that are not simulated (peg-in, signing, federation change); use `rootlight light` for them"
        )));
    }
    let text = verify::network_text(name)?;
    let failed = |error: &dyn std::fmt::Display| CommandError::Usage(format!("--network {name:?}: {error}"));
    let (network, genesis) = Network::from_json_with_genesis(&text).map_err(|error| failed(&error))?;
    // A file without a genesis uses regtest's, with the native contracts that the file's rules have.
    let stated = genesis.is_some();
    let block = GenesisBlock::new(&genesis.unwrap_or_else(Genesis::regtest), &network);
    if !stated && block.header.hash() != network.genesis_hash {
        return Err(failed(&"the file has no genesis, whose state the first block is executed on"));
    }
    Ok((network, block))
}

/// Imports followed blocks into the service's chain.
struct Following(Arc<LocalService>);

impl FollowTarget for Following {
    fn head(&self) -> u64 {
        self.0.read(|chain| chain.head()).map_or(0, |head| head.number)
    }

    fn announced(&self, height: u64) {
        // The height is only shown to readers. Nothing is written, so no error can occur.
        let _ = self.0.with_node(|node| node.announced(height));
    }

    fn knows(&self, block: &B256) -> bool {
        self.0.read(|chain| chain.header_by_hash(*block)).is_ok_and(|header| header.is_some())
    }

    fn import(&self, blocks: Vec<Fetched>) -> Result<(), FollowError> {
        let imported = self.0.with_node(|node| {
            let now = node.now();
            blocks.into_iter().try_for_each(|Fetched { block, uncles }| {
                report(&node.import(block, Some(now))?);
                for uncle in uncles {
                    match node.import(uncle, Some(now)) {
                        Ok(imported) => report(&imported),
                        Err(error) => debug!("uncle not stored as a side block: {error}"),
                    }
                }
                Ok::<(), ImportError>(())
            })
        })?;
        Ok(imported?)
    }
}

/// Reports the calls of a block that were not simulated. The block's state is the one in its header all the same.
fn report(imported: &Imported) {
    for (index, method) in &imported.unsimulated {
        let number = imported.header.number;
        warn!(
            "block {number}: transaction {index} calls {method}, which is not simulated; its state and receipts match the \
             header, its traces and its witness are refused"
        );
    }
}

#[cfg(test)]
mod tests {
    use rootlight::dev::DevConfig;
    use rootlight::engine::DevNode;
    use rootlight::exec::CallPolicy;
    use rootlight::types::{Block, BlockBody};

    use super::*;

    /// Returns block 0 of a network file, or the error text.
    fn block_0(text: &str) -> Result<GenesisBlock, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        match network(file.path().to_str().unwrap()) {
            Ok((network, block)) => {
                assert_eq!(network.genesis_hash, block.header.hash());
                assert_eq!(block.state.root(), block.header.state_root);
                Ok(block)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_file_without_genesis_uses_the_regtest_genesis_with_its_own_rules() {
        let newest = block_0(r#"{"name":"x"}"#).unwrap();
        assert_eq!(newest.header.hash(), Network::regtest().genesis_hash);
        // The reference's block 0 with the rules of lovell700.
        let lovell = block_0(r#"{"name":"x","hardforks":{"reed800":-1}}"#).unwrap();
        let hash = "0x34c690850bc250af70fed1451eb398d8aee158acba5149ced64cdf0fc72603a2";
        assert_eq!(lovell.header.hash().to_string(), hash);
        let other = r#"{"name":"x","genesisHash":"HASH"}"#.replace("HASH", hash);
        assert!(block_0(&other).unwrap_err().contains("no genesis"));
        assert!(block_0(r#"{"name":"x","base":"testnet"}"#).unwrap_err().contains("no genesis"));
    }

    /// The driver asks for the head and for known blocks on a thread that also serves connections.
    #[test]
    fn the_driver_does_not_wait_for_messages_that_change_the_node() {
        let (network, genesis) = network("regtest").unwrap();
        let hash = network.genesis_hash;
        let chain = LocalChain::new(Arc::new(network), genesis.header, genesis.state, None).unwrap();
        let entropy = Entropy::from_system().unwrap();
        let node = FollowNode::new(chain, "test", "upstream", CallPolicy::default(), host_input(&entropy));
        let service = Arc::new(LocalService::new(Box::new(node), LocalOptions::follower(), entropy, None));
        let (asked, asks) = std::sync::mpsc::channel();
        let answer = service.with_node(|_| {
            let target = Following(service.clone());
            std::thread::spawn(move || {
                asked.send((target.head(), target.knows(&hash), target.knows(&B256::ZERO)))
            });
            asks.recv_timeout(std::time::Duration::from_secs(5))
        });
        assert_eq!(answer.unwrap(), Ok((0, true, false)));
    }

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A chain with a call of the Bridge's `registerBtcCoinbaseTransaction`, whose simulated checks it passes.
    async fn calls_the_bridge() -> LocalService {
        let entropy = Entropy::from_system().unwrap();
        let node = DevNode::new(DevConfig::reference(), host_input(&entropy)).unwrap();
        let service = LocalService::new(Box::new(node), LocalOptions::default(), entropy, None);
        let words = [160u64, 0, 192, 0, 0, 0, 6, 0].map(|word| format!("{word:064x}"));
        let transaction = serde_json::json!({
            "from": "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826", "to": "0x0000000000000000000000000000000001000006",
            "data": format!("0xccf417ae{}", words.concat()), "gas": "0x100000",
        });
        let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [transaction]});
        let answer = service.answer(call.to_string().into_bytes()).await.into_text().unwrap();
        assert!(answer.contains("result"), "{answer}");
        service
    }

    #[tokio::test]
    async fn a_call_that_is_not_simulated_is_reported_with_its_block_and_method() {
        let block = calls_the_bridge().await.with_node(|node| {
            let chain = node.local();
            let (header, stored) = (chain.head(), chain.block(&chain.head().hash()).unwrap());
            let body = BlockBody { transactions: stored.body.transactions().to_vec() };
            Block { header: header.header().clone(), body, uncles: Vec::new() }
        });
        let config = DevConfig::reference();
        let chain =
            LocalChain::new(config.network, config.genesis.header, config.genesis.state, None).unwrap();
        let entropy = Entropy::from_system().unwrap();
        let node = FollowNode::new(chain, "test", "upstream", CallPolicy::default(), host_input(&entropy));
        let service = Arc::new(LocalService::new(Box::new(node), LocalOptions::follower(), entropy, None));
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let fetched = vec![Fetched { block: block.unwrap(), uncles: Vec::new() }];
        let target = Following(service);
        tracing::subscriber::with_default(log, || target.import(fetched)).unwrap();
        assert_eq!(target.head(), 1);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let expected = "block 1: transaction 0 calls registerBtcCoinbaseTransaction of precompile";
        assert!(text.contains(expected) && text.contains("traces and its witness are refused"), "{text}");
    }
}
