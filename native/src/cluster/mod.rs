//! One service on many machines: the index in PostgreSQL ([`rootlight_index`]) is loaded from upstreams.

mod answers;
mod metrics;
mod source;

pub use answers::{IndexCounts, IndexSource, NoAnswer, WithIndex, with_index};
pub use metrics::IndexMetrics;
pub use source::ChainSource;
