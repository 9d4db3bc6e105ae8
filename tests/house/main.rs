//! Checks of the sources and documents themselves.

mod circles;
mod layering;
mod method_docs;
mod modules;
mod names;
mod statics;
mod targets;
