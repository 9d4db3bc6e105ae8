//! `rootlight index`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use rootlight::light::SyncOptions;
use rootlight_index::{Database, LoadEvent, Loader, LoaderOptions, Observer, Setup};
use tracing::info;

use super::{CommandError, runtime, serving, verify};
use crate::cluster::{ChainSource, IndexMetrics};
use crate::light::{LightOptions, LightService, start};
use crate::unix_time::unix_time;
use crate::upstream::{self, SharedUpstream};

/// Longest wait for the head of the chain before loading begins; a longer synchronization is waited for with messages.
const SETTLE: Duration = Duration::from_secs(10);

/// Interval between lines about progress.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Flags of `index`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct IndexArgs {
    /// mainnet, testnet, testnet2, devnet, regtest, or a JSON file with network parameters
    #[arg(long, value_name = "NAME|FILE", default_value = "mainnet")]
    pub network: String,
    /// Source of blocks: an http(s) or ws(s) URL, or replay:PATH for a recording; repeat the flag for several, which
    /// check and replace each other
    #[arg(long, value_name = "URL|replay:PATH", required = true)]
    pub from: Vec<String>,
    /// The database: postgres://USER:PASSWORD@HOST:PORT/NAME. Connections to other machines are encrypted
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub index: String,
    /// Trusted block from which the chain's headers are proven; "none" for genesis, "work" for a start without a trusted
    /// block [default: the newest built-in checkpoint]
    #[arg(long, value_name = "NUMBER:HASH[:TD]|none|work")]
    pub checkpoint: Option<String>,
    /// Work floor in percent, as of `rootlight light`
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=100))]
    pub min_work: u64,
    /// Store verified headers in this folder, and continue from them
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The first block of a new index [default: 0, or with --retain the first block that is kept]
    #[arg(long, value_name = "N")]
    pub first_block: Option<u64>,
    /// Number of blocks of a partition, for a new index [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub partition_blocks: Option<u64>,
    /// Drop partitions whose blocks are all more than so many blocks below the head [default: keep all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub retain: Option<u64>,
    /// Number of partitions that are filled at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// End once all blocks up to the head are loaded, instead of following the chain
    #[arg(long)]
    pub once: bool,
    /// Wait for the end of another indexer of the same index, and take over
    #[arg(long)]
    pub wait: bool,
    /// Serve /metrics for Prometheus on this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
}

const HELP: &str = "\
Examples:
  rootlight index --from https://node.example/KEY --index postgres://me:word@db.example/rootstock --data-dir headers
  rootlight index --network regtest --checkpoint none --from replay:recording --index postgres://me@localhost/test --once

docs/index.md describes the tables.";

/// Loads an index.
pub(super) fn run(args: &IndexArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    let database = Database::parse(&args.index, rustls::ClientConfig::clone(&upstream::tls_config()))
        .map_err(|error| CommandError::Usage(format!("--index: {error}")))?;
    let upstreams: Vec<SharedUpstream> = args
        .from
        .iter()
        .map(|text| upstream::open(text).map_err(CommandError::from))
        .collect::<Result<_, _>>()?;
    let start = start(args.checkpoint.as_deref(), &network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let options = LightOptions {
        // The age of the head does not matter: its blocks are proven.
        max_age: 0,
        sync: SyncOptions { work_floor: args.min_work, ..SyncOptions::default() },
        ..LightOptions::default()
    };
    runtime()?.block_on(async {
        let light = match &args.data_dir {
            None => LightService::start(network.clone(), start, upstreams.clone(), options),
            Some(folder) => LightService::resume(network.clone(), start, upstreams.clone(), options, folder)
                .map_err(CommandError::failed)?,
        };
        light.settled(SETTLE).await;
        let metrics = Arc::new(IndexMetrics::default());
        let source = ChainSource::new(light, upstreams, Arc::new(network.clone()));
        let loader = Loader {
            database,
            network,
            setup: setup(args),
            source: Arc::new(source),
            options: LoaderOptions {
                jobs: usize::from(args.jobs),
                retain: args.retain,
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
            loaded = loader.run() => loaded.map_err(CommandError::failed),
            served = serve => served,
            () = serving::stop_signal() => Ok(()),
        }
    })
}

fn setup(args: &IndexArgs) -> Setup {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "an unnamed host" } else { host.trim() };
    Setup {
        partition_blocks: args.partition_blocks,
        first_block: args.first_block,
        new_first_block: 0,
        wait: args.wait,
        // Each job stores and fetches at a time; the newest blocks and retention need some more.
        connections: usize::from(args.jobs).saturating_add(4),
        name: format!("{host}, process {}", std::process::id()),
    }
}

/// Progress since the last line.
struct Line {
    at: Instant,
    blocks: u64,
    logs: u64,
    left: u64,
    at_head: bool,
}

/// Counts reports, and writes lines about them.
fn observer(metrics: Arc<IndexMetrics>) -> Observer {
    let line = Mutex::new(Line { at: Instant::now(), blocks: 0, logs: 0, left: 0, at_head: false });
    Arc::new(move |event| {
        metrics.count(&event);
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            LoadEvent::Planned { missing, head } => {
                line.left = missing;
                info!("the head is block {head}; {missing} blocks are missing");
            }
            LoadEvent::Stored { blocks, logs, removed } => line.stored(blocks, logs, removed),
            LoadEvent::AtHead(number) if !line.at_head => {
                line.at_head = true;
                info!("the newest blocks are loaded, up to block {number}");
            }
            LoadEvent::Dropped(count) => info!("{count} old partitions dropped"),
            _ => {}
        }
    })
}

impl Line {
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
