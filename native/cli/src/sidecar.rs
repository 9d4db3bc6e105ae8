//! `rootlight sidecar`: opens the database of a full node (rskj) and its JSON-RPC server, and serves proofs of the node's states.

use std::sync::Arc;
use std::time::Duration;

use rootlight_limits::Limits;
use rootlight_node::light::LightOptions;
use rootlight_node::scripts::EngineProgram;
use rootlight_node::sidecar::{NodeChain, NodeStore, SidecarOptions, SidecarService};
use rootlight_server::methods::Profile;
use rootlight_upstream::{self as upstream, HttpConfig};
use tracing::info;

use super::args::SidecarArgs;
use super::error::CommandError;
use super::runtime::runtime;
use super::stop_signal::StopSignal;
use super::{peers, run_server, verify};

/// Longest wait for synchronization before the ready line, so that scripts find a head.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
pub(super) fn run(args: &SidecarArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    let store = open(args)?;
    let limits = Limits::new();
    let config = HttpConfig { limits: limits.clone(), ..HttpConfig::default() };
    let node = upstream::open_with(&args.node, config)
        .map_err(|error| CommandError::of_upstream("--node", error))?;
    let light = LightOptions {
        policy: args.calls.policy(),
        max_age: args.max_age,
        limits: limits.clone(),
        scripts: EngineProgram::this().ok(),
        ..LightOptions::default()
    };
    let flush = (args.flush > 0).then(|| Duration::from_secs(args.flush));
    let options = SidecarOptions { light, executes: args.execute, flush, ..SidecarOptions::default() };
    let mut server = args.server.clone();
    // A node trusts its loopback interface; those who reach it through this program must not inherit that.
    server.admission.profile = Profile::Hosted;
    let opened = server.admission.open()?;
    runtime()?.block_on(async {
        let mut stop = StopSignal::listen();
        info!("network {} (chain id {}), node {}", network.name, network.chain_id, node.name());
        let starting = SidecarService::start(network.clone(), node, store, options);
        let Some(service) = stop.unless(starting).await else { return Ok(()) };
        let service = Arc::new(service.map_err(CommandError::failed)?);
        // Dropping the value ends the server for peers.
        let _peers = match args.peers.p2p_port {
            Some(port) => {
                let identity = peers::identity(&network, network.genesis_hash, args.data_dir.as_deref())?;
                let identity = identity.within(limits);
                let chain = Arc::new(NodeChain::new(service.clone(), network.clone()));
                Some(peers::serve_chain(chain, identity, &network, (&server.host, port)).await?)
            }
            None => None,
        };
        let bound = run_server::bind(service.clone(), &server, opened).await?;
        bound.run(service.settled(ANNOUNCE_TIMEOUT), stop).await;
        Ok(())
    })
}

/// Opens the node's database.
#[cfg(feature = "rskj-store")]
fn open(args: &SidecarArgs) -> Result<Arc<dyn NodeStore>, CommandError> {
    // The flag is in MiB.
    let bytes = args.node_cache.saturating_mul(1 << 20);
    let opened = rootlight_node::rskj_store::RskjStore::open(&args.rskj_db, bytes);
    let store = opened.map_err(|error| CommandError::Failed(format!("--rskj-db: {error}")))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "rskj-store"))]
fn open(_: &SidecarArgs) -> Result<Arc<dyn NodeStore>, CommandError> {
    Err(CommandError::Failed(
        "this build cannot read a node's store: build with `--features rskj-store` (docs/runbook.md)".into(),
    ))
}
