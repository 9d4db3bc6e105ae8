//! Metrics of a server, in the text format of Prometheus.
//!
//! What happens often is counted in atomic numbers, whose labels are resolved once (`Metrics`). The state of the chain,
//! of upstreams and of keys is read when the metrics are asked for (`Sample`).

mod messages;
mod recorded;
mod rejected;
mod sample;
mod text;
mod watch;

pub use messages::MethodCount;
pub use recorded::{Checked, Counted, Metrics, Outcome, register_counters};
pub(crate) use rejected::Rejection;
pub(crate) use sample::{Sample, Started};
pub use text::CONTENT_TYPE;
pub(crate) use text::render;
pub(crate) use watch::Watch;
