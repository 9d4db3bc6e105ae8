//! Metrics of the hot store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Upper bound of the first bucket for times of commands, in seconds; each further bound is twice the one before.
const SHORTEST: f64 = 0.000_1;
/// Number of buckets; the last bound is 0.4 s, above the default time limit of a command.
const BUCKETS: u16 = 13;

/// Counters of the store.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    /// 1 if all parts of the store answer.
    pub(super) up: Gauge,
    /// Times of commands that were answered.
    pub(super) latency: Histogram,
    /// Commands without an answer.
    pub(super) failed: Counter,
    /// Commands that were not sent, because the store was down or too many waited.
    pub(super) refused: Counter,
    /// Connections that were made.
    pub(super) connections: Counter,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let latency = Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS));
        let (failed, refused) = (Counter::default(), Counter::default());
        Self { up: Gauge::default(), latency, failed, refused, connections: Counter::default() }
    }
}

impl StoreMetrics {
    /// Adds the metrics to those that are served.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("store");
        registry.register("up", "Whether all parts of the store answer", self.up.clone());
        registry.register("command_seconds", "Times of commands that were answered", self.latency.clone());
        registry.register("failed_commands", "Commands without an answer", self.failed.clone());
        let help = "Commands that were not sent: the store was down, or too many waited";
        registry.register("refused_commands", help, self.refused.clone());
        registry.register("connections", "Connections that were made", self.connections.clone());
    }

    /// Commands without an answer.
    pub fn failed(&self) -> u64 {
        self.failed.get()
    }

    /// Commands that were not sent: the store was down, or too many waited.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Connections that were made.
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Whether all parts of the store answered at the last check.
    pub fn is_up(&self) -> bool {
        self.up.get() == 1
    }
}
