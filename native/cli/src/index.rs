//! `rootlight index`: starts a light client of the upstreams of `--from`, and loads its blocks into PostgreSQL.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::consensus::Network;
use rootlight::light::SyncOptions;
use rootlight_cluster::{ChainSource, IndexMetrics};
use rootlight_index::{Database, LoadEvent, Loader, LoaderOptions, Observer, Setup};
use rootlight_limits::Limits;
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::{LightOptions, LightService, LightStart, start};
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};
use tracing::info;

use super::error::{CommandError, DATA_DIR};
use super::index_args::IndexArgs;
use super::runtime::runtime;
use super::source_args::starts_at_shown_block;
use super::stop_signal::StopSignal;
use super::{light, verify};

/// Longest wait for the head of the chain before the loader starts. If synchronization takes longer, the loader tries again until the
/// client has a head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between lines about progress.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the command.
pub(super) fn run(args: &IndexArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    let database = Database::parse(&args.index, rustls::ClientConfig::clone(&upstream::tls_config()))
        .map_err(|error| CommandError::Usage(format!("--index: {error}")))?;
    let limits = Limits::new();
    let config = || HttpConfig { limits: limits.clone(), ..HttpConfig::default() };
    let open = |text: &String| {
        let opened = upstream::open_of_network(text, config(), network.chain_id);
        opened.map_err(|error| CommandError::of_upstream("--from", error))
    };
    let upstreams: Vec<SharedUpstream> = args.from.iter().map(open).collect::<Result<_, _>>()?;
    let begin = args.checkpoint.as_deref().unwrap_or("built-in");
    let mut start = start(Some(begin), &network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    runtime()?.block_on(async {
        let mut stop = StopSignal::listen();
        if starts_at_shown_block(&args.network, args.checkpoint.as_deref()) {
            match stop.unless(light::shown_block(&network, &upstreams)).await {
                Some(shown) => start = shown?,
                None => return Ok(()),
            }
        }
        let light = open_client(args, &network, start, upstreams.clone(), limits)?;
        if stop.unless(light.settled(HEAD_TIMEOUT)).await.is_none() {
            return Ok(());
        }
        let metrics = Arc::new(IndexMetrics::default());
        let source = ChainSource::new(light, upstreams, Arc::new(network.clone()));
        let source = if args.traces { source.with_traces() } else { source };
        let loader = Loader {
            database,
            network,
            setup: setup(args),
            source: Arc::new(source),
            options: LoaderOptions {
                jobs: usize::from(args.jobs),
                retain: args.retain,
                traces: args.traces,
                once: args.once,
                ..LoaderOptions::default()
            },
            observer: observer(metrics.clone()),
        };
        let serve = async {
            match args.metrics_listen {
                Some(address) => metrics.serve(address).await.map_err(CommandError::failed),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            loaded = loader.run() => loaded.map_err(|error| CommandError::of_flag("--index", error)),
            served = serve => served,
            () = stop.received() => Ok(()),
        }
    })
}

/// The client whose blocks are loaded.
fn open_client(
    args: &IndexArgs,
    network: &Network,
    start: LightStart,
    upstreams: Vec<SharedUpstream>,
    limits: Arc<Limits>,
) -> Result<LightService, CommandError> {
    let options = LightOptions {
        // A head of any age is loaded, because its blocks are proven.
        max_age: 0,
        sync: SyncOptions { work_floor: args.min_work, ..SyncOptions::default() },
        limits,
        ..LightOptions::default()
    };
    match &args.data_dir {
        None => Ok(LightService::start(network.clone(), start, upstreams, options)),
        Some(folder) => LightService::resume(network.clone(), start, upstreams, options, folder)
            .map_err(|error| CommandError::of_flag(DATA_DIR, error)),
    }
}

/// The layout of a new index, and the name by which other indexers see this one.
fn setup(args: &IndexArgs) -> Setup {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "an unnamed host" } else { host.trim() };
    Setup {
        partition_blocks: args.partition_blocks,
        first_block: args.first_block,
        wait: args.wait,
        // Each job has a connection of its own; four more serve the newest blocks and retention.
        connections: usize::from(args.jobs).saturating_add(4),
        name: format!("{host}, process {}", std::process::id()),
    }
}

/// The progress since the last log line.
struct LoadProgress {
    /// Time of the last line.
    at: Instant,
    /// Blocks and logs that were stored since.
    blocks: u64,
    logs: u64,
    /// Blocks that are still missing.
    left: u64,
    /// Whether a line has said that the newest blocks are loaded.
    at_head: bool,
}

/// Counts the loader's events in the metrics, and writes log lines about them.
fn observer(metrics: Arc<IndexMetrics>) -> Observer {
    let progress =
        Mutex::new(LoadProgress { at: Instant::now(), blocks: 0, logs: 0, left: 0, at_head: false });
    Arc::new(move |event| {
        metrics.count(&event);
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            LoadEvent::Planned { missing, head } => {
                progress.left = missing;
                info!("the head is block {head}; {missing} blocks are missing");
            }
            LoadEvent::Stored { blocks, logs, removed } => progress.stored(blocks, logs, removed),
            LoadEvent::TracesPlanned(missing) => info!("{missing} blocks are to get their traces"),
            LoadEvent::AtHead(number) if !progress.at_head => {
                progress.at_head = true;
                info!("the newest blocks are loaded, up to block {number}");
            }
            LoadEvent::Dropped(count) => info!("{count} old partitions dropped"),
            // The other events, and each further `AtHead`, count in the metrics alone.
            _ => {}
        }
    })
}

impl LoadProgress {
    /// Counts stored blocks, and writes a line if the last one is long ago.
    fn stored(&mut self, blocks: u64, logs: u64, removed: u64) {
        if removed > 0 {
            info!("a reorganisation replaced {removed} blocks");
        }
        self.blocks = self.blocks.saturating_add(blocks);
        self.logs = self.logs.saturating_add(logs);
        self.left = self.left.saturating_sub(blocks);
        let elapsed = self.at.elapsed();
        if elapsed < LINE_INTERVAL {
            return;
        }
        let rate = |count: u64| count as f64 / elapsed.as_secs_f64();
        info!(
            "{} blocks are missing; {:.0} blocks and {:.0} logs per second",
            self.left,
            rate(self.blocks),
            rate(self.logs)
        );
        (self.at, self.blocks, self.logs) = (Instant::now(), 0, 0);
    }
}
