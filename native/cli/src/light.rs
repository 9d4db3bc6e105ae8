//! `rootlight light`, and the parts of it that other commands with a light client use: opening upstreams, the options, the start
//! and the launch of the client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::light::{MAX_AGE, SyncOptions, UnprovenPolicy};
use rootlight_limits::Limits;
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::{
    FirstBlockError, LightOptions, LightService, LightStart, awaited_first_block, first_block, start,
};
use rootlight_node::scripts::EngineProgram;
use rootlight_upstream::bitcoin::{BitcoinSource, BitcoinSourceConfig};
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};
use tracing::{info, warn};

use super::args::LightArgs;
use super::error::{CommandError, DATA_DIR};
use super::header_folder::HeaderFolder;
use super::runtime::runtime;
use super::source_args::SourceArgs;
use super::stop_signal::StopSignal;
use super::{bitcoin, discovery, peers, run_server, verify};

/// Longest wait for synchronization before the ready line, so that scripts find a head. A longer
/// synchronization continues after the line, and answers report its progress.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before the upstreams of a development chain are asked for its block 0 again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Runs the command.
pub(super) fn run(args: &LightArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.sources.network)?;
    check_quorum(args.unproven, count_upstreams(&args.sources), "--upstream")?;
    let limits = Limits::new();
    let upstreams = open_upstreams(&args.sources, &network, &limits, "--upstream")?;
    let options = LightOptions {
        policy: args.calls.policy(),
        unproven: args.unproven,
        ..options(&args.sources, limits)
    };
    serve(network, args, upstreams, options)
}

/// Refuses a quorum of more upstreams than are given by this flag.
pub(super) fn check_quorum(policy: UnprovenPolicy, given: usize, flag: &str) -> Result<(), CommandError> {
    match policy {
        UnprovenPolicy::Quorum(count) if given < count => Err(CommandError::Usage(format!(
            "--unproven quorum:{count} needs {count} upstreams ({given} given): repeat {flag}"
        ))),
        _ => Ok(()),
    }
}

fn count_upstreams(args: &SourceArgs) -> usize {
    args.upstream.len() + args.peer.len()
}

/// Opens the upstreams that a flag names. Before that, the flags of discovery and of Bitcoin's sources are checked too, so that
/// every mistake in the flags is reported at the start.
pub(super) fn open_upstreams(
    args: &SourceArgs,
    network: &Network,
    limits: &Arc<Limits>,
    flag: &str,
) -> Result<Vec<SharedUpstream>, CommandError> {
    if discovery::is_wanted(args) {
        let folder = HeaderFolder::of(args.data_dir.as_deref(), &start_of(args, network)?, network);
        discovery::boot_hosts(&args.finding, network, folder.path())?;
    }
    bitcoin_sources(args, network, limits)?;
    let open = |text: &String| {
        let several = count_upstreams(args) > 1 || discovery::is_wanted(args);
        let config = if several { HttpConfig::one_of_several() } else { HttpConfig::default() };
        let config = HttpConfig { limits: limits.clone(), ..config };
        let opened = upstream::open_of_network(text, config, network.chain_id);
        opened.map_err(|error| CommandError::of_upstream(flag, error))
    };
    args.upstream.iter().map(open).collect()
}

/// Opens the sources of Bitcoin's chain that the flags name. Opening a source sends nothing.
fn bitcoin_sources(
    args: &SourceArgs,
    network: &Network,
    limits: &Arc<Limits>,
) -> Result<Vec<Arc<BitcoinSource>>, CommandError> {
    let config = BitcoinSourceConfig { limits: limits.clone(), ..BitcoinSourceConfig::default() };
    let sources = bitcoin::sources(&args.bitcoin, network, &config)?;
    if args.min_bitcoin.is_some() && sources.is_empty() {
        return Err(CommandError::Usage(
            "--min-bitcoin needs a source of Bitcoin's chain: give one with --bitcoin, or leave the flag out"
                .into(),
        ));
    }
    Ok(sources)
}

/// The block 0 that the upstreams of a development chain show, for a client that starts there. Until an upstream shows one, the
/// upstreams are asked again, except recordings, whose responses never change.
pub(super) async fn shown_block(
    network: &Network,
    upstreams: &[SharedUpstream],
) -> Result<LightStart, CommandError> {
    let is_fixed = upstreams.iter().all(|upstream| upstream.name().starts_with("replay:"));
    let block = if is_fixed {
        first_block(network, upstreams).await
    } else {
        let report = |error: &FirstBlockError| warn!("{error}; asking again until one does");
        awaited_first_block(network, upstreams, RETRY_PAUSE, report).await
    };
    let block = block.map_err(CommandError::failed)?;
    info!("starting from the block 0 that the upstreams show, {}, which is trusted", block.hash);
    Ok(LightStart::At(block))
}

/// The options of a light client that the flags of all commands describe.
pub(super) fn options(args: &SourceArgs, limits: Arc<Limits>) -> LightOptions {
    LightOptions {
        min_depth: args.min_depth,
        min_bitcoin: args.min_bitcoin,
        // A development chain may have mined its newest block long ago.
        max_age: args.max_age.unwrap_or(if args.starts_at_shown_block() { 0 } else { MAX_AGE }),
        sync: SyncOptions {
            work_floor: args.min_work,
            shown_start: args.starts_at_shown_block(),
            ..SyncOptions::default()
        },
        limits,
        scripts: EngineProgram::this().ok(),
        ..LightOptions::default()
    }
}

/// Where the client starts.
pub(super) fn start_of(args: &SourceArgs, network: &Network) -> Result<LightStart, CommandError> {
    start(args.checkpoint.as_deref(), network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))
}

/// Starts the client with its sources of Bitcoin's chain, and with `--backfill` a second client that later confirms the window of
/// the first; must be called inside a runtime.
pub(super) fn launch(
    args: &SourceArgs,
    network: Network,
    start: LightStart,
    upstreams: Vec<SharedUpstream>,
    options: LightOptions,
) -> Result<Arc<LightService>, CommandError> {
    let folder = HeaderFolder::of(args.data_dir.as_deref(), &start, &network);
    let trusted = backfill(args, &network, &start, &upstreams, &options, &folder)?;
    let bitcoin = bitcoin_sources(args, &network, &options.limits)?;
    let service = Arc::new(open(network, start, upstreams, LightOptions { bitcoin, ..options }, folder)?);
    if let Some(trusted) = trusted {
        let service = service.clone();
        tokio::spawn(async move { service.confirm_window(&trusted).await });
    }
    Ok(service)
}

/// Finds the upstreams and the start, starts the client, and serves it until a signal ends the program.
fn serve(
    network: Network,
    args: &LightArgs,
    mut upstreams: Vec<SharedUpstream>,
    options: LightOptions,
) -> Result<(), CommandError> {
    let mut start = start_of(&args.sources, &network)?;
    let opened = args.server.admission.open()?;
    runtime()?.block_on(async {
        let mut stop = StopSignal::listen();
        let find_upstreams = async {
            if args.sources.starts_at_shown_block() {
                start = shown_block(&network, &upstreams).await?;
            }
            upstreams.extend(peers::upstreams(&args.sources, &network, &start, &options.limits).await?);
            Ok::<_, CommandError>(())
        };
        match stop.unless(find_upstreams).await {
            Some(found) => found?,
            None => return Ok(()),
        }
        let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name()).collect();
        info!("network {} (chain id {}), upstream {}", network.name, network.chain_id, names.join(", "));
        let for_others = args.server.admission.is_for_others();
        upstreams = upstreams.into_iter().map(|upstream| upstream::redacted(upstream, for_others)).collect();
        match &start {
            LightStart::At(_) if args.sources.starts_at_shown_block() => {}
            LightStart::At(checkpoint) => {
                info!("starting from checkpoint {} {}", checkpoint.number, checkpoint.hash);
            }
            LightStart::Window(work) => info!(
                "starting without a trusted block, by a window of at most {} headers or from those of an earlier run; \
                 --checkpoint built-in trusts a block",
                work.headers
            ),
            LightStart::Work(work) => info!(
                "starting by work alone, without a trusted block: {} headers of at least difficulty {}",
                work.headers, work.difficulty
            ),
        }
        let service = launch(&args.sources, network, start, upstreams, options)?;
        let bound = run_server::bind(service.clone(), &args.server, opened).await?;
        bound.run(service.settled(ANNOUNCE_TIMEOUT), stop).await;
        Ok(())
    })
}

/// Starts the client with the headers that an earlier run has stored in the folder.
fn open(
    network: Network,
    start: LightStart,
    upstreams: Vec<SharedUpstream>,
    options: LightOptions,
    folder: HeaderFolder,
) -> Result<LightService, CommandError> {
    let resume = |folder: &Path| {
        LightService::resume(network.clone(), start, upstreams.clone(), options.clone(), folder)
    };
    let (usual, error) = match &folder {
        HeaderFolder::None => return Ok(LightService::start(network, start, upstreams, options)),
        HeaderFolder::Named(folder) => {
            return resume(folder).map_err(|error| CommandError::of_flag(DATA_DIR, error));
        }
        HeaderFolder::Usual(folder) => match resume(folder) {
            Ok(service) => return Ok(service),
            Err(error) => (folder, error),
        },
    };
    // The user did not ask for a store, so a store that cannot be used, such as one that another program has open, is no error.
    // The client reads it and does not write.
    info!("headers are not stored in this run: {error}");
    Ok(LightService::resume_reading(network, start, upstreams, options, usual))
}

/// With `--backfill` (not the glossary's backfill of headers just below a checkpoint), the second client, which fetches all headers since the built-in checkpoint for a client that started by
/// window.
fn backfill(
    args: &SourceArgs,
    network: &Network,
    start: &LightStart,
    upstreams: &[SharedUpstream],
    options: &LightOptions,
    folder: &HeaderFolder,
) -> Result<Option<LightService>, CommandError> {
    if !args.backfill {
        return Ok(None);
    }
    if !matches!(start, LightStart::Window(_)) {
        return Err(CommandError::Usage(
            "--backfill goes with a start by window (--checkpoint window)".into(),
        ));
    }
    let trusted = self::start(Some("built-in"), network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    // This second client asks no Bitcoin sources, and stores its headers in a file of their own.
    let options = LightOptions { min_bitcoin: None, ..options.clone() };
    open(network.clone(), trusted, upstreams.to_vec(), options, folder.clone()).map(Some)
}
