//! A light client's answers from the index: [`IndexSource`] reads it, and [`WithIndex`] puts it before a backend.

mod admission;
mod block;
mod failure;
mod list;
mod logs;
mod parts;
mod source;
mod traces;
mod upstream;

pub use failure::NoAnswer;
pub use source::{IndexCounts, IndexSource};
pub use upstream::{WithIndex, with_index};
