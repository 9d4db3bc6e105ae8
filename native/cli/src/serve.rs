//! `rootlight serve`: one front end of a service. Opens the backends, the store, the keys and the index, and serves a light client
//! of the backends.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::hex;
use rootlight::consensus::Network;
use rootlight::light::{MAX_AGE, SyncOptions};
use rootlight_cluster::keys::{ClusterAccess, ClusterKeys};
use rootlight_cluster::serve::{
    AdminPage, AdminParts, AdminToken, CacheSizes, FrontEnd, FrontEndParts, NewBlocks,
};
use rootlight_cluster::store::{HotStore, HotStoreError, PREFIX, StoreConfig};
use rootlight_cluster::{IndexSource, with_index};
use rootlight_index::{Database, IndexError};
use rootlight_limits::Limits;
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::{LightOptions, LightService, LightStart, start};
use rootlight_node::scripts::EngineProgram;
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::error::CommandError;
use super::runtime::runtime;
use super::serve_args::ServeArgs;
use super::stop_signal::StopSignal;
use super::{light, run_server, verify};

/// Longest wait for synchronization before the ready line, so that scripts find a head.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The store, keys and database that front ends share.
struct ClusterParts {
    store: Arc<HotStore>,
    /// A second client of the store with connections of its own, so that reports about the head do not wait behind other requests.
    heads_store: Arc<HotStore>,
    /// A third client of the store with connections of its own, for long values such as filters.
    values_store: Arc<HotStore>,
    /// Keys, quotas and announcements of the service.
    access: Arc<ClusterAccess>,
    database: Database,
}

/// Runs the command.
pub(super) fn run(args: &ServeArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    light::check_quorum(args.unproven, args.backend.len(), "--backend")?;
    let limits = Limits::new();
    let timeouts =
        || if args.backend.len() > 1 { HttpConfig::one_of_several() } else { HttpConfig::default() };
    let config = || HttpConfig { limits: limits.clone(), ..timeouts() };
    let open = |text: &String| {
        let opened = upstream::open_of_network(text, config(), network.chain_id);
        opened.map_err(|error| CommandError::of_upstream("--backend", error))
    };
    let backends: Vec<SharedUpstream> = args.backend.iter().map(open).collect::<Result<_, _>>()?;
    let begin = args.checkpoint.as_deref().unwrap_or("built-in");
    let begin = start(Some(begin), &network, args.min_work, unix_time())
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let names: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
    info!("network {} (chain id {}), backends {}", network.name, network.chain_id, names.join(", "));
    runtime()?.block_on(serve(args, network, begin, (backends, limits)))
}

/// Connects to the shared parts, starts the light client and serves until a signal ends the program.
async fn serve(
    args: &ServeArgs,
    network: Network,
    begin: LightStart,
    (backends, limits): (Vec<SharedUpstream>, Arc<Limits>),
) -> Result<(), CommandError> {
    let (chain, admission) = (network.chain_id, args.server.admission.open()?);
    let mut stop = StopSignal::listen();
    let begin = match args.starts_at_shown_block() {
        true => match stop.unless(light::shown_block(&network, &backends)).await {
            Some(shown) => shown?,
            None => return Ok(()),
        },
        false => begin,
    };
    let backends = backends.into_iter().map(|backend| upstream::redacted(backend, true)).collect();
    let (backends, new_blocks) = NewBlocks::watch(backends);
    let caches = CacheSizes::of_mib(args.cache);
    let opened_stores = async {
        Ok::<_, CommandError>((connect(args).await?, index(args, &network, caches.index_blocks).await?))
    };
    let (shared, index) = match stop.unless(opened_stores).await {
        Some(opened) => opened?,
        None => return Ok(()),
    };
    let options = LightOptions { limits, ..options(args, caches.facts) };
    let light = light_client(network, begin, backends, options, index.as_ref());
    let settled = light.settled(ANNOUNCE_TIMEOUT);
    let Some(shared) = shared else {
        run_server::bind(light.clone(), &args.server, admission).await?.run(settled, stop).await;
        return Ok(());
    };
    let parts = FrontEndParts {
        light: light.clone(),
        new_blocks,
        store: shared.store.clone(),
        heads_store: shared.heads_store.clone(),
        values_store: shared.values_store.clone(),
        access: Some(shared.access.clone()),
        secret: shared.access.secret(),
        chain,
        name: name()?,
        answer_cache_bytes: caches.answers,
    };
    let front_end = Arc::new(FrontEnd::start(parts));
    let access = shared.access.clone();
    let keys = args.keys.then(|| access.access());
    let bound = run_server::bind_with(front_end.clone(), &args.server, admission, keys).await?;
    // The admin page ends when this function returns, because dropping a `JoinSet` aborts its tasks.
    let mut page_task = JoinSet::new();
    if let Some(page) = admin_page(args, front_end, shared).await? {
        page_task.spawn(page.serve());
    }
    bound.run(settled, stop).await;
    if let Err(error) = access.flush().await {
        warn!("the usage of the last seconds was not written: {error}");
    }
    Ok(())
}

/// The light client of these backends. An index answers requests in the place of a backend, and questions that only an index
/// answers.
fn light_client(
    network: Network,
    begin: LightStart,
    backends: Vec<SharedUpstream>,
    options: LightOptions,
    index: Option<&Arc<IndexSource>>,
) -> Arc<LightService> {
    let Some(index) = index else {
        return Arc::new(LightService::start(network, begin, backends, options));
    };
    let options = LightOptions { index: Some(index.clone()), ..options };
    let light = Arc::new(LightService::start(network, begin, with_index(backends, index), options));
    index.follow(light.proven_chain());
    light
}

/// The page for operators, if it is asked for.
async fn admin_page(
    args: &ServeArgs,
    front_end: Arc<FrontEnd>,
    ClusterParts { database, store, access, .. }: ClusterParts,
) -> Result<Option<AdminPage>, CommandError> {
    let (Some(port), Some(file)) = (args.admin_port, &args.admin_token_file) else { return Ok(None) };
    let token = AdminToken::open(file).map_err(|error| CommandError::of_flag("--admin-token-file", error))?;
    let keys = ClusterKeys::open(database, Some(store.clone())).await.map_err(CommandError::failed)?;
    let parts = AdminParts { service: front_end, keys, store, access, token };
    let wrong = |error| CommandError::Failed(format!("--admin-port {port}: {error}"));
    let page = AdminPage::bind(port, parts).await.map_err(wrong)?;
    info!("admin page on http://{}/, token in {}", page.address().map_err(wrong)?, file.display());
    Ok(Some(page))
}

/// The options of the light client; `cache_bytes` is the share of `--cache` for proven blocks and state.
fn options(args: &ServeArgs, cache_bytes: usize) -> LightOptions {
    LightOptions {
        policy: args.calls.policy(),
        min_depth: args.min_depth,
        // A development chain may have mined its newest block long ago.
        max_age: args.max_age.unwrap_or(if args.starts_at_shown_block() { 0 } else { MAX_AGE }),
        unproven: args.unproven,
        sync: SyncOptions {
            work_floor: args.min_work,
            // Front ends that share a store agree on a head that never goes back, so none of them may begin anew with a new
            // block 0 of its backends.
            shown_start: args.starts_at_shown_block() && args.cluster.is_empty(),
            ..SyncOptions::default()
        },
        host_announces_sent: !args.cluster.is_empty(),
        spread: true,
        cache_bytes: Some(cache_bytes),
        scripts: EngineProgram::this().ok(),
        ..LightOptions::default()
    }
}

fn wrong_index(error: IndexError) -> CommandError {
    match error {
        IndexError::Address(_) => CommandError::Usage(format!("--index: {error}")),
        other => CommandError::Failed(format!("--index: {other}")),
    }
}

fn wrong_store(error: HotStoreError) -> CommandError {
    CommandError::of_flag("--cluster", error)
}

/// Connects to what front ends share; `None` for a front end alone.
async fn connect(args: &ServeArgs) -> Result<Option<ClusterParts>, CommandError> {
    let (Some(address), false) = (&args.index, args.cluster.is_empty()) else { return Ok(None) };
    let config = StoreConfig::parse(&args.cluster, PREFIX)
        .map_err(|error| CommandError::Usage(format!("--cluster: {error}")))?;
    let tls = rustls::ClientConfig::clone(&upstream::tls_config());
    let database = Database::parse(address, tls).map_err(wrong_index)?;
    let store = HotStore::connect(&config).await.map_err(wrong_store)?;
    let heads_store = HotStore::connect(&config).await.map_err(wrong_store)?;
    let values_store = HotStore::connect(&config).await.map_err(wrong_store)?;
    let access = ClusterAccess::open(&database, store.clone()).await.map_err(CommandError::failed)?;
    Ok(Some(ClusterParts { store, heads_store, values_store, access, database }))
}

/// Opens the index, if the database has one.
async fn index(
    args: &ServeArgs,
    network: &Network,
    cache_bytes: u64,
) -> Result<Option<Arc<IndexSource>>, CommandError> {
    let Some(address) = &args.index else { return Ok(None) };
    match IndexSource::open(address, Arc::new(network.clone()), cache_bytes).await {
        Ok(index) => Ok(Some(index)),
        // Schema version 0 means that the database has no tables of an index.
        Err(IndexError::OlderSchema { found: 0, .. }) => {
            info!("the database has no index (rootlight index makes one)");
            Ok(None)
        }
        Err(error) => Err(wrong_index(error)),
    }
}

/// A random name of this front end, by which the other front ends tell it apart.
fn name() -> Result<String, CommandError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(CommandError::failed)?;
    Ok(hex::encode(bytes))
}
