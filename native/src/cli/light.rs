//! `rootlight light`.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::light::{SyncOptions, Unproven};
use tracing::info;

use super::args::LightArgs;
use super::{CommandError, runtime, serving, verify};
use crate::light::{LightOptions, LightService, Start, start};
use crate::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use crate::unix_time::unix_time;
use crate::upstream::{self, HttpConfig, SharedUpstream};

/// Longest wait for synchronization before the ready line, so that scripts find a head. A longer
/// synchronization continues after the line, and answers report its progress.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows an upstream.
pub(super) fn run(args: &LightArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    if let Unproven::Quorum(count) = args.unproven
        && count_upstreams(args) < count
    {
        return Err(CommandError::Usage(format!(
            "--unproven quorum:{count} needs {count} upstreams ({} given): repeat --upstream",
            count_upstreams(args)
        )));
    }
    let open = |text: &String| {
        let several = count_upstreams(args) > 1;
        let config = if several { HttpConfig::one_of_several() } else { HttpConfig::default() };
        upstream::open_with(text, config).map_err(CommandError::from)
    };
    let upstreams: Vec<SharedUpstream> = args.upstream.iter().map(open).collect::<Result<_, _>>()?;
    let options = LightOptions {
        policy: args.calls.policy(),
        min_depth: args.min_depth,
        max_age: args.max_age,
        unproven: args.unproven,
        sync: SyncOptions { work_floor: args.min_work, ..SyncOptions::default() },
        ..LightOptions::default()
    };
    serve(network, args, upstreams, options)
}

fn count_upstreams(args: &LightArgs) -> usize {
    args.upstream.len() + args.peer.len()
}

/// Starts to dial the peers that `--peer` names.
fn peers(args: &LightArgs, network: &Network, start: &Start) -> Result<Vec<SharedUpstream>, CommandError> {
    if args.peer.is_empty() {
        return Ok(Vec::new());
    }
    // A chain of tests may have another block 0 than its network's.
    let genesis = match start {
        Start::At(checkpoint) if checkpoint.number == 0 => checkpoint.hash,
        _ => network.genesis_hash,
    };
    let identity =
        Identity::open(network, genesis, args.data_dir.as_deref()).map_err(CommandError::failed)?;
    let (identity, network, nodes) =
        (Arc::new(identity), Arc::new(network.clone()), Arc::new(StateNodes::default()));
    let dial = |address: &PeerAddress| -> SharedUpstream {
        let (identity, network, nodes) = (identity.clone(), network.clone(), nodes.clone());
        Arc::new(PeerUpstream::new(identity, address.clone(), network, nodes))
    };
    Ok(args.peer.iter().map(dial).collect())
}

fn serve(
    network: Network,
    args: &LightArgs,
    mut upstreams: Vec<SharedUpstream>,
    options: LightOptions,
) -> Result<(), CommandError> {
    let start = start(args.checkpoint.as_deref(), &network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    runtime()?.block_on(async {
        upstreams.extend(peers(args, &network, &start)?);
        let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name()).collect();
        info!("network {} (chain id {}), upstream {}", network.name, network.chain_id, names.join(", "));
        match &start {
            Start::At(checkpoint) => {
                info!("starting from checkpoint {} {}", checkpoint.number, checkpoint.hash);
            }
            Start::Work(work) => info!(
                "starting by work alone, without a trusted block: {} headers of at least difficulty {}",
                work.headers, work.difficulty
            ),
        }
        let service = match &args.data_dir {
            None => LightService::start(network, start, upstreams, options),
            Some(folder) => LightService::resume(network, start, upstreams, options, folder)
                .map_err(CommandError::failed)?,
        };
        let service = Arc::new(service);
        let bound = serving::bind(service.clone(), &args.server).await?;
        bound.run(service.settled(ANNOUNCE_TIMEOUT)).await;
        Ok(())
    })
}
