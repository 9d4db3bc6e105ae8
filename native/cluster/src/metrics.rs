//! Metrics of an indexer (`rootlight index`), in the text format of Prometheus.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rootlight_index::LoadEvent;
use rootlight_server::metrics::{self, registered};
use tokio::net::TcpListener;

/// Counters of an indexer, which the reports of its loader change.
#[derive(Debug)]
pub struct IndexMetrics {
    registry: Registry,
    blocks: Counter,
    logs: Counter,
    removed: Counter,
    sessions: Counter,
    traced: Counter,
    missing: Gauge,
    untraced: Gauge,
    head: Gauge,
}

impl Default for IndexMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("rootlight_index");
        Self {
            blocks: registered(&mut registry, "blocks", "Blocks that were stored"),
            logs: registered(&mut registry, "logs", "Logs that were stored"),
            removed: registered(&mut registry, "removed_blocks", "Blocks that reorganisations removed"),
            sessions: registered(&mut registry, "sessions", "Times that the index was opened for writing"),
            traced: registered(&mut registry, "traced_blocks", "Blocks whose traces were stored"),
            missing: registered(&mut registry, "missing_blocks", "Blocks up to the head that are not stored"),
            untraced: registered(
                &mut registry,
                "missing_traces",
                "Stored blocks that are to get their traces",
            ),
            head: registered(
                &mut registry,
                "head_block",
                "The newest block that is stored and can be searched",
            ),
            registry,
        }
    }
}

/// Converts a number to the type of gauges.
fn to_gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl IndexMetrics {
    /// Counts a report of a loader.
    pub fn count(&self, event: &LoadEvent) {
        match event {
            LoadEvent::Opened => drop(self.sessions.inc()),
            LoadEvent::Planned { missing, .. } => drop(self.missing.set(to_gauge(*missing))),
            LoadEvent::Stored { blocks, logs, removed } => {
                self.blocks.inc_by(*blocks);
                self.logs.inc_by(*logs);
                self.removed.inc_by(*removed);
                let left = self.missing.get().saturating_sub(to_gauge(*blocks)).max(0);
                self.missing.set(left);
            }
            LoadEvent::TracesPlanned(missing) => drop(self.untraced.set(to_gauge(*missing))),
            LoadEvent::Traced(blocks) => {
                self.traced.inc_by(*blocks);
                self.untraced.set(self.untraced.get().saturating_sub(to_gauge(*blocks)).max(0));
            }
            LoadEvent::AtHead(number) => drop(self.head.set(to_gauge(*number))),
            // No metric counts dropped partitions (`LoadEvent::Dropped`), nor reports of a later version.
            _ => {}
        }
    }

    /// The metrics as text.
    ///
    /// # Errors
    /// None in practice: writing to a `String` does not fail.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Serves `GET /metrics` on an address, for ever.
    ///
    /// # Errors
    /// The address cannot be used.
    pub async fn serve(self: Arc<Self>, address: SocketAddr) -> std::io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        tracing::info!("metrics on http://{}/metrics", listener.local_addr()?);
        let text = move || {
            let text = self.text().unwrap_or_default();
            std::future::ready(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
        };
        axum::serve(listener, Router::new().route("/metrics", get(text))).await
    }
}
