//! The light client as a service. The core decides; this module provides upstreams, time, threads and
//! storage.

mod ask;
mod bitcoin;
mod block_exchange;
mod chain_status;
mod checkpoint;
mod confirm_window;
mod contents;
mod dismiss;
mod first_block;
mod header_store;
mod hedge;
pub mod index;
mod options;
mod own_node;
pub mod propose;
mod proven_chain;
mod reader;
mod renewal;
mod rounds;
mod sends;
mod service;
mod shared_light;
mod sync;
mod visible_head;

pub use block_exchange::{BlockExchange, ExchangeError, MAX_EXCHANGED_HEADERS};
pub use checkpoint::{CheckpointError, LightStart, parse_checkpoint, start, start_checkpoint};
pub use contents::ContentsError;
pub use first_block::{FirstBlockError, awaited_first_block, first_block};
pub use header_store::{FILE, HeaderStore, SET_ASIDE, WINDOW_FILE};
pub use options::LightOptions;
pub use own_node::OwnNode;
pub use proven_chain::{BlockPosition, ProvenChain};
pub use service::LightService;
pub use visible_head::{MessageGate, VisibleChain, VisibleHead};
