//! Checks of the sources and documents themselves.

mod attacks;
mod circles;
mod layering;
mod modules;
mod names;
mod statics;
mod targets;
