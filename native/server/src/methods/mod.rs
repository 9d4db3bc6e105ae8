//! The methods of the server: those of the core, and those about the server itself.

mod profile;
mod rows;
mod scoring;

pub use profile::{Profile, is_hosted};
pub use rows::{dispatcher, methods};
