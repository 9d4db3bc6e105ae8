//! The light client as a service: the core decides, this moves bytes, time and work.

mod ask;
mod checkpoint;
mod kept;
pub mod propose;
mod service;
mod shared;
mod sync;

pub use checkpoint::{parse_checkpoint, start, start_checkpoint, CheckpointError, Start};
pub use kept::{HeaderStore, FILE, SET_ASIDE};
pub use service::{LightOptions, LightService};
