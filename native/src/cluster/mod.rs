//! One service on many machines: the index in PostgreSQL ([`rootlight_index`]) is loaded from upstreams.

mod metrics;
mod source;

pub use metrics::IndexMetrics;
pub use source::ChainSource;
