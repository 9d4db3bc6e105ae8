//! The light client as a service. The core decides; this module provides upstreams, time, threads and
//! storage.

mod ask;
mod checkpoint;
mod contents;
mod dismiss;
mod hedge;
pub mod index;
mod kept;
mod own_node;
pub mod propose;
mod proven_chain;
mod rounds;
mod sends;
mod served;
mod service;
mod shared;
mod sync;
mod told;
mod vitals;

pub use checkpoint::{CheckpointError, Start, parse_checkpoint, start, start_checkpoint};
pub use contents::ContentsError;
pub use kept::{FILE, HeaderStore, SET_ASIDE};
pub use own_node::OwnNode;
pub use proven_chain::{Place, ProvenChain};
pub use served::{Door, ServedHead, Shown};
pub use service::{LightOptions, LightService};
pub use told::{MAX_TOLD, ToldBlocks, ToldError};
