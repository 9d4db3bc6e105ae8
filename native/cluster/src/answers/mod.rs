//! A light client's answers from the index: [`IndexSource`] reads it, and [`IndexedBackend`] puts it before a backend.

mod block;
mod failure;
mod list;
mod logs;
mod parts;
mod query_limiter;
mod source;
mod traces;
mod upstream;

pub use failure::NoAnswer;
pub use source::{IndexCounts, IndexSource};
pub use upstream::{IndexedBackend, with_index};
