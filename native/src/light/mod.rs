//! The light client as a service: the core decides, this moves bytes, time and work.

mod ask;
mod checkpoint;
mod kept;
pub mod propose;
mod service;
mod shared;
mod sync;

pub use checkpoint::{CheckpointError, Start, parse_checkpoint, start, start_checkpoint};
pub use kept::{FILE, HeaderStore, SET_ASIDE};
pub use service::{LightOptions, LightService};
