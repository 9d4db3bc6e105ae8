//! One service on many machines. [`ChainSource`] gives the blocks of upstreams to the loader of the index in PostgreSQL
//! ([`rootlight_index`]), and [`IndexSource`] answers from that index. Front ends ([`serve`]) share a store ([`store`]), and
//! keys with their limits ([`keys`]).

mod answers;
pub mod keys;
mod metrics;
mod seal;
pub mod serve;
mod source;
pub mod store;
mod trace_json;
mod uncles_and_traces;

pub use answers::{IndexCounts, IndexSource, IndexedBackend, NoAnswer, with_index};
pub use metrics::IndexMetrics;
pub(crate) use seal::Seal;
pub use source::ChainSource;
