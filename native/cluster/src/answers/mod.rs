//! Answers for a light client from the index: [`IndexSource`] reads the index, checks what it reads, and answers questions
//! about blocks below the proven chain; [`IndexedBackend`] asks the index before it asks a backend.

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
