//! The light client as a service. The core decides; this module provides upstreams, time, threads and storage.
//!
//! | file | contents |
//! |---|---|
//! | `service`, `shared_light`, `options` | [`LightService`]: messages of callers; the parts that all tasks share; its options |
//! | `sync`, `dismiss`, `renewal` | synchronization with each upstream; when a source is replaced; a development chain that begins anew |
//! | `rounds`, `ask`, `hedge`, `sends` | the requests of messages to the upstreams |
//! | `checkpoint`, `first_block`, `confirm_window` | the start, and its confirmation by a trusted block |
//! | `header_store`, `reader` | stored headers |
//! | `bitcoin` | the sources of Bitcoin's chain |
//! | `index`, `own_node` | answers of an index of blocks, and of the operator's full node |
//! | `block_exchange`, `contents`, `visible_head`, `proven_chain`, `chain_status` | what front ends, loaders and metrics read of a client |
//! | `propose` | proposals of new built-in checkpoints |

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
