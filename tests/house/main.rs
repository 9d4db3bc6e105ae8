//! Checks of the sources and documents themselves.

mod layering;
mod method_docs;
mod targets;
