//! What only servers need: further methods, profiles, and rules about parameters. Browser modules name none of it, so that
//! their linker leaves it out.

mod access_list;
mod bridge;
mod discover;
mod profile;
mod proof;
mod row;
mod rows;
mod scoring;
mod subjects;
mod work;

pub use profile::{Profile, is_hosted};
pub use rows::{dispatcher, methods};
