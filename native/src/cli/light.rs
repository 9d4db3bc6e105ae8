//! `rootlight light`, and what runs without a command.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use tokio::signal;
use tracing::info;

use super::args::{LightArgs, ServerArgs};
use super::{runtime, verify, CommandError};
use crate::light::{start_checkpoint, LightOptions, LightService};
use crate::replay::Replay;
use crate::server::Server;
use crate::upstream::{self, OpenError, SharedUpstream};

/// The recording that is served without a command: blocks 0 to 75 of a development network.
const EMBEDDED: &[u8] = include_bytes!("../../recordings/regtest.jsonl.gz");

/// A short synchronization is finished before the ready line, so that scripts find a head. A long
/// one goes on behind it: requests then say how far it is.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows an upstream.
pub(super) fn run(args: &LightArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    let open = |text: &String| {
        upstream::open(text).map_err(|error| match error {
            OpenError::Scheme(_) => CommandError::Usage(error.to_string()),
            other => CommandError::failed(other),
        })
    };
    let upstreams: Vec<SharedUpstream> = args.upstream.iter().map(open).collect::<Result<_, _>>()?;
    let options = LightOptions { policy: args.calls.policy(), ..LightOptions::default() };
    serve(network, args.checkpoint.as_deref(), upstreams, &args.server, options)
}

/// Serves the embedded recording through the whole light client, until there is a development chain.
pub(super) fn run_embedded(server: &ServerArgs) -> Result<(), CommandError> {
    let replay = Replay::from_gzip("embedded", EMBEDDED).map_err(CommandError::failed)?;
    let (genesis, _) =
        replay.block(0).ok_or_else(|| CommandError::Failed("the embedded recording is empty".into()))?;
    let checkpoint = format!("0:{genesis}");
    info!("no command given: serving the built-in recording of a development network (see --help)");
    serve(Network::regtest(), Some(&checkpoint), vec![Arc::new(replay)], server, LightOptions::default())
}

fn serve(
    network: Network,
    checkpoint: Option<&str>,
    upstreams: Vec<SharedUpstream>,
    server: &ServerArgs,
    options: LightOptions,
) -> Result<(), CommandError> {
    let checkpoint =
        start_checkpoint(checkpoint, &network).map_err(|error| CommandError::Usage(error.to_string()))?;
    runtime()?.block_on(async {
        let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name()).collect();
        info!("network {} (chain id {}), upstream {}", network.name, network.chain_id, names.join(", "));
        info!("starting from checkpoint {} {}", checkpoint.number, checkpoint.hash);
        let service = Arc::new(LightService::start(network, checkpoint, upstreams, options));
        let server = Server::bind(server.config(), service.clone()).await.map_err(CommandError::failed)?;
        if let Some(second) = server.second_address() {
            info!("also listening on ws://{second}");
        }
        let ready = server.ready_line();
        let announce = async {
            service.settled(ANNOUNCE_TIMEOUT).await;
            // Scripts wait for this line.
            println!("{ready}");
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = server.run(stop_signal()) => {}
            () = announce => {}
        }
        Ok(())
    })
}

/// Ctrl-C or SIGTERM.
async fn stop_signal() {
    #[cfg(unix)]
    {
        if let Ok(mut terminate) = signal::unix::signal(signal::unix::SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = signal::ctrl_c().await;
}
