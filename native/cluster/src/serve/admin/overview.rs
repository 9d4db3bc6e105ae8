//! The answer to the page's request `overview`: the health of the service, as one front end sees it. The module `health.js` of
//! the page shows it.

use std::time::Duration;

use rootlight_limits::unix_time::unix_time;
use rootlight_server::metrics::MethodCount;
use rootlight_server::service::{Health, UpstreamHealth};
use serde::Serialize;
use tokio::time::timeout;

use super::state::AdminState;
use crate::keys::{ClusterKeyError, DatabaseReport, Decision, LookupOutcome};

/// Longest time that the database may take for its report; afterwards the answer says that the database is slow.
const DATABASE_TIME: Duration = Duration::from_secs(2);

/// The state of the service.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    version: &'static str,
    /// Seconds since 1970.
    now: u64,
    chain: ChainOverview,
    backends: Vec<BackendOverview>,
    store: StoreOverview,
    database: DatabaseOverview,
    /// Front ends that share the limits, as far as this one knows.
    front_ends: u32,
    lookups: LookupsOverview,
    decisions: Decisions,
    /// Messages of this front end since its start.
    methods: Vec<MethodCount>,
}

/// The chain of the front end.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChainOverview {
    health: Health,
    synced: bool,
    /// Number and timestamp (seconds since 1970) of the newest block.
    head: Option<(u64, u64)>,
    /// Height of the highest block that is known to exist.
    target: Option<u64>,
}

/// A backend. The fields are those of [`UpstreamHealth`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackendOverview {
    name: String,
    healthy: bool,
    announced: Option<u64>,
    latency_millis: u64,
    demerits: u32,
    lies: u32,
}

/// The store, with counts since the start of this front end.
#[derive(Serialize)]
struct StoreOverview {
    up: bool,
    /// Commands without an answer.
    failed: u64,
    /// Commands that were not sent.
    refused: u64,
    /// Connections that were made.
    connections: u64,
}

/// The database's report, or why there is none.
#[derive(Serialize)]
struct DatabaseOverview {
    report: Option<DatabaseReport>,
    error: Option<String>,
}

/// Look-ups of keys by where they ended.
#[derive(Serialize)]
struct LookupsOverview {
    memory: u64,
    store: u64,
    database: u64,
    absent: u64,
    failed: u64,
    refused: u64,
}

/// Messages with limits by who decided about them.
#[derive(Serialize)]
struct Decisions {
    lease: u64,
    store: u64,
    refusal: u64,
    fallback: u64,
}

impl Overview {
    /// Collects the state; only the database is asked for it.
    pub(super) async fn of(state: &AdminState) -> Self {
        let chain_status = state.service.chain_status();
        let metrics = state.access.metrics();
        let (lookups, decisions) = (|outcome| metrics.lookups(outcome), |by| metrics.decisions(by));
        let store_metrics = state.store.metrics();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            now: unix_time(),
            chain: ChainOverview {
                health: state.service.health(),
                synced: chain_status.synced,
                head: chain_status.head,
                target: chain_status.target,
            },
            backends: chain_status.upstreams.into_iter().map(BackendOverview::from).collect(),
            store: StoreOverview {
                up: state.store.is_up(),
                failed: store_metrics.failed(),
                refused: store_metrics.refused(),
                connections: store_metrics.connections(),
            },
            database: DatabaseOverview::ask(state).await,
            front_ends: metrics.front_ends(),
            lookups: LookupsOverview {
                memory: lookups(LookupOutcome::Memory),
                store: lookups(LookupOutcome::Store),
                database: lookups(LookupOutcome::Database),
                absent: lookups(LookupOutcome::Absent),
                failed: lookups(LookupOutcome::Failed),
                refused: lookups(LookupOutcome::Refused),
            },
            decisions: Decisions {
                lease: decisions(Decision::Lease),
                store: decisions(Decision::Store),
                refusal: decisions(Decision::Refusal),
                fallback: decisions(Decision::Fallback),
            },
            methods: state.service.counts().metrics.methods(),
        }
    }
}

impl DatabaseOverview {
    /// Asks the database for its report.
    async fn ask(state: &AdminState) -> Self {
        let report = timeout(DATABASE_TIME, state.keys.report()).await.unwrap_or(Err(ClusterKeyError::Slow));
        match report {
            Ok(report) => Self { report: Some(report), error: None },
            Err(error) => Self { report: None, error: Some(error.to_string()) },
        }
    }
}

impl From<UpstreamHealth> for BackendOverview {
    fn from(health: UpstreamHealth) -> Self {
        let UpstreamHealth { name, healthy, announced, latency, demerits, lies } = health;
        let latency_millis = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        Self { name, healthy, announced, latency_millis, demerits, lies }
    }
}
