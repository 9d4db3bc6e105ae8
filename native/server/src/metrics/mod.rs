//! Metrics of a server, in the text format of Prometheus.
//!
//! Frequent events are counted in atomic numbers, whose labels are resolved once (`Metrics`). The state of the chain,
//! of upstreams and of keys is read when a monitor requests the metrics (`MetricsSample`). `text` writes both.

mod counters;
mod messages;
mod rejected;
mod sample;
mod text;

pub use counters::{GaugeGuard, Metrics, UpstreamOutcome, VerifiedKind, register_counters, registered};
pub use messages::MethodCount;
pub(crate) use rejected::Rejection;
pub(crate) use sample::{MetricsSample, Started};
pub use text::CONTENT_TYPE;
pub(crate) use text::render;
