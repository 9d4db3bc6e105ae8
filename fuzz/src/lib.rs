//! The assertions of the fuzz targets, one module per target.
//!
//! A target is more than "does not panic": what decodes must encode to the input, an accepted proof must say what the
//! data say, and no change of a valid proof may prove something else.

pub mod bitcoin_headers;
pub mod bitcoin_merkle;
pub mod bitcoin_served;
pub mod block;
pub mod coinbase;
pub mod coinbase_proof;
pub mod execute_transaction;
pub mod header;
pub mod header_batch;
pub mod import_block;
#[cfg(feature = "host")]
pub mod index_row;
pub mod input;
pub mod json;
pub mod kept_pages;
pub mod limit;
pub mod midstate;
pub mod model;
pub mod multiproof;
pub mod native;
pub mod network_json;
pub mod offline_report;
pub mod p2p_connection;
pub mod p2p_discovery;
pub mod peer_message;
pub mod proof;
#[cfg(feature = "host")]
pub mod replay_line;
pub mod rpc_envelope;
pub mod state_chunk;
pub mod submission;
pub mod transaction;
pub mod trie_node;
pub mod upstream_batch;
pub mod upstream_reply;
